"""A report as SARIF 2.1.0: a rule for each check, a result for each finding. PURE.

Code scanning shows a result at a place of the repository; a conversation has none. So each result is at the start of
one file, by default README.md, and names the trace and its lines in its properties. A fingerprint keeps a result the
same from run to run.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from accord_check.checks import Check
from accord_check.finding import Finding, Severity, url_of
from accord_check.report.report import Report

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
                "rules": [_rule(check) for check in checks],
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


def _rule(check: Check) -> dict[str, Any]:
    help_text = " ".join(
        part for part in (check.expected.capitalize() + ".", check.fix and f"Do: {check.fix}.") if part
    )
    return {
        "id": check.id,
        "shortDescription": {"text": check.clause},
        "fullDescription": {"text": f"{check.level}: {check.expected} ({check.page})."},
        "help": {"text": help_text, "markdown": f"{help_text} [{check.page}]({url_of(check.page)})"},
        "helpUri": url_of(check.page),
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
