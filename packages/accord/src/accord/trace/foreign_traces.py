"""Converts traces of acp-devtools, the Rust conductor, Zed, Toad, and bare lines of JSON to ours, and ours to
acp-devtools.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from accord.errors import AccordError
from accord.trace import IN, OUT, Direction, TraceEvent
from accord.trace.meaning import body_of
from accord.trace.trace_entries import Entry, entries
from accord.trace.trace_file import TraceHeader


class UnknownFormat(AccordError):
    """A file that is not a trace of a known format, or is damaged."""


class Imported(msgspec.Struct):
    """A trace of another program, converted to our events."""

    format: str
    """The name of its format, see `FORMATS`."""
    events: list[TraceEvent]
    role: str = "tap"
    """`tap`: `in` is from the agent. `conductor` in a chain of components."""
    started: str = ""
    """The time in ISO 8601; empty if the file does not have it."""
    command: tuple[str, ...] = ()


def frame_of(message: Any) -> bytes:
    """A message that was decoded, as a frame."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# The Rust conductor: its `.jsons` say which components sent and received each message


def read_conductor(lines: Sequence[Mapping[str, Any]]) -> Imported:
    """The trace in these lines."""
    places = _places(lines)
    return Imported("conductor", [_conductor_event(line, places) for line in lines], role="conductor")


