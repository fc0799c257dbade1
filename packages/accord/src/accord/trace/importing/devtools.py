"""Traces of acp-devtools: its JSON export, and the SQLite file in which it keeps its sessions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from accord.trace.events import IN, OUT, TraceEvent
from accord.trace.importing.imported import Imported, UnknownFormat, frame_of
from accord.trace.meaning import body_of

TO_AGENT = "editor-to-agent"
_COLUMNS = "seq, timestamp, direction, raw"


def read_export(document: Mapping[str, Any]) -> Imported:
    """The trace in a JSON export."""
    given = cast("list[Any]", document.get("messages", []))
    return _imported(list(filter(None, map(body_of, given))), document.get("session"), "devtools")


def read_database(path: Path, session: int | None = None) -> Imported:
    """The trace of one session of the SQLite file: of the one that began last, if none is named."""
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
    events = [_event(message, began) for message in ordered]
    return Imported(
        name, events, started=_time(about.get("started_at") or about.get("startedAt") or began), command=_command(about)
    )


def _event(message: Mapping[str, Any], began: float) -> TraceEvent:
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
