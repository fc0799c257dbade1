"""The scenarios: each is one start of the client, with a part that our agent plays, and what happens in its first turn.

A client that sends a prompt and ends is enough for all of them. What it does not do is not exercised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from accord_check.client import plays
from accord_check.client.part import EVERYTHING, EVERYTHING_V2, INFO, OPTION, Part
from accord_check.client.played import Played
from accord_check.client.plays import Stage
from accord_check.client.settings import Profile

BOTH: tuple[Profile, ...] = ("smoke", "default")


class Scenario(NamedTuple):
    """One start of the client."""

    name: str
    shows: str
    play: Callable[[Played, Stage], Awaitable[None]]
    part: Part = Part()
    profiles: tuple[Profile, ...] = ("default",)
    versions: tuple[int, ...] = (1, 2)
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
_NEW: dict[str, Any] = {"_accord.check/future": {"deep": [1, {"er": None}]}, "accordCheckFuture": {}}
_FUTURE_V2: dict[str, Any] = {**EVERYTHING_V2, **_NEW, "session": {**EVERYTHING_V2["session"], **_NEW}}
_FUTURE: dict[str, Any] = {
    **EVERYTHING,
    "_accord.check/future": {"deep": [1, {"er": None}]},
    "accordCheckFuture": True,
    "sessionCapabilities": {**EVERYTHING["sessionCapabilities"], "accordCheckFuture": {}},
}

_LATER = Part(capabilities=_FUTURE, capabilities_v2=_FUTURE_V2)
_UNKNOWN_VERSION = Part(answer={"protocolVersion": 65535, "agentCapabilities": {}, "agentInfo": INFO})
_BARE = Part(capabilities={}, session={}, capabilities_v2={"session": {}}, session_v2={})


def _with_options(*options: dict[str, Any]) -> Part:
    renamed = [{"configId" if name == "id" else name: value for name, value in each.items()} for each in options]
    return Part(session={"configOptions": list(options)}, session_v2={"configOptions": renamed})


SCENARIOS = (
    Scenario("usual", "updates, questions, files, terminals, and unknown messages", plays.usual, profiles=BOTH),
    Scenario("bare", "an agent without capabilities", plays.bare, _BARE, BOTH),
    Scenario("version", "a version that no client speaks", plays.version, _UNKNOWN_VERSION, BOTH),
    Scenario(
        "future",
        "capabilities that do not exist yet",
        plays.future,
        _LATER,
    ),
    Scenario("odd option", "an option of an unknown type", plays.odd_option, _with_options(_ODD_TYPE)),
    Scenario(
        "odd category",
        "options of unknown categories",
        plays.odd_category,
        _with_options(*_ODD_CATEGORY),
    ),
    Scenario("late", "answers that come late", plays.late, Part(late=True)),
    Scenario("large", "large messages, and many", plays.large),
    Scenario("garbage", "lines that are no message", plays.garbage),
    Scenario("cancelled", "Ctrl-C in a turn", plays.cancelled),
    Scenario("gone", "the agent's process ends in a turn", plays.gone, ends=False),
)
"""Every scenario, in the order in which they run."""
