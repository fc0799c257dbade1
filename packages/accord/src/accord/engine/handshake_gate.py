"""The gate: what an agent does with messages before the handshake, and with a second handshake.

The handshake is the request that opens a connection: `initialize`, or `proxy/initialize` for a proxy.

| | before the handshake | while it is being answered | answered, repeatable | afterwards |
|---|---|---|---|---|
| the handshake | passes | -32600 | passes | -32600 |
| another request | -32600 | waits | passes | passes |
| a notification | ignored | waits | passes | passes |

A handshake is repeatable where the version of the protocol says so (version 2), until another request passes.

The messages that wait are counted (see `flow_control`): past a limit the connection stops reading.

After a handshake that was answered with an error the gate is in the state from before it, and the messages that waited
are refused or ignored in that state.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.open_requests import key_of
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame

Passage = Literal["pass", "wait", "refuse", "ignore"]
State = Literal["before", "during", "repeatable", "after"]
Kind = Literal["handshake", "call", "tell"]

_PASSAGES: dict[tuple[State, Kind], Passage] = {
    ("before", "handshake"): "pass",
    ("before", "call"): "refuse",
    ("before", "tell"): "ignore",
    ("during", "handshake"): "refuse",
    ("during", "call"): "wait",
    ("during", "tell"): "wait",
    ("repeatable", "handshake"): "pass",
    ("repeatable", "call"): "pass",
    ("repeatable", "tell"): "pass",
    ("after", "handshake"): "refuse",
    ("after", "call"): "pass",
    ("after", "tell"): "pass",
}

_PROBLEMS: dict[State, str] = {
    "before": "initialize must come before {method}",
    "during": "another initialize has not been answered yet",
    "repeatable": "the connection is already initialized",
    "after": "the connection is already initialized",
}
"""Why a request is refused."""


class HandshakeGate:
    """Decides which messages may pass, and keeps those that wait. Pure."""

    __slots__ = ("_calls", "_earlier", "state", "waiting")

    def __init__(self) -> None:
        self.state: State = "before"
        self._earlier: State = "before"
        """The state from before the handshake that is being answered."""
        self.waiting: list[RequestFrame | NotificationFrame] = []
        self._calls: set[Hashable] = set()
        """The ids of the calls among them, by `key_of`."""

    def passage(self, message: RequestFrame | NotificationFrame, *, handshake: bool = False) -> Passage:
        """What to do with this message; `handshake` is the trait of its class. One that waits is kept here."""
        kind: Kind = "handshake" if handshake else "tell" if isinstance(message, NotificationFrame) else "call"
        passage = _PASSAGES[self.state, kind]
        if passage == "pass" and handshake:
            self._earlier, self.state = self.state, "during"
        elif passage == "pass" and kind == "call":
            self.state = "after"
        elif passage == "wait":
            self.keep(message)
        return passage

    def keep(self, message: RequestFrame | NotificationFrame) -> None:
        """Let this message wait for the answer to the handshake."""
        self.waiting.append(message)
        if isinstance(message, RequestFrame):
            self._calls.add(key_of(message.id))

    def keeps(self, request_id: RequestId | None) -> bool:
        """Whether a call with this id waits."""
        return request_id is not None and key_of(request_id) in self._calls

    def answered(self, *, well: bool, repeatable: bool = False) -> list[RequestFrame | NotificationFrame]:
        """The handshake has been answered. Returns the messages that waited: each has to ask for its passage again."""
        self.state = self._earlier if not well else "repeatable" if repeatable else "after"
        waiting, self.waiting, self._calls = self.waiting, [], set()
        return waiting

    def problem(self, message: RequestFrame) -> str:
        """Why this request was refused."""
        return _PROBLEMS[self.state].format(method=message.method)
