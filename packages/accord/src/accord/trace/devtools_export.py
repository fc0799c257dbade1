"""A trace in the JSON format of acp-devtools, version 1, which its tools and its page read. PURE."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from accord.trace.entries import Entry, entries
from accord.trace.events import TraceEvent
from accord.trace.header import TraceHeader
from accord.trace.meaning import body_of

VERSION = 1


def as_devtools(header: TraceHeader, events: Iterable[TraceEvent], *, exported: datetime, tool: str) -> dict[str, Any]:
    """The messages of a trace in that format, which has neither standard error nor events of a process."""
    began = _milliseconds(header.started)
    found = [entry for entry in entries(events) if entry.event.frame is not None]
    messages = [_message(number, entry, began, flips=header.role == "agent") for number, entry in enumerate(found, 1)]
    name, _, version = tool.partition(" ")
    return {
        "version": VERSION,
        "exportedAt": round(exported.timestamp() * 1000),
        "tool": {"name": name, "version": version},
        "session": {
            "id": 1,
            "name": header.peer or None,
            "agentCommand": " ".join(header.command) or None,
            "clientName": _client(found),
            "startedAt": began,
            "endedAt": messages[-1]["timestamp"] if messages else None,
        },
        "messages": messages,
    }


def _message(number: int, entry: Entry, began: int, *, flips: bool) -> dict[str, Any]:
    event = entry.event
    raw = (event.frame or b"").decode("utf-8", "replace")
    message: dict[str, Any] = {
        "seq": number,
        "timestamp": began + round(event.time * 1000),
        "direction": "editor-to-agent" if (event.direction == "out") != flips else "agent-to-editor",
        "kind": _kind(entry),
        "raw": raw,
        "payload": _payload(raw),
    }
    if entry.method and entry.kind != "answer":
        message["method"] = entry.method
    if entry.kind in ("request", "answer"):
        message["rpcId"] = getattr(event.message, "id", None)
    return message


def _kind(entry: Entry) -> str:
    if entry.kind == "answer":
        return "error" if entry.status == "error" else "response"
    return entry.kind if entry.kind in ("request", "notification") else "unknown"


def _client(found: Iterable[Entry]) -> str | None:
    for entry in found:
        if entry.method == "initialize" and entry.kind == "request":
            name = body_of(entry.body.get("clientInfo")).get("name")
            return name if isinstance(name, str) else None
    return None


def _milliseconds(started: str) -> int:
    try:
        return round(datetime.fromisoformat(started).timestamp() * 1000)
    except ValueError:
        return 0


def _payload(raw: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
