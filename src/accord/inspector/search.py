"""`Search`: the rows of a trace that fit a query, found by scanning the file.

    query ──▶ filters on columns ──▶ text in the bytes ──▶ filters on content ──▶ rows

An index of words would cost half a minute and three times the space of the trace. A scan of 200 MB takes under a
second. It goes a slice at a time, so that other requests are answered meanwhile, and reads on when the trace grows.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, cast

from accord.inspector.findings import TraceFindings
from accord.inspector.index import TraceIndex
from accord.inspector.lines import ERROR
from accord.inspector.meaning import items, members
from accord.inspector.query import DIRECTIONS, LINE_KINDS, SIZES, UNITS, Query, bound_of
from accord.inspector.rows import message_of

SLICE = 4 * 1024 * 1024
"""Bytes of one step."""

MOST_DEPTH = 12
"""How deep paths are looked for in a message."""


class Search:
    """A search of one trace, which `step` carries on."""

    def __init__(self, index: TraceIndex, query: Query, findings: TraceFindings | None = None) -> None:
        self.index = index
        self._findings = findings
        self.query = query
        self.rows = array("I")
        """The rows found so far, in order."""
        self._next = 0
        self._needles = [_needles(text) for text in query.texts]
        self._filters = {name: query.values(name) for name, _ in query.filters}

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
        found = self._with_columns(range(first, last))
        if self._needles and found:
            found = self._with_texts(found, first, last)
        if "tool" in self._filters or "path" in self._filters or self._statuses():
            found = [row for row in found if self._has_content(row)]
        self.rows.extend(found)

    def _statuses(self) -> list[str]:
        return [value for value in self._filters.get("status", ()) if value != "error"]

    def _with_columns(self, rows: range) -> list[int]:
        """The rows that fit the filters on columns."""
        index, columns = self.index, self.index.columns
        found: list[int] = list(rows)
        for name, value in self.query.filters:
            if name == "method":
                wanted = index.methods.containing(value)
                found = [row for row in found if columns.method[row] in wanted]
            elif name == "kind":
                wanted = index.updates.containing(value)
                found = [row for row in found if columns.update[row] in wanted]
            elif name == "session":
                wanted = index.session_names.containing(value)
                found = [row for row in found if columns.session[row] in wanted]
            elif name == "dir":
                found = [row for row in found if columns.to_agent[row] == DIRECTIONS[value]]
            elif name == "is":
                found = [row for row in found if columns.kind[row] == LINE_KINDS[value]]
            elif name == "status" and value == "error":
                found = [row for row in found if columns.kind[row] == ERROR]
            elif name == "dur":
                bound = bound_of(name, value, UNITS)
                found = [row for row in found if (took := columns.latency(row)) is not None and bound.holds(took)]
            elif name == "size":
                bound = bound_of(name, value, SIZES)
                found = [row for row in found if bound.holds(columns.size(row))]
            elif name == "has":
                flagged = set(self._findings.rows if self._findings else ())
                found = [row for row in found if row in flagged]
            elif name == "turn":
                found = [row for row in found if (turn := index.turn_of(row)) and turn.number == int(value)]
        return found

    def _with_texts(self, rows: list[int], first: int, last: int) -> list[int]:
        """The rows whose lines contain every text."""
        offset = self.index.columns.offset
        begin = offset[first]
        end = offset[last] if last < len(offset) else self.index.columns.end
        data = self.index.reader.read(begin, end - begin).lower()
        wanted = set(rows)
        for variants in self._needles:
            hits: set[int] = set()
            for needle in variants:
                hits.update(_rows_with(needle, data, offset, first, last))
            wanted &= hits
            if not wanted:
                break
        return sorted(wanted)

    def _has_content(self, row: int) -> bool:
        params = members(message_of(self.index, row).get("params"))
        update = members(params.get("update")) or members(params.get("toolCall"))
        for value in self._statuses():
            if update.get("status") != value:
                return False
        for value in self._filters.get("tool", ()):
            names = " ".join(str(update.get(name, "")) for name in ("kind", "title", "name"))
            if "toolCallId" not in update or value.lower() not in names.lower():
                return False
        return all(any(_fits(path, value) for path in _paths(params)) for value in self._filters.get("path", ()))


def _needles(text: str) -> set[bytes]:
    """How a text may stand in JSON: as it is, or escaped; in lower case, as far as it is ASCII."""
    return {
        json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "replace").lower()
        for ascii_only in (True, False)
    }


def _rows_with(needle: bytes, data: bytes, offset: array[int], first: int, last: int) -> Iterator[int]:
    begin = offset[first]
    at = data.find(needle)
    row = first
    while at >= 0:
        row = bisect_right(offset, begin + at, row, last) - 1
        yield row
        if row + 1 >= last:
            return
        row += 1
        at = data.find(needle, offset[row] - begin)


def _fits(path: str, pattern: str) -> bool:
    return fnmatchcase(path.lower(), pattern.lower()) or fnmatchcase(path.rsplit("/", 1)[-1].lower(), pattern.lower())


def _paths(value: Any, depth: int = 0) -> Iterator[str]:
    """Every `path` in a message, and the paths of locations."""
    if depth > MOST_DEPTH:
        return
    if isinstance(value, dict):
        for name, member in cast("dict[str, Any]", value).items():
            if name == "path" and isinstance(member, str):
                yield member
            else:
                yield from _paths(member, depth + 1)
    else:
        for item in items(value)[:1_000]:
            yield from _paths(item, depth + 1)


def marks(search: Search, bins: int, begin: float, end: float) -> list[int]:
    """How many rows that were found each part of the time has."""
    times = search.index.columns.time
    found = [times[row] for row in search.rows]
    found.sort()
    width = max(end - begin, 1e-9) / bins
    edges = [bisect_left(found, begin + width * at) for at in range(bins)] + [len(found)]
    return [after - before for before, after in pairwise(edges)]
