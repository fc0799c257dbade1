"""A report for people: findings in full, the rest as counts, the verdict last. PURE.

What a peer said is made harmless here, because the lines hold colours of ours and go to the terminal as they are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Literal

from accord.printable import printable
from accord_check.finding import Finding, Severity
from accord_check.report import Outcome, Report, Status, Verdict

Style = Literal["bad", "warning", "good", "dim", "bold"]

Paint = Callable[[Style, str], str]
"""Paints a text in a style."""

_WORDS: dict[Severity, tuple[str, Style]] = {
    "fail": ("FAIL", "bad"),
    "warn": ("WARN", "warning"),
    "note": ("NOTE", "dim"),
}


def plain(_style: Style, text: str) -> str:
    """Leaves a text as it is."""
    return text


def as_text(report: Report, paint: Paint = plain, *, width: int = 100, verbose: bool = False) -> Iterator[str]:
    """The lines of a report. With `verbose`, passes and what was not exercised are listed as well."""
    for line in textwrap.wrap(heading(report), max(40, width)) or [""]:
        yield paint("bold", line)
    yield ""
    for finding in report.findings:
        expected = any(finding in it.findings and it.status == "expected" for it in report.outcomes)
        yield from _finding(finding, paint, width, expected=expected)
        yield ""
    if verbose:
        yield from _listed(report, paint, width)
    for side in report.sides:
        yield f"{side}: {_counts(report, side)}"
    for problem in report.problems:
        yield paint("bad", f"the checks themselves failed: {printable(problem)}")
    for remark in report.remarks:
        yield from textwrap.wrap(printable(remark), max(40, width))
    for name in report.demanded:
        yield paint("bad", f"{name} was not exercised: a fixture must give it something to judge")
    for name in report.stale:
        yield paint("bad", f"{name} passes: remove it from the expected failures")
    if report.trace:
        yield f"the conversation: {printable(report.trace)}"
    yield verdict(report, paint)


def heading(report: Report) -> str:
    """What was judged, in one line."""
    parts = [report.subject, report.peer, report.spoken]
    parts.append(f"profile {report.profile}" if report.profile else "")
    return printable(", ".join(part for part in parts if part))


def verdict(report: Report, paint: Paint = plain) -> str:
    """The verdict with its reason, in one line."""
    styles: dict[Verdict, Style] = {"conformant": "good", "not conformant": "bad"}
    style = styles.get(report.verdict, "warning")
    took = f" ({report.seconds:.1f} s)" if report.seconds else ""
    return paint(style, report.verdict) + (f": {printable(report.reason)}" if report.reason else "") + took


def _finding(finding: Finding, paint: Paint, width: int, *, expected: bool) -> Iterator[str]:
    word, style = _WORDS[finding.severity]
    mark = " (expected)" if expected else ""
    yield f"{paint(style, word)}  {paint('bold', finding.id)}  {finding.side} {finding.level}{mark}"
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    yield from _wrapped(finding.message + times, width)
    if finding.clause not in finding.message:
        yield from _wrapped(f"expected: {finding.expected}", width)
    if finding.fix:
        yield from _wrapped(f"do: {finding.fix}", width)
    if place := _place(finding):
        yield paint("dim", f"      at: {place}")
    yield paint("dim", f"      see: {finding.url}")


def _place(finding: Finding) -> str:
    lines = ", ".join(str(number + 1) for number in finding.events)
    more = "…" if finding.count > len(finding.events) else ""
    where = [printable(finding.where)] if finding.where else []
    return ", ".join([*where, *([f"line {lines}{more}"] if lines else [])])


def _wrapped(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(printable(text), max(40, width), initial_indent=" " * 6, subsequent_indent=" " * 6)


def _listed(report: Report, paint: Paint, width: int) -> Iterator[str]:
    listed: list[tuple[Status, str, Style]] = [("pass", "ok  ", "good"), ("not exercised", "--  ", "dim")]
    for status, word, style in listed:
        for outcome in report.outcomes:
            if outcome.status == status:
                yield paint(style, word) + "  " + _one_line(outcome, width)
    yield ""


def _one_line(outcome: Outcome, width: int) -> str:
    text = printable(f"{outcome.check.id}  {outcome.side}: {outcome.detail}")
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _counts(report: Report, side: str) -> str:
    words = (
        ("pass", "passed"),
        ("fail", "failed"),
        ("warn", "warned"),
        ("note", "noted"),
        ("expected", "expected to fail"),
    )
    parts = [f"{count} {word}" for status, word in words if (count := report.count(status, side))]  # type: ignore[arg-type]
    parts.append(f"{report.count('not exercised', side)} not exercised")  # type: ignore[arg-type]
    return ", ".join(parts)
