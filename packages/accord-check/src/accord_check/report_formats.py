"""A report for programs and CI systems: JSON, JUnit XML, SARIF 2.1.0, Markdown and HTML. Each is a pure function.

- JSON is one object with stable members.
- JUnit has a test case for each check. It knows no warning: a check that warns passes, with its finding as output,
  unless the run is strict.
- SARIF has a rule for each check and a result for each finding. Code scanning shows a result at a place of the
  repository; a conversation has none. So each result is at the start of one file, by default README.md, and names the
  trace and its lines in its properties. A fingerprint keeps a result the same from run to run.
- Markdown is for the summary of a CI job.
- HTML is one self-contained page: no script, nothing fetched.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from html import escape
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from accord.printable import printable
from accord_check.checks import Check
from accord_check.finding import Finding, Severity, url_of
from accord_check.report import Outcome, Report

FORMAT = 1
"""The version of the format; a member may be added without a new one."""


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    return {
        "accord-check": FORMAT,
        "subject": report.subject,
        "peer": report.peer,
        "protocolVersion": report.version,
        "protocolVersions": list(report.versions or ([report.version] if report.version else [])),
        "profile": report.profile,
        "seconds": round(report.seconds, 3),
        "verdict": report.verdict,
        "reason": report.reason,
        "exitCode": report.exit_code,
        "summary": {status: report.count(status) for status in _STATUSES},
        "checks": [_outcome(outcome, report.version) for outcome in report.outcomes],
        "remarks": report.remarks,
        "stale": report.stale,
        "demanded": report.demanded,
        "problems": report.problems,
        "trace": report.trace,
    }


def check_as_json(check: Check) -> dict[str, Any]:
    """A check as plain values."""
    return {**asdict(check), "tck": list(check.tck), "url": url_of(check.page)}


_STATUSES: tuple[Any, ...] = ("pass", "fail", "warn", "note", "expected", "not exercised")


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
    """A finding as plain values; `lines` are those of the trace file."""
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
        suite = SubElement(
            root,
            "testsuite",
            name=f"accord.check.{side}",
            tests=str(len(outcomes)),
            failures=str(failed),
            skipped=str(skipped),
            errors="0",
        )
        for outcome in outcomes:
            _case(suite, outcome, report)
    problems: list[str] = [*report.problems, *([report.blocked] if report.blocked else [])]
    for number, problem in enumerate(problems):
        suite = SubElement(root, "testsuite", name="accord.check", tests="1", failures="0", skipped="0", errors="1")
        case = SubElement(suite, "testcase", name=f"could not judge {number + 1}", classname="accord.check")
        SubElement(case, "error", message=_clean(problem))
    for name in report.stale:
        suite = SubElement(root, "testsuite", name="accord.check", tests="1", failures="1", skipped="0", errors="0")
        case = SubElement(suite, "testcase", name=f"stale: {name}", classname="accord.check")
        SubElement(case, "failure", message="it passes: remove it from the expected failures", type="stale")
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


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
    return outcome.status == "fail" or (report.strict and outcome.status == "warn") or _is_demanded(outcome, report)


def _is_demanded(outcome: Outcome, report: Report) -> bool:
    """Whether this check had to be exercised, and was not."""
    return outcome.status == "not exercised" and outcome.check.id in report.demanded


def _said(finding: Finding) -> str:
    lines = ", ".join(str(number + 1) for number in finding.events)
    rows = [finding.message, f"expected: {finding.expected}", f"do: {finding.fix}" if finding.fix else "", finding.url]
    return "\n".join([*(row for row in rows if row), *([f"lines of the trace: {lines}"] if lines else [])])


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS: dict[Severity, str] = {"fail": "error", "warn": "warning", "note": "note"}


def as_sarif(report: Report, location: str = "README.md") -> str:
    """The report as the text of a SARIF file; `location` is the file of the repository that the results point at."""
    from accord import __version__

    checks = list({outcome.check.id: outcome.check for outcome in report.outcomes}.values())
    places = {check.id: number for number, check in enumerate(checks)}
    expected = {id(finding) for it in report.outcomes if it.status == "expected" for finding in it.findings}
    results = [_result(finding, places, report, location, id(finding) in expected) for finding in report.findings]
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


def _result(finding: Finding, places: dict[str, int], report: Report, location: str, expected: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "ruleIndex": places[finding.id],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.side}: {finding.message}"},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": location}, "region": {"startLine": 1}}},
        ],
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
    if expected:
        result["suppressions"] = [{"kind": "external"}]
    return result


def _fingerprint(finding: Finding) -> str:
    """The same for the same fault in another run, whose ids and numbers differ."""
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
        counts = [
            report.count(status, side) for status in ("pass", "fail", "warn", "note", "expected", "not exercised")
        ]
        lines.append(f"| {side} | {' | '.join(str(count) for count in counts)} |")
    if report.findings:
        lines += ["", "| | check | seen | lines |", "|---|---|---|---|"]
        status = {id(finding): outcome.status for outcome in report.outcomes for finding in outcome.findings}
        lines += [_finding_row(finding, status[id(finding)]) for finding in report.findings]
    lines += [f"\n`{name}` was not exercised, and the profile demands it." for name in report.demanded]
    lines += [f"\n`{name}` passes: remove it from the expected failures." for name in report.stale]
    return "\n".join(lines) + "\n"


def _finding_row(finding: Finding, status: str) -> str:
    sign = _SIGNS["expected" if status == "expected" else finding.severity]
    lines = ", ".join(str(number + 1) for number in finding.events)
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    fix = f"<br>*do:* {_markdown(finding.fix)}" if finding.fix else ""
    check = f"[{finding.id}]({finding.url})<br>{finding.side} {finding.level}"
    return f"| {sign} | {check} | {_markdown(finding.message)}{times}{fix} | {lines} |"


def _markdown(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
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
    where = f"{_html(finding.where)}, " if finding.where else ""
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    fix = f"<p>do: {_html(finding.fix)}</p>" if finding.fix else ""
    mark = " (expected)" if expected else ""
    return (
        f'<article class="{finding.severity}"><p><b>{_WORDS[finding.severity]}{mark}</b> '
        f'<span class="id">{finding.id}</span> <span class="dim">{finding.side} {finding.level}</span></p>'
        f"<p>{_html(finding.message)}{times}</p><p>expected: {_html(finding.expected)}</p>{fix}"
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
