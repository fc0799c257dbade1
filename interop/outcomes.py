"""What is declared not to pass, and why: `outcomes.json`, a row for each. A row that nothing needs fails the suite too.

`unsupported`: the other SDK has no way to say it. `their fault`: they do not do what the protocol says, shown by a
reproduction in `faults/` without any of our code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from interop.script import Outcome

FILE = Path(__file__).resolve().parent / "outcomes.json"
UNSUPPORTED, THEIR_FAULT = "unsupported", "their fault"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One or more behaviours of one pair that do not pass."""

    client: str
    agent: str
    behaviours: list[str]
    status: str
    why: str
    fault: str = ""
    """The reproduction, in `faults/`."""


@cache
def rows() -> list[Row]:
    listed: list[Any] = json.loads(FILE.read_text())
    return [Row(**row) for row in listed]


def declared(client: str, agent: str, behaviour: str) -> Row | None:
    """The row for this behaviour of this pair."""
    return next(
        (row for row in rows() if (row.client, row.agent) == (client, agent) and behaviour in row.behaviours), None
    )


def complaint(client: str, agent: str, behaviour: str, outcome: Outcome) -> str:
    """What is not as declared; nothing, if all is."""
    row = declared(client, agent, behaviour)
    if row is None:
        return "" if outcome.status == "passed" else f"{outcome.status}: " + "\n".join(outcome.problems)
    if outcome.status == "passed":
        return f"it passes: outcomes.json has a row that says {row.status!r} ({row.why})"
    if outcome.status == UNSUPPORTED != row.status:
        return f"declared {row.status!r}, but {outcome.status}: " + "\n".join(outcome.problems)
    return ""
