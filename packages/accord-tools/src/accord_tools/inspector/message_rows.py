"""Rows of the table, and the whole of one message, in the form for the page.

A row is a short array, because a page of the table has two hundred. `Fields` names its places.

A row describes a message in a line: `tool_call` and `edit README.md → completed`. The descriptions are those of
`accord.trace.meaning`, shortened to a row.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, TypeAlias

from accord import DecodeError, Extension, v1
from accord.extensions import installed_extensions, notice_of
from accord.schema.base import tag_of
from accord.schema.codec import convert, loads
from accord.trace.meaning import Members, body_of, error_meaning, meaning, result_meaning, update_meaning
from accord_tools.inspector.trace_index import TraceIndex
from accord_tools.inspector.trace_lines import ANSWER, BROKEN, ERROR, LONGEST_NAME, NOTIFICATION, REQUEST, frame_of

LONGEST = 240
"""Characters of a detail. Rows are one line."""


def short(value: Any) -> str:
    """A value as a short text on one line."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
    return " ".join(text[: 4 * LONGEST].split())[:LONGEST]


def describe(method: str, update: str, message: Members, *, is_answer: bool) -> tuple[str, str]:
    """Return a message's kind and its description.

    >>> describe("session/cancel", "", {"params": {"sessionId": "s"}}, is_answer=False)
    ('session/cancel', '')
    """
    if is_answer and message.get("error") is not None:
        return f"{method or 'answer'} ✗", short(error_meaning(body_of(message["error"])))
    if is_answer:
        return f"{method or 'answer'} ✓", short(result_meaning(method, body_of(message.get("result"))))
    params = body_of(message.get("params"))
    if update:
        return update, short(update_meaning(update, body_of(params.get("update"))))
    return method, short(meaning(method, "", params))


LARGE = 256 * 1024
"""Bytes of a line from which on a row shows only its first bytes, and the detail only its beginning."""

HEAD = 400
"""Bytes of a large or broken line that its row shows."""

JOINED = 60
"""Chunks whose text the row of a run shows."""

RAW = 128 * 1024
"""Characters of a message that the detail shows before the reader asks for all."""


class Fields(IntEnum):
    """The places of a row."""

    NUMBER = 0
    TIME = 1
    TO_AGENT = 2
    KIND = 3
    SESSION = 4
    WHAT = 5
    DETAIL = 6
    SIZE = 7
    LATENCY = 8
    RUN = 9
    HOP = 10
    ID = 11
    FINDING = 12


Worst: TypeAlias = Callable[[int, int], str]
"""The worst finding of a row and this many after it."""


def row_of(index: TraceIndex, row: int, run: int = 1, worst: Worst | None = None) -> list[Any]:
    """Return a row of the table; `run` is how many messages it represents."""
    columns = index.columns
    message = message_of(index, row)
    what, detail = _words(index, row, message)
    if run > 1 and index.columns.update[row]:
        detail = _joined(index, row, run)
    return [
        row,
        columns.time[row],
        columns.to_agent[row],
        columns.kind[row],
        columns.session[row],
        what,
        detail,
        columns.size(row),
        columns.latency(row),
        run,
        index.hops[columns.hop[row]],
        short(message.get("id")),
        "" if worst is None else worst(row, run),
    ]


def rows_of_runs(index: TraceIndex, place: int, count: int, worst: Worst | None = None) -> list[list[Any]]:
    """Return rows of the collapsed table, one for each run, from this place on."""
    runs = index.columns.runs
    return [row_of(index, runs[at], index.run_length(at), worst) for at in range(place, min(place + count, len(runs)))]


def message_of(index: TraceIndex, row: int, most: int = LARGE) -> dict[str, Any]:
    """The message of a row as plain values; empty if its line has more than `most` bytes, or it is not an object."""
    if index.columns.size(row) > most:
        return {}
    return _loaded(index.frame(row) or b"")


def _loaded(frame: bytes) -> dict[str, Any]:
    try:
        return body_of(loads(frame))
    except DecodeError:
        return {}


