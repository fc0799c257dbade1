"""A report as one self-contained HTML page: no script, nothing fetched. PURE."""

from __future__ import annotations

from html import escape

from accord.printable import printable
from accord_check.finding import Finding
from accord_check.report.report import Outcome, Report

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
    reason = f": {_text(report.reason)}" if report.reason else ""
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
        f"<p><code>{_text(report.subject)}</code></p>" + (f'<p class="dim">{_text(about)}</p>' if about else ""),
        _counts(report),
        *(f"<p><b>{_text(text)}</b></p>" for text in report.problems),
        *(f"<p><b>{_text(name)}</b> passes: remove it from the expected failures.</p>" for name in report.stale),
        *(f"<p><b>{_text(name)}</b> was not exercised, and the profile demands it.</p>" for name in report.demanded),
        "<h2>Findings</h2>" if report.findings else "",
        *(_finding(finding, _is_expected(finding, report)) for finding in report.findings),
        *(_listed(report, side) for side in report.sides),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _counts(report: Report) -> str:
    names = ("pass", "fail", "warn", "note", "expected", "not exercised")
    head = "".join(f'<th class="number">{name}</th>' for name in names)
    rows = "".join(
        f"<tr><td>{side}</td>"
        + "".join(f'<td class="number">{report.count(name, side)}</td>' for name in names)  # type: ignore[arg-type]
        + "</tr>"
        for side in report.sides
    )
    return f"<table><tr><th>side</th>{head}</tr>{rows}</table>"


def _finding(finding: Finding, expected: bool) -> str:
    lines = ", ".join(str(number + 1) for number in finding.events)
    where = f"{_text(finding.where)}, " if finding.where else ""
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    fix = f"<p>do: {_text(finding.fix)}</p>" if finding.fix else ""
    mark = " (expected)" if expected else ""
    return (
        f'<article class="{finding.severity}"><p><b>{_WORDS[finding.severity]}{mark}</b> '
        f'<span class="id">{finding.id}</span> <span class="dim">{finding.side} {finding.level}</span></p>'
        f"<p>{_text(finding.message)}{times}</p><p>expected: {_text(finding.expected)}</p>{fix}"
        f'<p class="dim">{where}{f"line {lines} · " if lines else ""}'
        f'<a href="{escape(finding.url)}">{_text(finding.page)}</a></p></article>'
    )


def _listed(report: Report, side: str) -> str:
    outcomes = [outcome for outcome in report.outcomes if outcome.side == side]
    rows = "".join(_row(outcome) for outcome in outcomes)
    return (
        f"<h2>Checks of the {side}</h2><details><summary>all {len(outcomes)} checks</summary>"
        "<table><tr><th>check</th><th>level</th><th>outcome</th><th>evidence or reason</th></tr>"
        f"{rows}</table></details>"
    )


def _row(outcome: Outcome) -> str:
    detail = outcome.detail or "; ".join(finding.message for finding in outcome.findings)
    return (
        f'<tr><td class="id" title="{escape(outcome.check.clause)}">{outcome.check.id}</td>'
        f"<td>{outcome.check.level}</td><td>{outcome.status}</td><td>{_text(detail)}</td></tr>"
    )


def _is_expected(finding: Finding, report: Report) -> bool:
    return any(outcome.status == "expected" and finding in outcome.findings for outcome in report.outcomes)


def _text(text: str) -> str:
    return escape(printable(text))
