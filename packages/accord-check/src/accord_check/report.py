"""`Report`: the outcome of every check, and the verdict. PURE.

A check passes only with evidence. If it had nothing to judge it is `not exercised`, with the reason. A report counts as
conformant when no check failed; an obstacle to all checks (a login, another version, a peer that did not start) makes
it `blocked`. A fault of the checks themselves is an `error`, and never the peer's.

An expectation is a line of a file that names the checks that may fail, each with its reason.

    [expect]
    "session.load.replay-before-answer" = "the agent replays late; fixed in 2.0"
    "client types.no-own-fields" = { reason = "an old field", until = 2027-01-01 }

A check that fails and is listed is shown as expected, and the run may pass. A check that is listed and passes makes the
run fail: the entry is stale. A check that was not exercised stays unchanged.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from accord import ConfigurationError
from accord.mistakes import nearest
from accord_check.checks import CHECKS, Check, Finding, Side, newer_than, read_toml

Status = Literal["pass", "fail", "warn", "note", "expected", "not exercised"]
"""`expected`: it fails, and the user's list of expected failures has it."""

STATUSES: tuple[Status, ...] = get_args(Status)

Verdict = Literal["conformant", "not conformant", "blocked", "error"]

CONFORMANT, FINDINGS, NOT_JUDGED = 0, 1, 3
"""Exit codes; 2 is wrong usage."""

_WORST: tuple[Status, ...] = ("fail", "warn", "note")


@dataclass(slots=True)
class Outcome:
    """The verdict of one check on one side."""

    check: Check
    side: Side
    status: Status
    detail: str
    """The evidence of a pass (`14 updates`), or why it was not exercised; empty for a finding."""
    findings: list[Finding] = field(default_factory=list[Finding])


@dataclass(slots=True)
class Report:
    """A whole run."""

    subject: str
    """The judged command, URL or file."""
    outcomes: list[Outcome]
    peer: str = ""
    """The name and version that the judged side reports."""
    version: int | None = None
    """The version of the protocol that was spoken; the first of several."""
    versions: tuple[int, ...] = ()
    """All versions that were spoken, if more than one may have been."""
    profile: str = ""
    seconds: float = 0.0
    blocked: str = ""
    """Why the checks could not judge; empty if they could."""
    problems: list[str] = field(default_factory=list[str])
    """Faults of the checks themselves."""
    remarks: list[str] = field(default_factory=list[str])
    """Further notes about the run: checks that were not run, for instance."""
    stale: list[str] = field(default_factory=list[str])
    """Expected failures that passed."""
    demanded: list[str] = field(default_factory=list[str])
    """Checks that had to be exercised, and were not."""
    trace: str = ""
    """The file that holds the conversation, if it was kept."""
    strict: bool = False
    """Whether warnings count as failures."""

    @property
    def spoken(self) -> str:
        """Return the versions that were spoken, in words; empty if there are none."""
        versions = self.versions or ((self.version,) if self.version else ())
        return f"version{'s' if len(versions) > 1 else ''} {' and '.join(map(str, versions))}" if versions else ""

    @property
    def findings(self) -> list[Finding]:
        """Return all findings, the worst first."""
        order = {"fail": 0, "warn": 1, "note": 2}
        found = [finding for outcome in self.outcomes for finding in outcome.findings]
        return sorted(found, key=lambda finding: order[finding.severity])

    def count(self, status: Status, side: Side | None = None) -> int:
        """Return how many checks have this status."""
        return sum(it.status == status and side in (None, it.side) for it in self.outcomes)

    def count_only(self, checks: Container[str], revision: str) -> None:
        """Let only these checks of a frozen revision count; findings of others become notes."""
        for outcome in self.outcomes:
            if outcome.check.id not in checks and outcome.status in ("fail", "warn"):
                outcome.status, outcome.detail = "note", f"added after the requirements of {revision}"

    def follow(self, schema: str) -> None:
        """Mark the checks that came with a later schema than this one of `SCHEMAS` as not exercised, with the
        reason.
        """
        for since, checks in newer_than(schema).items():
            reason = f"it came with schema {since}, and the program is judged by {schema}"
            for outcome in self.outcomes:
                if outcome.check.id in checks:
                    outcome.status, outcome.detail, outcome.findings = "not exercised", reason, []
            self.demanded = [name for name in self.demanded if name not in checks]
            self.remarks.append(f"{len(checks)} checks that came with schema {since} are left out (--schema {schema})")

    @property
    def sides(self) -> list[Side]:
        """The sides that were judged."""
        return list(dict.fromkeys(it.side for it in self.outcomes))

    @property
    def verdict(self) -> Verdict:
        if self.problems:
            return "error"
        if self.count("fail") or self.stale or self.demanded or (self.strict and self.count("warn")):
            return "not conformant"
        return "blocked" if self.blocked else "conformant"

    @property
    def exit_code(self) -> int:
        return {"conformant": CONFORMANT, "not conformant": FINDINGS}.get(self.verdict, NOT_JUDGED)

    @property
    def reason(self) -> str:
        """Return the reason for the verdict, in one clause."""
        if self.problems:
            return self.problems[0]
        if self.verdict == "blocked":
            return self.blocked
        parts = [
            _counted(self.count("fail"), "check fails", "checks fail"),
            _counted(self.count("warn"), "warning", "warnings"),
            _counted(len(self.stale), "expected failure passes", "expected failures pass"),
            _counted(len(self.demanded), "check was not exercised", "checks were not exercised"),
            _counted(self.count("expected"), "expected failure", "expected failures"),
        ]
        return ", ".join(part for part in parts if part)


