"""The gate: what an agent does with messages before `initialize`, and with a second `initialize`.

| | before `initialize` | while it is being answered | afterwards |
|---|---|---|---|
| `initialize` | goes through | -32600 | -32600 |
| another request | -32600 | waits | goes through |
| a notification | ignored | waits | goes through |

What waits is counted by the connection (`backlog`), which stops reading past its limit.

An `initialize` that was answered with an error leaves the gate as it was before it, and what waited is refused.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from accord.jsonrpc.endpoint import key_of
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Call, Tell

INITIALIZERS = frozenset({"initialize", "proxy/initialize", "_proxy/initialize"})

Passage = Literal["pass", "wait", "refuse", "ignore"]
State = Literal["before", "during", "after"]
Kind = Literal["initialize", "call", "tell"]

_PASSAGES: dict[tuple[State, Kind], Passage] = {
    ("before", "initialize"): "pass",
    ("before", "call"): "refuse",
    ("before", "tell"): "ignore",
    ("during", "initialize"): "refuse",
    ("during", "call"): "wait",
    ("during", "tell"): "wait",
    ("after", "initialize"): "refuse",
    ("after", "call"): "pass",
    ("after", "tell"): "pass",
}


def _kind(message: Call | Tell) -> Kind:
    if isinstance(message, Tell):
        return "tell"
    return "initialize" if message.method in INITIALIZERS else "call"


class Gate:
    """Decides which messages may pass, and keeps those that wait. Pure."""

    __slots__ = ("_calls", "state", "waiting")

    def __init__(self) -> None:
        self.state: State = "before"
        self.waiting: list[Call | Tell] = []
        self._calls: set[Hashable] = set()
        """The ids of the calls among them, by `key_of`."""

    def passage(self, message: Call | Tell) -> Passage:
        kind = _kind(message)
        passage = _PASSAGES[self.state, kind]
        if kind == "initialize" and passage == "pass":
            self.state = "during"
        elif passage == "wait":
            self.keep(message)
        return passage

    def keep(self, message: Call | Tell) -> None:
        """Let this message wait for the answer to `initialize`."""
        self.waiting.append(message)
        if isinstance(message, Call):
            self._calls.add(key_of(message.id))

    def keeps(self, request_id: RequestId | None) -> bool:
        """Whether a call with this id waits."""
        return request_id is not None and key_of(request_id) in self._calls

    def initialized(self, *, well: bool) -> list[Call | Tell]:
        """`initialize` has been answered; what waited, to be looked at again."""
        self.state = "after" if well else "before"
        waiting, self.waiting, self._calls = self.waiting, [], set()
        return waiting

    def problem(self, message: Call) -> str:
        if message.method in INITIALIZERS:
            return (
                "the connection is already initialized"
                if self.state == "after"
                else "another initialize has not been answered yet"
            )
        return f"initialize must come before {message.method}"