def _words(index: TraceIndex, row: int, message: dict[str, Any]) -> tuple[str, str]:
    columns = index.columns
    kind = columns.kind[row]
    method, update = index.methods[columns.method[row]], index.updates[columns.update[row]]
    if kind in (REQUEST, NOTIFICATION, ANSWER, ERROR) and message:
        _name_tool_call(index, row, message)
        if update and (said := _of_extension(message)) is not None:
            return update, said
        method = short(message.get("method")) or method  # the index keeps a limited number of names
        return describe(method, update, message, is_answer=kind in (ANSWER, ERROR))
    if kind in (REQUEST, NOTIFICATION, ANSWER, ERROR):
        return update or method, f"{columns.size(row):,} bytes"
    line = index.line(row, HEAD)
    if kind == BROKEN:
        return "not a message", short(line.decode("utf-8", "replace"))
    return _event(line)


def _of_extension(message: dict[str, Any]) -> str | None:
    """Return an installed extension's text about an update; None for most updates."""
    update = body_of(body_of(message.get("params")).get("update"))
    extensions, kinds = _extensions()
    if update.get("_meta") is None and update.get("sessionUpdate") not in kinds:
        return None
    try:
        read = convert(update, v1.SessionUpdate)
    except DecodeError:
        return None
    said = notice_of(extensions, read)
    return None if said is None else short(": ".join(it for it in (said.title, said.description) if it))


@cache
def _extensions() -> tuple[list[type[Extension[Any]]], frozenset[str]]:
    """The installed extensions, and the kinds of update that they have."""
    found = installed_extensions()
    return found, frozenset(tag_of(it) or "" for extension in found for it in extension.updates)


def _name_tool_call(index: TraceIndex, row: int, message: dict[str, Any]) -> None:
    """Give an update of a tool call, or a question about it, the title that it began with."""
    params = body_of(message.get("params"))
    call = body_of(params.get("update")) or body_of(params.get("toolCall"))
    call_id = call.get("toolCallId")
    if not isinstance(call_id, str) or call.get("title"):
        return
    began = index.tool_calls.get((index.columns.session[row], call_id[:LONGEST_NAME]))
    if began is not None and began < row:
        update = body_of(body_of(message_of(index, began).get("params")).get("update"))
        call["title"] = update.get("title")


def _event(line: bytes) -> tuple[str, str]:
    """Describe a line without a message: a note, a line of standard error, or an event of a process."""
    found = _loaded(line)
    for name in ("stderr", "note"):
        if name in found:
            return name, short(found[name])
    rest = {name: value for name, value in found.items() if name not in ("t", "dir", "from", "to", "link")}
    name = next(iter(rest), "event")
    return short(name), short(str(rest.get(name, "")))


def _joined(index: TraceIndex, row: int, run: int) -> str:
    """The text of the first chunks of a run."""
    text = ""
    for at in range(row, row + min(run, JOINED)):
        update = body_of(body_of(message_of(index, at).get("params")).get("update"))
        said = body_of(update.get("content")).get("text")
        text += said if isinstance(said, str) else ""
        if len(text) > 240:
            break
    return short(text)


def detail_of(index: TraceIndex, row: int, *, whole: bool = False) -> dict[str, Any]:
    """Return all that the page shows of one message; its text is cut unless `whole`."""
    columns = index.columns
    line = index.line(row)
    frame = frame_of(line)
    text = (line if frame is None else frame).decode("utf-8", "replace")
    pair = columns.pair[row]
    turn = index.turn_of(row)
    what, words = _words(index, row, message_of(index, row))
    return {
        "number": row,
        "time": columns.time[row],
        "toAgent": bool(columns.to_agent[row]),
        "kind": columns.kind[row],
        "session": columns.session[row],
        "what": what,
        "detail": words,
        "method": index.methods[columns.method[row]],
        "size": columns.size(row),
        "latency": columns.latency(row),
        "pair": None if pair < 0 else pair,
        "part": None if turn is None else turn.number,
        "turn": 0 if turn is None else turn.prompt,
        "hop": index.hops[columns.hop[row]],
        "raw": text if whole else text[:RAW],
        "length": len(text),
    }
