"""Recognises the format of a trace that another program wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from accord.trace.importing.conductor import read_conductor
from accord.trace.importing.devtools import read_database, read_export
from accord.trace.importing.imported import Imported, UnknownFormat
from accord.trace.importing.logs import TOAD, read_bare, read_toad, read_zed
from accord.trace.meaning import body_of

FORMATS = {
    "devtools": "the JSON export of acp-devtools",
    "devtools database": "the SQLite file of acp-devtools",
    "conductor": "the .jsons file of the Rust conductor",
    "zed": "the array that Zed copies from its ACP logs",
    "toad": "the log of Toad",
    "bare": "lines of JSON, one message each",
}
"""The formats that are read, and what they are."""

_SQLITE = b"SQLite format 3\0"


def import_trace(path: str | Path, *, session: int | None = None) -> Imported:
    """The trace in this file, whatever program of `FORMATS` wrote it.

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
    try:
        value = json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        return read_zed(filter(None, map(body_of, cast("list[Any]", value))))
    if isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("messages"), list):
        return read_export(cast("dict[str, Any]", value))
    return None


def _lines(content: bytes) -> Imported | None:
    lines = [line for line in content.split(b"\n") if line.strip()]
    read = [(line, value) for line in lines if (value := _object(line)) is not None]
    if not read:
        return read_toad(lines) if any(TOAD.match(line) for line in lines) else None
    first = read[0][1]
    if "accord-trace" in first:
        raise UnknownFormat("it is a trace of Accord already")
    if first.get("type") in ("request", "response", "notification") and "from" in first:
        return read_conductor([value for _, value in read])
    messages = [(line, value) for line, value in read if "method" in value or "id" in value]
    return read_bare(messages) if messages else None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
