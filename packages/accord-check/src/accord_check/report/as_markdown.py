"""A report as Markdown, for the summary of a CI job. PURE."""

from __future__ import annotations

import re

from accord.printable import printable
from accord_check.finding import Finding
from accord_check.report.report import Report

_SIGNS = {"fail": "❌", "warn": "⚠️", "note": "📝", "expected": "☑️"}


def as_markdown(report: Report) -> str:
    """The report as the text of a Markdown file."""
    subject = ", ".join(part for part in (report.peer, report.spoken) if part)
    lines = [
        f"## accord check: {report.verdict}",
        "",
        f"`{_code(report.subject)}`" + (f" ({_text(subject)})" if subject else ""),
    ]
    lines += [f"**{_text(report.reason)}**"] if report.reason else []
    lines += [
        "",
        "| side | passed | failed | warned | noted | expected | not exercised |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for side in report.sides:
        counts = [
            report.count(status, side) for status in ("pass", "fail", "warn", "note", "expected", "not exercised")
        ]
        lines.append(f"| {side} | {' | '.join(str(count) for count in counts)} |")
    if report.findings:
        lines += ["", "| | check | seen | lines |", "|---|---|---|---|"]
        status = {id(finding): outcome.status for outcome in report.outcomes for finding in outcome.findings}
        lines += [_row(finding, status[id(finding)]) for finding in report.findings]
    lines += [f"\n`{name}` was not exercised, and the profile demands it." for name in report.demanded]
    lines += [f"\n`{name}` passes: remove it from the expected failures." for name in report.stale]
    return "\n".join(lines) + "\n"


def _row(finding: Finding, status: str) -> str:
    sign = _SIGNS["expected" if status == "expected" else finding.severity]
    lines = ", ".join(str(number + 1) for number in finding.events)
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    fix = f"<br>*do:* {_text(finding.fix)}" if finding.fix else ""
    check = f"[{finding.id}]({finding.url})<br>{finding.side} {finding.level}"
    return f"| {sign} | {check} | {_text(finding.message)}{times}{fix} | {lines} |"


def _text(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    return re.sub(r"([\\`*_{}\[\]<>()#|!~&@])", r"\\\1", printable(text).replace("\n", " "))


def _code(text: str) -> str:
    return printable(text).replace("`", "'").replace("\n", " ")
