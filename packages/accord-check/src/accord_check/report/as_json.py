"""A report for programs, as one JSON object with stable members. PURE."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from accord_check.checks import Check
from accord_check.finding import Finding, url_of
from accord_check.report.report import Outcome, Report

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
        "checks": [_outcome(outcome) for outcome in report.outcomes],
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


def _outcome(outcome: Outcome) -> dict[str, Any]:
    check = outcome.check
    return {
        "id": check.id,
        "side": outcome.side,
        "status": outcome.status,
        "level": check.level,
        "detail": outcome.detail,
        "clause": check.clause,
        "page": check.page,
        "url": url_of(check.page),
        "tck": list(check.tck),
        "findings": [finding_as_json(finding) for finding in outcome.findings],
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """A finding as plain values; `lines` are those of the trace file."""
    values = asdict(finding)
    values["lines"] = [number + 1 for number in values.pop("events")]
    return {**values, "url": finding.url}
