"""The answers of the API to the page's questions about a trace, by path.

| path below `/api/traces/ID` | answers |
|---|---|
| `` | header, sessions, handshake, how far the trace is read |
| `/rows?from&n&view` | rows of the table; `view` is `runs`, `all` or a search's key |
| `/place?row&view` | the place of a message in a view |
| `/at?time` | the last message at a time |
| `/frame?row&whole` | all of one message |
| `/turns?from&n` | turns |
| `/spans?turn` | the spans of one turn, and where its time went |
| `/conversation?row&session` | the turn at a message, folded up to it |
| `/strip?bins&from&to&view` | counts over the time |
| `/latency` | how long the answers of each method took, and when |
| `/search?q` | starts or continues a search: its key, and how many it has found |

`export` asks the same questions and stores the answers.

In the answer to `latency`, a method with many answers has `MOST_POINTS` points: of each part of the trace the slowest,
because those are what people look for.
"""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any

from accord import AccordError
from accord.trace.query import FILTERS, TEXT, read_query
from accord_tools.inspector.folded_turn import Folds, settings_at
from accord_tools.inspector.library import Library, OpenTrace, UnknownTrace
from accord_tools.inspector.message_rows import describe, detail_of, message_of, row_of, rows_of_runs
from accord_tools.inspector.spans import TurnSpans
from accord_tools.inspector.trace_index import PROMPT, TraceIndex
from accord_tools.inspector.trace_lines import ANSWER, ERROR
from accord_tools.inspector.trace_search import Search, counts

MOST_BINS = 4_000


def strip_of(index: TraceIndex, bins: int, begin: float | None = None, end: float | None = None) -> dict[str, Any]:
    """Return counts for each of `bins` equal parts of the time from `begin` to `end`; by default of the whole trace.

    Times of a trace grow, except where two writers disagree by a little; so a bisection finds the rows of a part.
    """
    times = index.columns.time
    first = times[0] if times else 0.0
    last = times[-1] if times else 0.0
    begin = first if begin is None else begin
    end = last if end is None else end
    bins = max(1, min(bins, MOST_BINS))
    width = max(end - begin, 1e-9) / bins
    errors = [0] * bins
    for row in index.columns.errors:
        place = int((times[row] - begin) / width)
        if 0 <= place <= bins:
            errors[min(place, bins - 1)] += 1
    return {
        "begin": begin,
        "end": end,
        "counts": counts(times, bins, begin, end),
        "errors": errors,
    }


MOST_POINTS = 600
MOST_METHODS = 60


def latencies(index: TraceIndex) -> dict[str, Any]:
    """Return the methods with answers, sorted by their total time, the largest first.

    A point is `[time of the request, seconds, row of the request, 1 if it failed]`.
    """
    methods: dict[int, list[tuple[float, float, int, int]]] = {}
    columns = index.columns
    times, pairs = columns.time, columns.pair
    for row, kind in enumerate(columns.kind):
        if kind in (ANSWER, ERROR) and (asked := pairs[row]) >= 0:
            point = (times[asked], max(times[row] - times[asked], 0.0), asked, int(kind == ERROR))
            methods.setdefault(columns.method[row], []).append(point)
    found = [_method(index.methods[method], points) for method, points in methods.items()]
    found.sort(key=lambda it: -it["total"])
    return {"methods": found[:MOST_METHODS], "leftOut": max(len(found) - MOST_METHODS, 0)}


