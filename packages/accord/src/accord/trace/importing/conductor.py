"""Traces of the Rust conductor (`.jsons`): each message with the components that sent and received it. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accord.trace.events import IN, OUT, TraceEvent
from accord.trace.importing.imported import Imported, frame_of


def read_conductor(lines: Sequence[Mapping[str, Any]]) -> Imported:
    """The trace in these lines."""
    places = _places(lines)
    return Imported("conductor", [_event(line, places) for line in lines], role="conductor")


def _places(lines: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How far each component is from the client: `initialize` passes them one after another."""
    places: dict[str, int] = {}
    for line in lines:
        if line.get("type") == "request" and line.get("method") == "initialize":
            for name in (str(line.get("from")), str(line.get("to"))):
                places.setdefault(name, len(places))
    return places


def _event(line: Mapping[str, Any], places: Mapping[str, int]) -> TraceEvent:
    sender, to = str(line.get("from", "")), str(line.get("to", ""))
    last = len(places)
    direction = OUT if places.get(sender, last) < places.get(to, last + 1) else IN
    time = line.get("ts")
    seconds = float(time) if isinstance(time, int | float) else 0.0
    return TraceEvent(seconds, direction, frame_of(_message(line)), hop=(sender, to))


def _message(line: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if "id" in line:
        message["id"] = line["id"]
    if line.get("type") == "response":
        message["error" if line.get("is_error") else "result"] = line.get("payload")
        return message
    message["method"] = line.get("method")
    if line.get("params") is not None:
        message["params"] = line["params"]
    return message
