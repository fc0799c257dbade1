"""A report for people, and for programs and CI systems: JSON, JUnit XML, SARIF 2.1.0, Markdown and HTML. PURE."""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from html import escape
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from accord.printable import printable
from accord_check.checks import Check, Finding, Severity, Side, url_of
from accord_check.report import STATUSES, Outcome, Report, Status, Verdict

Style = Literal["bad", "warning", "good", "dim", "bold"]

Paint = Callable[[Style, str], str]
"""Paints a text in a style."""

_WORDS_AS_TEXT: dict[Severity, tuple[str, Style]] = {
    "fail": ("FAIL", "bad"),
    "warn": ("WARN", "warning"),
    "note": ("NOTE", "dim"),
}


def plain(_style: Style, text: str) -> str:
    """Return a text unchanged."""
    return text


def as_text(report: Report, paint: Paint = plain, *, width: int = 100, verbose: bool = False) -> Iterator[str]:
    """Return the lines of a report. With `verbose`, passes and checks that were not exercised are listed as well."""
    for line in textwrap.wrap(heading(report), max(40, width)) or [""]:
        yield paint("bold", line)
    yield ""
    for finding in report.findings:
        yield from _finding_as_text(finding, paint, width, expected=_is_expected(finding, report))
        yield ""
    if verbose:
        yield from _listed_as_text(report, paint, width)
    for side in report.sides:
        yield f"{side}: {_counts_as_text(report, side)}"
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
    """Return one line that names the judged agent, client or trace."""
    parts = [report.subject, report.peer, report.spoken]
    parts.append(f"profile {report.profile}" if report.profile else "")
    return printable(", ".join(part for part in parts if part))


def verdict(report: Report, paint: Paint = plain) -> str:
    """The verdict with its reason, in one line."""
    styles: dict[Verdict, Style] = {"conformant": "good", "not conformant": "bad"}
    style = styles.get(report.verdict, "warning")
    took = f" ({report.seconds:.1f} s)" if report.seconds else ""
    return paint(style, report.verdict) + (f": {printable(report.reason)}" if report.reason else "") + took


def _finding_as_text(finding: Finding, paint: Paint, width: int, *, expected: bool) -> Iterator[str]:
    word, style = _WORDS_AS_TEXT[finding.severity]
    mark = " (expected)" if expected else ""
    yield f"{paint(style, word)}  {paint('bold', finding.id)}  {finding.side} {finding.level}{mark}"
    yield from _wrapped(_message(finding), width)
    if finding.clause not in finding.message:
        yield from _wrapped(f"expected: {finding.expected}", width)
    if finding.fix:
        yield from _wrapped(f"do: {finding.fix}", width)
    if place := _place(finding):
        yield paint("dim", f"      at: {place}")
    yield paint("dim", f"      see: {finding.url}")


def _place(finding: Finding) -> str:
    more = "…" if finding.count > len(finding.events) else ""
    where = [printable(finding.where)] if finding.where else []
    return ", ".join([*where, *([f"line {_lines(finding)}{more}"] if finding.events else [])])


def _lines(finding: Finding) -> str:
    """The lines of the trace file that show a finding."""
    return ", ".join(str(number + 1) for number in finding.events)


def _message(finding: Finding) -> str:
    return finding.message + (f" ({finding.count} times)" if finding.count > 1 else "")


