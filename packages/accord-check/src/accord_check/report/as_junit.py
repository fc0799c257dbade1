"""A report as JUnit XML: a test case for each check. PURE.

JUnit knows no warning: a check that warns passes, with its finding as output, unless the run is strict.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from accord_check.finding import Finding
from accord_check.report.report import Outcome, Report

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
