"""Expected failures: a file that names the checks that may fail, each with its reason. PURE, except for reading.

    [expect]
    "session.load.replay-before-answer" = "the agent replays late; fixed in 2.0"
    "client types.no-own-fields" = { reason = "an old field", until = 2027-01-01 }

A check that fails and is listed is shown as expected, and the run may pass. A check that is listed and passes makes the
run fail: the entry is stale. One that was not exercised is left as it is.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from accord import ConfigurationError
from accord.mistakes import nearest
from accord_check.checks import CHECKS
from accord_check.report import Outcome, Report


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


def read(path: str | Path) -> list[Expectation]:
    """The expected failures in a file. Raises ExpectationError for a file that is wrong."""
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ExpectationError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExpectationError(f"cannot read {path}: {error}") from error
    entries = values.get("expect")
    if not isinstance(entries, dict):
        raise ExpectationError(f'{path} must have a table [expect] with lines like "tool.id-unique" = "the reason"')
    return [_entry(str(path), name, value) for name, value in cast("dict[str, Any]", entries).items()]


def apply(expectations: list[Expectation], report: Report, today: dt.date | None = None) -> None:
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