def _places(lines: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how far each component is from the client: `initialize` passes them one after another."""
    places: dict[str, int] = {}
    for line in lines:
        if line.get("type") == "request" and line.get("method") == "initialize":
            for name in (str(line.get("from")), str(line.get("to"))):
                places.setdefault(name, len(places))
    return places


def _conductor_event(line: Mapping[str, Any], places: Mapping[str, int]) -> TraceEvent:
    sender, to = str(line.get("from", "")), str(line.get("to", ""))
    last = len(places)
    direction = OUT if places.get(sender, last) < places.get(to, last + 1) else IN
    time = line.get("ts")
    seconds = float(time) if isinstance(time, int | float) else 0.0
    return TraceEvent(seconds, direction, frame_of(_conductor_message(line)), hop=(sender, to))


def _conductor_message(line: Mapping[str, Any]) -> dict[str, Any]:
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


# acp-devtools


TO_AGENT = "editor-to-agent"
_COLUMNS = "seq, timestamp, direction, raw"


def read_export(document: Mapping[str, Any]) -> Imported:
    """The trace in a JSON export."""
    given = cast("list[Any]", document.get("messages", []))
    return _imported(list(filter(None, map(body_of, given))), document.get("session"), "devtools")


def read_database(path: Path, session: int | None = None) -> Imported:
    """Read the trace of one session of the SQLite file: by default of the one that began last."""
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            chosen = "id = ?" if session is not None else "? IS NULL"
            row = database.execute(
                f"SELECT * FROM sessions WHERE {chosen} ORDER BY started_at DESC LIMIT 1",
                (session,),
            ).fetchone()
            if row is None:
                known = [it[0] for it in database.execute("SELECT id FROM sessions ORDER BY id")]
                raise UnknownFormat(f"no session {session} in {path}; it has {known or 'none'}")
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM messages WHERE session_id = ? ORDER BY seq",
                (row["id"],),
            ).fetchall()
    except sqlite3.Error as error:
        raise UnknownFormat(f"{path} is not a database of acp-devtools: {error}") from error
    about = dict(zip(row.keys(), tuple(row), strict=True))
    return _imported([dict(zip(it.keys(), tuple(it), strict=True)) for it in rows], about, "devtools database")


def _imported(messages: Iterable[Mapping[str, Any]], session: Any, name: str) -> Imported:
    about = body_of(session)
    ordered = sorted(messages, key=lambda it: _number(it.get("seq")))
    began = _number(ordered[0].get("timestamp")) if ordered else 0.0
    events = [_devtools_event(message, began) for message in ordered]
    return Imported(
        name, events, started=_time(about.get("started_at") or about.get("startedAt") or began), command=_command(about)
    )


def _devtools_event(message: Mapping[str, Any], began: float) -> TraceEvent:
    raw = message.get("raw")
    frame = raw.encode("utf-8", "replace") if isinstance(raw, str) else frame_of(message.get("payload"))
    direction = OUT if message.get("direction") == TO_AGENT else IN
    return TraceEvent((_number(message.get("timestamp")) - began) / 1000, direction, frame)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _time(value: Any) -> str:
    if isinstance(value, int | float) and value > 0:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")
    return value if isinstance(value, str) else ""


def _command(about: Mapping[str, Any]) -> tuple[str, ...]:
    given = about.get("agent_command") or about.get("agentCommand")
    if isinstance(given, str):
        try:
            parsed = json.loads(given)
        except ValueError:
            parsed = given
        given = parsed
    if isinstance(given, list):
        return tuple(str(word) for word in cast("list[Any]", given))
    try:
        return tuple(shlex.split(given)) if isinstance(given, str) else ()
    except ValueError:
        return (str(given),)


# Zed, Toad and bare lines of JSON: messages without times


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

    Toad logs its own messages as Python writes them (0.6.20), and the agent's unchanged.
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
    """Return a message that is logged as a Python literal; any other is returned unchanged."""
    try:
        found = ast.literal_eval(content.decode())
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # JSON with `true`, or no literal at all
        return content
    return frame_of(found) if isinstance(found, dict) else content


def read_bare(messages: Sequence[tuple[bytes, Mapping[str, Any]]]) -> Imported:
    """Read bare lines of JSON. The sender of a message follows from its method: the side that sends `initialize` is the
    client.
    """
    senders = _Senders()
    return Imported("bare", [TraceEvent(0.0, senders.direction(message), frame) for frame, message in messages])


class _Senders:
    """The senders of messages, as far as their methods and the open requests show them."""

    def __init__(self) -> None:
        self._open: dict[str, list[Direction]] = {}

    def direction(self, message: Mapping[str, Any]) -> Direction:
        method, number = message.get("method"), repr(message.get("id"))
        if not isinstance(method, str):
            # Both sides may use the same ids: the request that was sent last is answered first, mostly.
            waiting = self._open.get(number)
            return OUT if waiting and waiting.pop() == IN else IN
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


FORMATS = {
    "devtools": "the JSON export of acp-devtools",
    "devtools database": "the SQLite file of acp-devtools",
    "conductor": "the .jsons file of the Rust conductor",
    "zed": "the array that Zed copies from its ACP logs",
    "toad": "the log of Toad",
    "bare": "lines of JSON, one message each",
}
"""The supported formats, and their descriptions."""

_SQLITE = b"SQLite format 3\0"


def import_trace(path: str | Path, *, session: int | None = None) -> Imported:
    """Return the trace in this file, whichever program of `FORMATS` wrote it.

    `session` chooses one of a database; by default the one that began last. Raises AccordError if the format is not
    known.
    """
    path = Path(path)
    with path.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    if is_database:
        return read_database(path, session)
    if session is not None:
        raise UnknownFormat(f"{path} is not a database, so it has no session {session}; leave the session out")
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    found = _document(content) or _lines(content)
    if found is None or not found.events:
        known = "; ".join(FORMATS.values())
        raise UnknownFormat(f"{path} has no messages in a known format; known are: {known}")
    return found


def _document(content: bytes) -> Imported | None:
    """The trace in a file that is one JSON value."""
    value = _json(content.decode("utf-8", "replace"))
    if isinstance(value, list):
        return read_zed(filter(None, map(body_of, cast("list[Any]", value))))
    document = body_of(value)
    return read_export(document) if isinstance(document.get("messages"), list) else None


def _lines(content: bytes) -> Imported | None:
    lines = [line for line in content.split(b"\n") if line.strip()]
    values = [(line, _json(line.decode("utf-8", "replace"))) for line in lines]
    read = [(line, body_of(value)) for line, value in values if isinstance(value, dict)]
    if not read:
        return read_toad(lines) if any(TOAD.match(line) for line in lines) else None
    first = read[0][1]
    if "accord-trace" in first:
        raise UnknownFormat("it is a trace of Accord already")
    if first.get("type") in ("request", "response", "notification") and "from" in first:
        return read_conductor([value for _, value in read])
    messages = [(line, value) for line, value in read if "method" in value or "id" in value]
    return read_bare(messages) if messages else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# Our trace for acp-devtools


def as_devtools(header: TraceHeader, events: Iterable[TraceEvent], *, exported: datetime, tool: str) -> dict[str, Any]:
    """A trace in the JSON of acp-devtools, version 1, which has neither standard error nor events of a process."""
    began = round(header.timestamp * 1000)
    found = [entry for entry in entries(events) if entry.event.frame is not None]
    messages = [
        _devtools_message(number, entry, began, flips=header.role == "agent") for number, entry in enumerate(found, 1)
    ]
    name, _, version = tool.partition(" ")
    return {
        "version": 1,
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


def _devtools_message(number: int, entry: Entry, began: int, *, flips: bool) -> dict[str, Any]:
    event = entry.event
    raw = (event.frame or b"").decode("utf-8", "replace")
    message: dict[str, Any] = {
        "seq": number,
        "timestamp": began + round(event.time * 1000),
        "direction": TO_AGENT if (event.direction == "out") != flips else "agent-to-editor",
        "kind": _kind(entry),
        "raw": raw,
        "payload": _json(raw),
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
