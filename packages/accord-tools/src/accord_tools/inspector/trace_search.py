"""`Search`: the rows of a trace that match a query, found by scanning the file.

    query ──▶ filters on columns ──▶ text in the bytes ──▶ filters on content ──▶ rows

An index of words would cost half a minute and three times the space of the trace. A scan of 200 MB takes under a
second. It scans a slice at a time, so that other requests are answered meanwhile, and continues when the trace grows.

`TraceFindings` are the findings of `accord_check` in a trace, by the rows that show them. The judge reads the messages
after the index has them, a few at a time. It is never told the end of the trace, because a trace may grow: a request
that is still open is not a fault. It has a note with the side that must answer.

A trace that begins after the handshake, or contains several connections, is not judged: the judge would report unknown
parts as missing. Without the checker no trace is judged, and only open requests are shown.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from accord import DecodeError
from accord.trace import IN, OUT, Direction, read_event
from accord.trace.meaning import body_of, paths_in, statuses, tool_names
from accord.trace.query import Term, bound_of, needles, path_test
from accord.trace.statistics import Unanswered
from accord_tools.inspector.message_rows import LARGE, message_of
from accord_tools.inspector.trace_index import TraceIndex
from accord_tools.inspector.trace_lines import ANSWER, BROKEN, ERROR, EVENT, NOTE, NOTIFICATION, REQUEST, STDERR

if TYPE_CHECKING:
    from accord_check import Finding, Judge, Severity

STEP = 25
"""Messages of one step: about 2 ms of work, because other requests wait for its end."""

MOST = 50_000
"""Messages of a trace that are judged: each costs 60 us."""

ORDER: tuple[Severity, ...] = ("fail", "warn", "note")


class TraceFindings:
    """The findings of one trace, which `step` carries on."""

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._judge: Judge | None = None
        self._next = 0
        self._taken = 0
        self._by_row: dict[int, list[Finding]] = {}
        self.rows: list[int] = []
        """The rows that show a finding of the checks, in order."""
        self._is_judged = True

    def __len__(self) -> int:
        return self._taken

    @property
    def is_behind(self) -> bool:
        """Whether messages wait to be judged."""
        return self._is_judged and self._next < min(len(self._index), MOST)

    def shows(self, row: int) -> bool:
        """Whether a row shows a finding, or is a request without an answer."""
        return row in self._by_row or self._is_open(row)

    def step(self) -> None:
        """Judge the next messages."""
        index, columns = self._index, self._index.columns
        if self._next == 0 and not self._begins_well():
            self._is_judged = False
            return
        end = min(self._next + STEP, len(index), MOST)
        if self._judge is None:
            self._judge = _judge(IN if index.header.get("role") == "agent" else OUT)
        if self._judge is None:
            self._is_judged = False
            return
        for row in range(self._next, end):
            kind, is_small = columns.kind[row], columns.size(row) <= LARGE
            if kind in (REQUEST, NOTIFICATION, ANSWER, ERROR) and is_small and not columns.hop[row]:
                self._feed(self._judge, row)
        self._next = end
        self._take(self._judge)

    def _begins_well(self) -> bool:
        """Whether the first message is the handshake of the only connection."""
        columns = self._index.columns
        first = next((row for row in range(len(columns)) if columns.kind[row] == REQUEST), None)
        return (
            first is not None and self._index.methods[columns.method[first]] == "initialize" and not columns.hop[first]
        )

    def _feed(self, judge: Judge, row: int) -> None:
        try:
            judge.feed(read_event(self._index.line(row), row), row)
        except DecodeError:
            return

    def _take(self, judge: Judge) -> None:
        for finding in judge.findings[self._taken :]:
            for row in finding.events:
                if row not in self._by_row:
                    insort(self.rows, row)
                self._by_row.setdefault(row, []).append(finding)
        self._taken = len(judge.findings)

    def worst(self, row: int, count: int = 1) -> str:
        """Return the worst severity of this row and those after it; empty if they have none."""
        found: set[str] = {"note"} if count == 1 and self._is_open(row) else set()
        for place in range(bisect_left(self.rows, row), len(self.rows)):
            if self.rows[place] >= row + count:
                break
            found.update(finding.severity for finding in self._by_row[self.rows[place]])
        return next((severity for severity in ORDER if severity in found), "")

    def plain(self, row: int) -> list[dict[str, Any]]:
        """Return the findings of a row, in the form for the page."""
        found = [{name: getattr(finding, name) for name in _FINDING} for finding in self._by_row.get(row, ())]
        return [*found, *([self._open_request(row)] if self._is_open(row) else [])]

    def _is_open(self, row: int) -> bool:
        columns = self._index.columns
        return columns.kind[row] == REQUEST and columns.pair[row] < 0

    def _open_request(self, row: int) -> dict[str, Any]:
        index, columns = self._index, self._index.columns
        asked_by, waits_for = ("client", "agent") if columns.to_agent[row] else ("agent", "client")
        found = Unanswered(
            number=row + 1,
            method=index.methods[columns.method[row]],
            asked_by=asked_by,
            waits_for=waits_for,
            since=columns.time[row],
            waited=max(columns.time[-1] - columns.time[row], 0.0),
        )
        said = ("open request", "note", waits_for, found.text, "", found.advice, "", 1)
        return dict(zip(_FINDING, said, strict=True))


_FINDING = ("id", "severity", "side", "message", "clause", "fix", "url", "count")
"""The fields of a finding that the page gets."""


def _judge(recorder_reads: Direction) -> Judge | None:
    """Return a judge of the checker; None if the checker is not installed."""
    try:
        from accord_check import Judge
    except ModuleNotFoundError as error:
        if error.name != "accord_check":
            raise
        return None
    return Judge(recorder_reads)


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
"""Messages are decoded without a check of their bytes if at most one in this many remains."""

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
        """Return a test whether a row matches a filter, by its columns."""
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
        """Return a test whether a row matches a filter, by its message."""
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
        """Return the rows whose lines contain every text, and none of the negated ones."""
        wanted = set(rows)
        for variants, is_negated in self._texts:
            hits = set[int]().union(*map(lines.rows_with, variants))
            wanted = wanted - hits if is_negated else wanted & hits
            if not wanted:
                break
        return sorted(wanted)

    def _with_content(self, rows: Sequence[int], term: Term, lines: _Lines) -> Sequence[int]:
        """Return the rows whose messages match a filter. Only messages whose bytes may match are decoded."""
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
        """Return the rows whose lines contain these bytes, which are in lower case."""
        found = set[int]()
        data, offset, last = self._data, self._index.columns.offset, self._last
        begin = offset[self._first]
        at = data.find(needle)
        row = self._first
        while at >= 0:
            row = bisect_right(offset, begin + at, row, last) - 1
            found.add(row)
            if row + 1 >= last:
                break
            row += 1
            at = data.find(needle, offset[row] - begin)
        return found


def _marks_of(term: Term) -> Iterator[bytes]:
    """Return the bytes that each matching line must contain: the name of a member, and letters that JSON does not
    escape.
    """
    if term.key in MEMBERS:
        yield MEMBERS[term.key]
    if plain := max(_PLAIN.findall(term.value), key=len, default=""):
        yield plain.lower().encode()


def counts(times: Sequence[float], bins: int, begin: float, end: float) -> list[int]:
    """Return how many of these ascending times each of `bins` equal parts of the time from `begin` to `end` has."""
    width = max(end - begin, 1e-9) / bins
    edges = [bisect_left(times, begin + width * at) for at in range(bins)] + [bisect_left(times, end + 1e-9)]
    return [max(after - before, 0) for before, after in pairwise(edges)]
