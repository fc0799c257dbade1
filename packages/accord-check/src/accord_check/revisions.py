"""Frozen sets of checks: what counts against a program that was made for an earlier revision of the protocol.

A check that is added later is run and shown, and counts only for those who ask for the set that has it. A set is a file
of ids, a line each; a file that is released never changes.
"""

from __future__ import annotations

from importlib import resources

from accord import ConfigurationError
from accord_check.report.report import Report


def revisions() -> list[str]:
    """The names of the frozen sets, the oldest first."""
    files = resources.files("accord_check").joinpath("frozen").iterdir()
    return sorted(file.name.removesuffix(".txt") for file in files if file.name.endswith(".txt"))


def checks_of(revision: str) -> frozenset[str]:
    """The ids of the checks in a set. Raises ConfigurationError for a name that no set has."""
    known = revisions()
    if revision not in known:
        raise ConfigurationError(f"no requirements are frozen as {revision!r}; there are {', '.join(known)}")
    text = resources.files("accord_check").joinpath("frozen", f"{revision}.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def apply(revision: str, report: Report) -> None:
    """Let only the checks of this set count in a report; others become notes."""
    counted = checks_of(revision)
    for outcome in report.outcomes:
        if outcome.check.id not in counted and outcome.status in ("fail", "warn"):
            outcome.status, outcome.detail = "note", f"added after the requirements of {revision}"