def outcomes_of(
    checks: Iterable[Check],
    sides: Iterable[Side],
    seen: Mapping[tuple[str, Side], int],
    findings: Iterable[Finding],
    reasons: Mapping[str, str] | None = None,
) -> list[Outcome]:
    """Return the outcome of each check for each of these sides; `reasons` has why a check was not exercised."""
    by_check: dict[tuple[str, Side], list[Finding]] = {}
    for finding in findings:
        by_check.setdefault((finding.id, finding.side), []).append(finding)
    made: list[Outcome] = []
    for check in checks:
        for side in sides:
            if check.of in (side, "both", "transport"):
                found, count = by_check.get((check.id, side), []), seen.get((check.id, side), 0)
                made.append(_outcome(check, side, count, found, (reasons or {}).get(check.id, "")))
    return made


def _outcome(check: Check, side: Side, count: int, found: list[Finding], reason: str) -> Outcome:
    if found:
        status: Status = next(each for each in _WORST if any(finding.severity == each for finding in found))
        return Outcome(check, side, status, "", found)
    if count:
        return Outcome(check, side, "pass", f"{count:,} {check.seen if count > 1 else singular(check.seen)}")
    return Outcome(check, side, "not exercised", reason or f"no {check.seen} to judge")


def singular(words: str) -> str:
    """Return the singular of a counted thing: `tool calls` as `tool call`, `entries` as `entry`."""
    return f"{words[:-3]}y" if words.endswith("ies") else words.removesuffix("s")


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}" if count else ""


class ExpectationError(ConfigurationError):
    """The file of expected failures is wrong."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A check that may fail."""

    id: str
    side: str | None
    """The side; None for either."""
    reason: str
    until: dt.date | None = None
    """The last day on which it may fail."""

    def covers(self, outcome: Outcome) -> bool:
        return self.id == outcome.check.id and self.side in (None, outcome.side)


def read_expectations(path: str | Path) -> list[Expectation]:
    """The expected failures in a file. Raises ExpectationError for a file that is wrong."""
    entries = read_toml(path, ExpectationError).get("expect")
    if not isinstance(entries, dict):
        raise ExpectationError(f'{path} must have a table [expect] with lines like "tool.id-unique" = "the reason"')
    return [_entry(str(path), name, value) for name, value in cast("dict[str, Any]", entries).items()]


def apply_expectations(expectations: list[Expectation], report: Report, today: dt.date | None = None) -> None:
    """Mark the outcomes that were expected, and note the entries that are stale."""
    today = today or dt.datetime.now(dt.UTC).date()
    for entry in expectations:
        covered = [outcome for outcome in report.outcomes if entry.covers(outcome)]
        failing = [outcome for outcome in covered if outcome.status in ("fail", "warn")]
        if not failing and any(outcome.status == "pass" for outcome in covered):
            report.stale.append(entry.id if entry.side is None else f"{entry.side} {entry.id}")
        if entry.until is None or today <= entry.until:
            for outcome in failing:
                outcome.status, outcome.detail = "expected", entry.reason


def _entry(path: str, name: str, value: Any) -> Expectation:
    side, _, check = name.rpartition(" ")
    if check not in CHECKS:
        hint = nearest(check, list(CHECKS)) or "; `accord check list` prints all"
        raise ExpectationError(f"{path}: no check has the id {check!r}{hint}")
    if side not in ("", "agent", "client"):
        raise ExpectationError(f"{path}: a side must be agent or client, got {side!r} in {name!r}")
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {"reason": value}
    reason, until = fields.get("reason"), fields.get("until")
    if not isinstance(reason, str) or not reason.strip():
        raise ExpectationError(f"{path}: {name!r} needs a reason, as text")
    if until is not None and (not isinstance(until, dt.date) or isinstance(until, dt.datetime)):
        raise ExpectationError(f"{path}: until of {name!r} must be a date such as 2027-01-31, got {until!r}")
    return Expectation(check, side or None, reason, until)
