"""Logs of Zed and Toad, and bare lines of JSON: messages without times. PURE."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accord.trace.events import IN, OUT, Direction, TraceEvent
from accord.trace.importing.imported import Imported, frame_of

TOAD = re.compile(rb"^(?:.*?\s)?\[(client|agent|error)\] (.*)$")


def read_zed(entries: Iterable[Mapping[str, Any]]) -> Imported:
    """The array that Zed copies from its panel of logs; `outgoing` is from Zed."""
    events: list[TraceEvent] = []
    for entry in entries:
        message = {"jsonrpc": "2.0", **{key: value for key, value in entry.items() if not key.startswith("_")}}
        direction = OUT if entry.get("_direction") == "outgoing" else IN
        if entry.get("_type") in ("stderr", "error") and "method" not in entry and "id" not in entry:
            events.append(TraceEvent(0.0, IN, stderr=str(entry.get("message") or entry.get("line") or entry)))
        else:
            events.append(TraceEvent(0.0, direction, frame_of(message)))
    return Imported("zed", events)


def read_toad(lines: Iterable[bytes]) -> Imported:
    """The log of Toad: `[client] {...}`, `[agent] {...}`, `[error] ...`.

    What Toad sends is logged as Python writes it (0.6.20), and what the agent sends as it came.
    """
    events: list[TraceEvent] = []
    for line in lines:
        found = TOAD.match(line.rstrip(b"\r\n"))
        if found is None:
            continue
        who, content = found.groups()
        if who == b"error":
            events.append(TraceEvent(0.0, IN, stderr=content.decode("utf-8", "replace")))
        else:
            sent = who == b"client"
            events.append(TraceEvent(0.0, OUT if sent else IN, _from_python(content) if sent else content))
    return Imported("toad", events)


def _from_python(content: bytes) -> bytes:
    """A message that stands in a log as a Python literal; any other is returned as it is."""
    try:
        found = ast.literal_eval(content.decode())
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # JSON with `true`, or no literal at all
        return content
    return frame_of(found) if isinstance(found, dict) else content


def read_bare(messages: Sequence[tuple[bytes, Mapping[str, Any]]]) -> Imported:
    """Bare lines of JSON. Who sent a message follows from its method: whoever sends `initialize` is the client."""
    guess = _Guess()
    return Imported("bare", [TraceEvent(0.0, guess.direction(message), frame) for frame, message in messages])


class _Guess:
    """Who sent each message, as far as its method and the open requests tell."""

    def __init__(self) -> None:
        self._open: dict[str, list[Direction]] = {}

    def direction(self, message: Mapping[str, Any]) -> Direction:
        method, number = message.get("method"), repr(message.get("id"))
        if not isinstance(method, str):
            # Both sides may use the same ids: the request that was sent last is answered first, mostly.
            waiting = self._open.get(number)
            return _other(waiting.pop()) if waiting else IN
        direction = sender_of(method)
        if "id" in message:
            self._open.setdefault(number, []).append(direction)
        return direction


def sender_of(method: str) -> Direction:
    """The side that sends this method: `out` is the client."""
    from accord.schema.methods import methods

    for version in (1, 2):
        table = methods(version)
        row = table.request(method) or table.notification(method)
        if row is not None:
            return OUT if row.to == "agent" else IN
    return OUT


def _other(direction: Direction) -> Direction:
    return IN if direction == OUT else OUT