def _wrapped(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(printable(text), max(40, width), initial_indent=" " * 6, subsequent_indent=" " * 6)


def _listed_as_text(report: Report, paint: Paint, width: int) -> Iterator[str]:
    listed: list[tuple[Status, str, Style]] = [("pass", "ok  ", "good"), ("not exercised", "--  ", "dim")]
    for status, word, style in listed:
        for outcome in report.outcomes:
            if outcome.status == status:
                yield paint(style, word) + "  " + _one_line(outcome, width)
    yield ""


def _one_line(outcome: Outcome, width: int) -> str:
    text = printable(f"{outcome.check.id}  {outcome.side}: {outcome.detail}")
    return text if len(text) <= width else f"{text[: width - 1]}…"


_PAST = {"pass": "passed", "fail": "failed", "warn": "warned", "note": "noted", "expected": "expected to fail"}


def _counts_as_text(report: Report, side: Side) -> str:
    counts = ((_PAST.get(status, status), report.count(status, side)) for status in STATUSES)
    return ", ".join(f"{count} {word}" for word, count in counts if count or word == "not exercised")


FORMAT = 1
"""The version of the format; a member may be added without a new one."""


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    return {
        "accord-check": FORMAT,
        **{name: getattr(report, name) for name in ("subject", "peer", "profile", "verdict", "reason")},
        "protocolVersion": report.version,
        "protocolVersions": list(report.versions or ([report.version] if report.version else [])),
        "seconds": round(report.seconds, 3),
        "exitCode": report.exit_code,
        "summary": {status: report.count(status) for status in STATUSES},
        "checks": [_outcome(outcome, report.version) for outcome in report.outcomes],
        **{name: getattr(report, name) for name in ("remarks", "stale", "demanded", "problems", "trace")},
    }


def check_as_json(check: Check) -> dict[str, Any]:
    """A check as plain values."""
    return {**asdict(check), "tck": list(check.tck), "url": url_of(check.page)}


def _outcome(outcome: Outcome, version: int | None) -> dict[str, Any]:
    check = outcome.check
    return {
        "id": check.id,
        "side": outcome.side,
        "status": outcome.status,
        "level": check.level,
        "detail": outcome.detail,
        "clause": check.clause,
        "page": check.page,
        "url": url_of(check.page, version),
        "tck": list(check.tck),
        "findings": [finding_as_json(finding) for finding in outcome.findings],
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as plain values; `lines` are those of the trace file."""
    values = asdict(finding)
    values["lines"] = [number + 1 for number in values.pop("events")]
    return {**values, "url": finding.url}


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 has no form for."""


def as_junit(report: Report) -> str:
    """The report as the text of an XML file."""
    root = Element("testsuites", name="accord check", time=f"{report.seconds:.3f}")
    for side in report.sides:
        outcomes = [outcome for outcome in report.outcomes if outcome.side == side]
        failed = sum(_fails(outcome, report) for outcome in outcomes)
        skipped = sum(
            outcome.status in ("not exercised", "expected") and not _fails(outcome, report) for outcome in outcomes
        )
        suite = _suite(root, f"accord.check.{side}", tests=len(outcomes), failures=failed, skipped=skipped)
        for outcome in outcomes:
            _case(suite, outcome, report)
    problems: list[str] = [*report.problems, *([report.blocked] if report.blocked else [])]
    for number, problem in enumerate(problems):
        suite = _suite(root, "accord.check", errors=1)
        case = SubElement(suite, "testcase", name=f"could not judge {number + 1}", classname="accord.check")
        SubElement(case, "error", message=_clean(problem))
    for name in report.stale:
        suite = _suite(root, "accord.check", failures=1)
        case = SubElement(suite, "testcase", name=f"stale: {name}", classname="accord.check")
        SubElement(case, "failure", message="it passes: remove it from the expected failures", type="stale")
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(
    root: Element, name: str, *, tests: int = 1, failures: int = 0, skipped: int = 0, errors: int = 0
) -> Element:
    counts = {"tests": tests, "failures": failures, "skipped": skipped, "errors": errors}
    return SubElement(root, "testsuite", {"name": name, **{of: str(count) for of, count in counts.items()}})


def _case(suite: Element, outcome: Outcome, report: Report) -> None:
    case = SubElement(suite, "testcase", name=outcome.check.id, classname=f"accord.check.{outcome.side}")
    said = _clean("\n\n".join(_said(finding) for finding in outcome.findings))
    if _fails(outcome, report):
        failure = SubElement(case, "failure", type=outcome.check.level)
        idle = f"not exercised, and the profile demands it: {outcome.detail}"
        failure.set("message", _clean(outcome.findings[0].message if outcome.findings else idle))
        failure.text = said
    elif outcome.status in ("not exercised", "expected"):
        SubElement(case, "skipped", message=_clean(f"{outcome.status}: {outcome.detail}"))
    elif said or outcome.detail:
        SubElement(case, "system-out").text = said or _clean(outcome.detail)


def _fails(outcome: Outcome, report: Report) -> bool:
    # A check that had to be exercised, and was not, fails as well.
    is_demanded = outcome.status == "not exercised" and outcome.check.id in report.demanded
    return outcome.status == "fail" or (report.strict and outcome.status == "warn") or is_demanded


def _said(finding: Finding) -> str:
    rows = [finding.message, f"expected: {finding.expected}", f"do: {finding.fix}" if finding.fix else "", finding.url]
    rows += [f"lines of the trace: {_lines(finding)}"] if finding.events else []
    return "\n".join(row for row in rows if row)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS: dict[Severity, str] = {"fail": "error", "warn": "warning", "note": "note"}


def as_sarif(report: Report, location: str = "README.md") -> str:
    """The report as the text of a SARIF file; `location` is the file of the repository that the results point at."""
    from accord import __version__

    checks = list({outcome.check.id: outcome.check for outcome in report.outcomes}.values())
    places = {check.id: number for number, check in enumerate(checks)}
    results = [_result(finding, places, report, location) for finding in report.findings]
    run = {
        "tool": {
            "driver": {
                "name": "accord check",
                "version": __version__,
                "rules": [_rule(check, report.version) for check in checks],
            }
        },
        "automationDetails": {"id": f"accord-check/{report.peer or report.subject}"},
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": text}}
                    for text in (*report.problems, *([report.blocked] if report.blocked else []))
                ],
            }
        ],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(check: Check, version: int | None) -> dict[str, Any]:
    url = url_of(check.page, version)
    help_text = " ".join(
        part for part in (check.expected.capitalize() + ".", check.fix and f"Do: {check.fix}.") if part
    )
    return {
        "id": check.id,
        "shortDescription": {"text": check.clause},
        "fullDescription": {"text": f"{check.level}: {check.expected} ({check.page})."},
        "help": {"text": help_text, "markdown": f"{help_text} [{check.page}]({url})"},
        "helpUri": url,
        "defaultConfiguration": {"level": _LEVELS[check.severity]},
        "properties": {"of": check.of, "level": check.level, "tck": list(check.tck)},
    }


