"""The scenarios: each is one start of the client, with a part that our agent plays, and what happens in its first turn.

A client that sends a prompt and ends is enough for all of them. What it does not do is not exercised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from accord.check.client import plays
from accord.check.client.part import EVERYTHING, OPTION, Part
from accord.check.client.played import Played
from accord.check.client.plays import Stage
from accord.check.client.settings import Profile

BOTH: tuple[Profile, ...] = ("smoke", "default")


class Scenario(NamedTuple):
    """One start of the client."""

    name: str
    shows: str
    play: Callable[[Played, Stage], Awaitable[None]]
    part: Part = Part()
    profiles: tuple[Profile, ...] = ("default",)
    ends: bool = True
    """Whether the client is expected to end by itself afterwards."""


_ODD_TYPE: dict[str, Any] = {
    "id": "odd",
    "name": "Odd",
    "type": "_accord.check/slider",
    "currentValue": 3,
    "from": 1,
    "to": 5,
}
_ODD_CATEGORY: list[dict[str, Any]] = [
    {**OPTION, "id": "plain", "category": None},
    {**OPTION, "id": "odd", "category": "_accord.check/category"},
]
_FUTURE: dict[str, Any] = {
    **EVERYTHING,
    "_accord.check/future": {"deep": [1, {"er": None}]},
    "accordCheckFuture": True,
    "sessionCapabilities": {**EVERYTHING["sessionCapabilities"], "accordCheckFuture": {}},
}

SCENARIOS = (
    Scenario("usual", "updates, questions, files, terminals, and unknown messages", plays.usual, profiles=BOTH),
    Scenario("bare", "an agent without capabilities", plays.bare, Part(capabilities={}, session={}), BOTH),
    Scenario(
        "version", "a version that no client speaks", plays.version, Part(answer={"protocolVersion": 65535}), BOTH
    ),
    Scenario("future", "capabilities that do not exist yet", plays.future, Part(capabilities=_FUTURE)),
    Scenario(
        "odd option", "an option of an unknown type", plays.odd_option, Part(session={"configOptions": [_ODD_TYPE]})
    ),
    Scenario(
        "odd category",
        "options of unknown categories",
        plays.odd_category,
        Part(session={"configOptions": _ODD_CATEGORY}),
    ),
    Scenario("late", "answers that come late", plays.late, Part(late=True)),
    Scenario("large", "large messages, and many", plays.large),
    Scenario("garbage", "lines that are no message", plays.garbage),
    Scenario("cancelled", "Ctrl-C in a turn", plays.cancelled),
    Scenario("gone", "the agent's process ends in a turn", plays.gone, ends=False),
)
"""Every scenario, in the order in which they run."""