def _method(name: str, points: list[tuple[float, float, int, int]]) -> dict[str, Any]:
    took = sorted(point[1] for point in points)
    return {
        "method": name,
        "count": len(points),
        "errors": sum(point[3] for point in points),
        "total": sum(took),
        "p50": took[len(took) // 2],
        "p95": took[min(len(took) - 1, len(took) * 95 // 100)],
        "max": took[-1],
        "points": sorted(_slowest(points)),
    }


def _slowest(points: list[tuple[float, float, int, int]]) -> list[tuple[float, float, int, int]]:
    """Return all points, or the slowest of each part if there are too many."""
    if len(points) <= MOST_POINTS:
        return points
    size = -(-len(points) // MOST_POINTS)
    return [max(points[at : at + size], key=lambda point: point[1]) for at in range(0, len(points), size)]


MOST_ROWS = 500
MOST_TURNS = 2_000
STEPS = 16
"""Slices that a search scans before it answers with its progress."""


class BadRequest(AccordError):
    """A question with a parameter that is missing, or not a number."""


class Params:
    """The parameters of a question."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._parameters = given

    def number(self, name: str, default: int | None = None, most: int = 2**31) -> int:
        """A whole number that is not negative."""
        text = self._parameters.get(name)
        if text is None and default is not None:
            return default
        if text is None or not (text.isascii() and text.isdecimal() and len(text) < 12):
            raise BadRequest(f"{name!r} must be a whole number, got {text!r}")
        return min(int(text), most)

    def seconds(self, name: str) -> float | None:
        """Return a time; None if it is not set."""
        text = self._parameters.get(name)
        try:
            return None if text is None else float(text)
        except ValueError:
            raise BadRequest(f"{name!r} must be a number of seconds, got {text!r}") from None

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        return self._parameters.get(name, default)


async def answer(library: Library, path: str, params: Params) -> Any:
    """The answer to a path below `/api/`; raises AccordError."""
    words = path.strip("/").split("/")
    if words == ["traces"]:
        return library.listed()
    if words[0] != "traces" or len(words) > 3:
        raise UnknownTrace("no such question")
    trace = await library.open(words[1])
    name = words[2] if len(words) == 3 else ""
    if name == "search":
        return await _search(trace, params)
    question = QUESTIONS.get(name)
    if question is None:
        raise UnknownTrace("no such question")
    return question(trace, params)


def _summary(trace: OpenTrace, _: Params) -> Any:
    return {"name": trace.path.name, **summary_of(trace.index), **trace.status()}


def summary_of(index: TraceIndex) -> dict[str, Any]:
    """Return the header of a trace, its sessions, and both sides' descriptions of themselves."""
    request, reply = index.initialized or (None, None)
    return {
        "header": index.header,
        "version": index.version,
        "sessionList": [session.plain() for session in index.sessions[1:1001]],
        "client": {} if request is None else message_of(index, request).get("params"),
        "agent": {} if reply is None else message_of(index, reply).get("result"),
        "begin": index.columns.time[0] if len(index) else 0.0,
        "components": index.components(),
        "filters": [TEXT, *([", ".join(it.examples), it.shows] for it in FILTERS.values())],
    }


def _rows(trace: OpenTrace, params: Params) -> Any:
    index, view, worst = trace.index, params.text("view", "runs"), trace.findings.worst
    first, count = params.number("from"), params.number("n", 100, MOST_ROWS)
    if view == "runs":
        return {"total": len(index.columns.runs), "rows": rows_of_runs(index, first, count, worst)}
    if view == "all":
        shown: Any = range(first, min(first + count, len(index)))
        return {"total": len(index), "rows": [row_of(index, row, 1, worst) for row in shown]}
    rows = _found(trace, view).rows
    return {"total": len(rows), "rows": [row_of(index, row, 1, worst) for row in rows[first : first + count]]}


def _place(trace: OpenTrace, params: Params) -> Any:
    view, row = params.text("view", "runs"), params.number("row")
    if view == "runs":
        return {"place": trace.index.run_of(row)}
    if view == "all":
        return {"place": min(row, max(len(trace.index) - 1, 0))}
    return {"place": bisect_left(_found(trace, view).rows, row)}


def _row_at(trace: OpenTrace, params: Params) -> Any:
    return {"row": trace.index.row_at(params.seconds("time") or 0.0)}


def _frame(trace: OpenTrace, params: Params) -> Any:
    row = _row(trace, params)
    return {**detail_of(trace.index, row, whole=params.text("whole") == "1"), "findings": trace.findings.plain(row)}


def _row(trace: OpenTrace, params: Params) -> int:
    row = params.number("row")
    if row >= len(trace.index):
        raise UnknownTrace(f"the trace has {len(trace.index):,} messages; {row:,} is not among them")
    return row


def _turns(trace: OpenTrace, params: Params) -> Any:
    first, count = params.number("from", 0), params.number("n", 200, MOST_TURNS)
    return {
        "generation": trace.generation,
        "total": len(trace.index.turns),
        "turns": trace.index.turns[first : first + count],
    }


def _spans(trace: OpenTrace, params: Params) -> Any:
    turns, number = trace.index.turns, params.number("turn")
    if number >= len(turns):
        raise UnknownTrace(f"the trace has {len(turns):,} turns; {number:,} is not among them")
    return spans_of(trace.index, number)


def spans_of(index: TraceIndex, number: int) -> dict[str, Any]:
    """The spans of one turn."""
    turn = index.turns[number]
    after = index.sessions[turn.session].next_turn(turn)
    prompt = describe(PROMPT, "", message_of(index, turn.first), is_answer=False)[1] if turn.kind == "prompt" else ""
    return {
        "turn": turn,
        "prompt": prompt,
        **TurnSpans(index, turn, len(index) if after is None else after.first).plain(),
    }


def _conversation(trace: OpenTrace, params: Params) -> Any:
    return conversation_at(trace.index, trace.folds, _row(trace, params), params.number("session", 0))


def conversation_at(index: TraceIndex, folds: Folds, row: int, session: int = 0) -> dict[str, Any]:
    """The turn at a message, folded up to and with it; `session` is for messages of no session."""
    number = index.columns.session[row] or session or _session_before(index, row)
    if not 0 < number < len(index.sessions):
        return {"session": 0, "turn": None, "before": None, "after": None, "items": [], "leftOut": 0, "settings": {}}
    rows = index.sessions[number]
    turn, place = rows.turn_at(row), rows.place_at(row)
    return {
        "session": number,
        "name": rows.name,
        "row": row,
        "turn": turn,
        "before": rows.turns[place - 1].number if place > 0 else None,
        "after": rows.turns[place + 1].number if place + 1 < len(rows.turns) else None,
        **folds.at(number, turn, row + 1).plain(),
        "settings": settings_at(index, number, row + 1),
    }


def _session_before(index: TraceIndex, row: int) -> int:
    """The session of the last turn that began before a row of no session."""
    place = bisect_right(index.turns, row, key=lambda turn: turn.first)
    return index.turns[place - 1].session if place else 0


def _strip(trace: OpenTrace, params: Params) -> Any:
    bins = params.number("bins", 600, MOST_BINS)
    found = strip_of(trace.index, bins, params.seconds("from"), params.seconds("to"))
    view = params.text("view", "runs")
    if view not in ("runs", "all"):
        found["marks"] = counts(
            sorted(trace.index.columns.time[row] for row in _found(trace, view).rows),
            bins,
            found["begin"],
            found["end"],
        )
    return found


async def _search(trace: OpenTrace, params: Params) -> Any:
    text = params.text("q")
    key = "q" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    search = trace.search(key, read_query(text, is_of_page=True))
    for _ in range(STEPS):
        if search.is_done:
            break
        search.step()
        await asyncio.sleep(0)
    return {"key": key, "count": len(search.rows), "done": search.is_done}


def _found(trace: OpenTrace, key: str) -> Search:
    search = trace.known_search(key)
    if search is None:
        raise UnknownTrace("this search is not kept any more: search again")
    return search


def _latency(trace: OpenTrace, _: Params) -> Any:
    return latencies(trace.index)


QUESTIONS = {
    "": _summary,
    "rows": _rows,
    "place": _place,
    "at": _row_at,
    "frame": _frame,
    "turns": _turns,
    "spans": _spans,
    "conversation": _conversation,
    "strip": _strip,
    "latency": _latency,
}
"""The questions about a trace, beside searches."""
