"""`Search`: the rows of a trace that fit a query, found by scanning the file.

    query ──▶ filters on columns ──▶ text in the bytes ──▶ filters on content ──▶ rows

An index of words would cost half a minute and three times the space of the trace. A scan of 200 MB takes under a
second. It goes a slice at a time, so that other requests are answered meanwhile, and reads on when the trace grows.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from accord.trace.meaning import body_of, paths_in, statuses, tool_names
from accord.trace.query import Term, bound_of, needles, path_test
from accord_tools.inspector.findings import TraceFindings
from accord_tools.inspector.index import TraceIndex
from accord_tools.inspector.lines import ANSWER, BROKEN, ERROR, EVENT, NOTE, NOTIFICATION, REQUEST, STDERR
from accord_tools.inspector.rows import message_of

SLICE = 4 * 1024 * 1024
"""Bytes of one step."""

LINE_KINDS = {
    "request": (REQUEST,),
    "answer": (ANSWER, ERROR),
    "error": (ERROR,),
    "notification": (NOTIFICATION,),
    "stderr": (STDERR,),
    "process": (EVENT,),
    "note": (NOTE,),
    "malformed": (BROKEN,),
}
STATES = {"ok": ANSWER, "error": ERROR}
"""The states of an answer; all others are in messages."""
READ = ("tool", "path")
"""Filters for which the messages have to be read."""
MEMBERS = {"tool": b'"toolcallid"', "path": b'"path"'}
"""The member, in lower case, that a message must have for such a filter."""
FEW = 50
"""Messages are decoded without a look at their bytes if they are at most one of so many."""

_PLAIN = re.compile(r"[A-Za-z0-9]+")


class Search:
    """A search of one trace, which `step` carries on."""

    def __init__(self, index: TraceIndex, query: tuple[Term, ...], findings: TraceFindings | None = None) -> None:
        self.index = index
        self._findings = findings
        self.rows = array("I")
        """The rows found so far, in order."""
        self._next = 0
        self._texts = [(needles(term.value), term.is_negated) for term in query if not term.key]
        self._read = [term for term in query if term.key in READ or (term.key == "status" and term.value not in STATES)]
        self._columns = [term for term in query if term.key and term not in self._read]

    @property
    def is_done(self) -> bool:
        """Whether all messages that are indexed have been searched."""
        return self._next >= len(self.index)

    def step(self) -> None:
        """Search the next slice."""
        columns = self.index.columns
        first = self._next
        if first >= len(columns):
            return
        last = bisect_right(columns.offset, columns.offset[first] + SLICE)
        self._next = last
        found: Sequence[int] = range(first, last)
        for term in self._columns:
            fits = self._column_test(term)
            found = [row for row in found if fits(row) is not term.is_negated]
        lines = _Lines(self.index, first, last)
        if self._texts and found:
            found = self._with_texts(found, lines)
        for term in self._read:
            found = self._with_content(found, term, lines)
        self.rows.extend(found)

    def _column_test(self, term: Term) -> Callable[[int], bool]:
        """Whether a row fits a filter, as its columns tell."""
        index, columns = self.index, self.index.columns
        key, value = term.key, term.value
        if key == "method":
            methods, named = columns.method, index.methods.containing(value)
            return lambda row: methods[row] in named
        if key == "kind":
            kinds, updates, named = columns.kind, columns.update, index.updates.containing(value)
            wanted = LINE_KINDS.get(value.lower(), ())
            return lambda row: kinds[row] in wanted or updates[row] in named
        if key == "session":
            sessions, named = columns.session, index.session_names.containing(value)
            return lambda row: sessions[row] in named
        if key == "dir":
            to_agent, side = columns.to_agent, index.is_towards_agent(value)
            return lambda row: to_agent[row] == side
        if key == "status":
            kinds, state = columns.kind, STATES[value]
            return lambda row: kinds[row] == state
        if key == "dur":
            return self._duration_test(value)
        if key == "size":
            bound = bound_of(key, value)
            return lambda row: bound.holds(columns.size(row))
        if key == "has":
            return (self._findings or TraceFindings(index)).shows
        number = int(value)
        return lambda row: (turn := index.turn_of(row)) is not None and turn.number == number

    def _duration_test(self, value: str) -> Callable[[int], bool]:
        columns, bound = self.index.columns, bound_of("dur", value)
        kinds = columns.kind

        def test(row: int) -> bool:
            took = columns.latency(row) if kinds[row] in (ANSWER, ERROR) else None
            return took is not None and bound.holds(took)

        return test

    def _content_test(self, term: Term) -> Callable[[int], bool]:
        """Whether a row fits a filter, as its message tells."""
        key, value = term.key, term.value
        wanted, fits = value.lower(), path_test(value)

        def test(row: int) -> bool:
            message = message_of(self.index, row)
            body = body_of(message.get("params") or message.get("result"))
            if key == "path":
                return any(fits(path) for path in paths_in(body))
            content = body_of(body.get("update")) or body
            if key == "tool":
                return any(wanted in name.lower() for name in tool_names(content))
            return value in statuses(content)

        return test

    def _with_texts(self, rows: Sequence[int], lines: _Lines) -> Sequence[int]:
        """The rows whose lines contain every text, and none of the negated ones."""
        wanted = set(rows)
        for variants, is_negated in self._texts:
            hits = set[int]().union(*map(lines.rows_with, variants))
            wanted = wanted - hits if is_negated else wanted & hits
            if not wanted:
                break
        return sorted(wanted)

    def _with_content(self, rows: Sequence[int], term: Term, lines: _Lines) -> Sequence[int]:
        """The rows whose messages fit a filter. Only messages whose bytes may fit are decoded."""
        fits = self._content_test(term)
        read = rows
        if len(rows) * FEW > lines.count:
            read = sorted(set(rows).intersection(*map(lines.rows_with, _marks_of(term))))
        fitting = {row for row in read if fits(row)}
        return [row for row in rows if (row in fitting) is not term.is_negated]


class _Lines:
    """The lines of some rows, searched for bytes in any case."""

    def __init__(self, index: TraceIndex, first: int, last: int) -> None:
        self.count = last - first
        self._index = index
        self._first, self._last = first, last

    @cached_property
    def _data(self) -> bytes:
        columns = self._index.columns
        begin = columns.offset[self._first]
        end = columns.offset[self._last] if self._last < len(columns.offset) else columns.end
        return self._index.reader.read(begin, end - begin).lower()

    def rows_with(self, needle: bytes) -> set[int]:
        """The rows whose lines contain these bytes, which are in lower case."""
        return set(self._rows_with(needle))

    def _rows_with(self, needle: bytes) -> Iterator[int]:
        data, offset, last = self._data, self._index.columns.offset, self._last
        begin = offset[self._first]
        at = data.find(needle)
        row = self._first
        while at >= 0:
            row = bisect_right(offset, begin + at, row, last) - 1
            yield row
            if row + 1 >= last:
                return
            row += 1
            at = data.find(needle, offset[row] - begin)


def _marks_of(term: Term) -> Iterator[bytes]:
    """What each line that fits must contain: the name of a member, and letters that JSON does not escape."""
    if term.key in MEMBERS:
        yield MEMBERS[term.key]
    if plain := max(_PLAIN.findall(term.value), key=len, default=""):
        yield plain.lower().encode()


def marks(search: Search, bins: int, begin: float, end: float) -> list[int]:
    """How many rows that were found each part of the time has."""
    times = search.index.columns.time
    found = [times[row] for row in search.rows]
    found.sort()
    width = max(end - begin, 1e-9) / bins
    edges = [bisect_left(found, begin + width * at) for at in range(bins)] + [len(found)]
    return [after - before for before, after in pairwise(edges)]