def _result(finding: Finding, places: dict[str, int], report: Report, location: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "ruleIndex": places[finding.id],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.side}: {finding.message}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": location}, "region": {"startLine": 1}}}],
        "partialFingerprints": {"accordCheck/v1": _fingerprint(finding)},
        "properties": {
            "side": finding.side,
            "clause": finding.clause,
            "expected": finding.expected,
            "trace": report.trace or report.subject,
            "lines": [number + 1 for number in finding.events],
            "count": finding.count,
        },
    }
    if _is_expected(finding, report):
        result["suppressions"] = [{"kind": "external"}]
    return result


def _fingerprint(finding: Finding) -> str:
    """Return the same value for the same fault in another run, whose ids and numbers differ."""
    text = re.sub(r"[0-9a-f]{8,}|\d+", "#", finding.message)
    return hashlib.sha256(f"{finding.side} {finding.id} {text}".encode("utf-8", "replace")).hexdigest()[:32]


_SIGNS = {"fail": "❌", "warn": "⚠️", "note": "📝", "expected": "☑️"}


def as_markdown(report: Report) -> str:
    """The report as the text of a Markdown file."""
    subject = ", ".join(part for part in (report.peer, report.spoken) if part)
    lines = [
        f"## accord check: {report.verdict}",
        "",
        f"`{_code(report.subject)}`" + (f" ({_markdown(subject)})" if subject else ""),
    ]
    lines += [f"**{_markdown(report.reason)}**"] if report.reason else []
    lines += [
        "",
        "| side | passed | failed | warned | noted | expected | not exercised |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for side in report.sides:
        lines.append(f"| {side} | {' | '.join(str(report.count(status, side)) for status in STATUSES)} |")
    if report.findings:
        lines += ["", "| | check | seen | lines |", "|---|---|---|---|"]
        lines += [_finding_row(finding, _is_expected(finding, report)) for finding in report.findings]
    lines += [f"\n`{name}` was not exercised, and the profile demands it." for name in report.demanded]
    lines += [f"\n`{name}` passes: remove it from the expected failures." for name in report.stale]
    return "\n".join(lines) + "\n"


def _finding_row(finding: Finding, expected: bool) -> str:
    sign = _SIGNS["expected" if expected else finding.severity]
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    fix = f"<br>*do:* {_markdown(finding.fix)}" if finding.fix else ""
    check = f"[{finding.id}]({finding.url})<br>{finding.side} {finding.level}"
    return f"| {sign} | {check} | {_markdown(finding.message)}{times}{fix} | {_lines(finding)} |"


def _markdown(text: str) -> str:
    """Return text escaped for Markdown and HTML."""
    return re.sub(r"([\\`*_{}\[\]<>()#|!~&@])", r"\\\1", printable(text).replace("\n", " "))


def _code(text: str) -> str:
    return printable(text).replace("`", "'").replace("\n", " ")


_STYLE = """
:root { color-scheme: light dark; --bad: #c62828; --warn: #a15c00; --good: #1b7f3b; --dim: #6b7280; --line: #8884; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --warn: #ffb74d; --good: #81c995; --dim: #9aa0a6; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
code, .id { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .6rem .3rem 0;
border-bottom: 1px solid var(--line); vertical-align: top; } td.number, th.number { text-align: right; }
article { border: 1px solid var(--line); border-left: 4px solid var(--dim); border-radius: 4px; padding: .6rem .9rem;
margin: .6rem 0; } article.fail { border-left-color: var(--bad); } article.warn { border-left-color: var(--warn); }
.fail b, .verdict.bad { color: var(--bad); } .warn b { color: var(--warn); } .verdict.good { color: var(--good); }
.dim { color: var(--dim); } p { margin: .3rem 0; overflow-wrap: anywhere; } summary { cursor: pointer; }
"""

_WORDS = {"fail": "fails", "warn": "warns", "note": "notes"}


def as_html(report: Report) -> str:
    """The report as the text of an HTML file."""
    style = "good" if report.verdict == "conformant" else "bad"
    reason = f": {_html(report.reason)}" if report.reason else ""
    about = ", ".join(
        part
        for part in (
            report.peer,
            report.spoken,
            f"profile {report.profile}" if report.profile else "",
            f"{report.seconds:.1f} s" if report.seconds else "",
        )
        if part
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>accord check: {report.verdict}</title><style>{_STYLE}</style></head><body>",
        f'<h1>accord check: <span class="verdict {style}">{report.verdict}</span>{reason}</h1>',
        f"<p><code>{_html(report.subject)}</code></p>" + (f'<p class="dim">{_html(about)}</p>' if about else ""),
        _counts(report),
        *(f"<p><b>{_html(text)}</b></p>" for text in report.problems),
        *(f"<p><b>{_html(name)}</b> passes: remove it from the expected failures.</p>" for name in report.stale),
        *(f"<p><b>{_html(name)}</b> was not exercised, and the profile demands it.</p>" for name in report.demanded),
        "<h2>Findings</h2>" if report.findings else "",
        *(_finding(finding, _is_expected(finding, report)) for finding in report.findings),
        *(_listed(report, side) for side in report.sides),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _counts(report: Report) -> str:
    head = "".join(f'<th class="number">{status}</th>' for status in STATUSES)
    rows = ""
    for side in report.sides:
        counts = "".join(f'<td class="number">{report.count(status, side)}</td>' for status in STATUSES)
        rows += f"<tr><td>{side}</td>{counts}</tr>"
    return f"<table><tr><th>side</th>{head}</tr>{rows}</table>"


def _finding(finding: Finding, expected: bool) -> str:
    lines, where = _lines(finding), f"{_html(finding.where)}, " if finding.where else ""
    fix = f"<p>do: {_html(finding.fix)}</p>" if finding.fix else ""
    mark = " (expected)" if expected else ""
    return (
        f'<article class="{finding.severity}"><p><b>{_WORDS[finding.severity]}{mark}</b> '
        f'<span class="id">{finding.id}</span> <span class="dim">{finding.side} {finding.level}</span></p>'
        f"<p>{_html(_message(finding))}</p><p>expected: {_html(finding.expected)}</p>{fix}"
        f'<p class="dim">{where}{f"line {lines} · " if lines else ""}'
        f'<a href="{escape(finding.url)}">{_html(finding.page)}</a></p></article>'
    )


def _listed(report: Report, side: str) -> str:
    outcomes = [outcome for outcome in report.outcomes if outcome.side == side]
    rows = "".join(_outcome_row(outcome) for outcome in outcomes)
    return (
        f"<h2>Checks of the {side}</h2><details><summary>all {len(outcomes)} checks</summary>"
        "<table><tr><th>check</th><th>level</th><th>outcome</th><th>evidence or reason</th></tr>"
        f"{rows}</table></details>"
    )


def _outcome_row(outcome: Outcome) -> str:
    detail = outcome.detail or "; ".join(finding.message for finding in outcome.findings)
    return (
        f'<tr><td class="id" title="{escape(outcome.check.clause)}">{outcome.check.id}</td>'
        f"<td>{outcome.check.level}</td><td>{outcome.status}</td><td>{_html(detail)}</td></tr>"
    )


def _is_expected(finding: Finding, report: Report) -> bool:
    return any(outcome.status == "expected" and finding in outcome.findings for outcome in report.outcomes)


def _html(text: str) -> str:
    return escape(printable(text))
