"""What the checks of `accord_check` find in a trace, by the rows that show it.

The judge reads the messages after the index has them, a few at a time. It is not told that the trace is over, because a
trace may grow: a request that is still open is not a fault. It has a note, which says who waits for whom.

A trace that begins after the handshake, or holds several connections, is not judged: the judge would take what it does
not know for missing. Without the checker no trace is judged, and only open requests are shown.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

from accord import DecodeError
from accord.trace import IN, OUT, Direction, read_event
from accord.trace.unanswered import Unanswered
from accord_tools.inspector.index import TraceIndex
from accord_tools.inspector.lines import ANSWER, ERROR, NOTIFICATION, REQUEST
from accord_tools.inspector.rows import LARGE

if TYPE_CHECKING:
    from accord_check import Finding, Judge, Severity

STEP = 200
"""Messages of one step: about 12 ms of work."""

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
        self._rows: list[int] = []
        self._is_judged = True

    def __len__(self) -> int:
        return self._taken

    @property
    def is_behind(self) -> bool:
        """Whether messages wait to be judged."""
        return self._is_judged and self._next < min(len(self._index), MOST)

    @property
    def rows(self) -> list[int]:
        """The rows that show a finding of the checks, in order."""
        return self._rows

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
                    insort(self._rows, row)
                self._by_row.setdefault(row, []).append(finding)
        self._taken = len(judge.findings)

    def worst(self, row: int, count: int = 1) -> str:
        """The worst severity that this row and those after it show; empty if they show nothing."""
        found: set[str] = {"note"} if count == 1 and self._is_open(row) else set()
        for place in range(bisect_left(self._rows, row), len(self._rows)):
            if self._rows[place] >= row + count:
                break
            found.update(finding.severity for finding in self._by_row[self._rows[place]])
        return next((severity for severity in ORDER if severity in found), "")

    def plain(self, row: int) -> list[dict[str, Any]]:
        """What a row shows, as the page gets it."""
        return [*self._found(row), *self._open_request(row)]

    def _is_open(self, row: int) -> bool:
        columns = self._index.columns
        return columns.kind[row] == REQUEST and columns.pair[row] < 0

    def _open_request(self, row: int) -> list[dict[str, Any]]:
        if not self._is_open(row):
            return []
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
        plain = {"id": "open request", "severity": "note", "side": waits_for, "message": found.text}
        return [{**plain, "clause": "", "fix": found.advice, "url": "", "count": 1}]

    def _found(self, row: int) -> list[dict[str, Any]]:
        return [
            {
                "id": finding.id,
                "severity": finding.severity,
                "side": finding.side,
                "message": finding.message,
                "clause": finding.clause,
                "fix": finding.fix,
                "url": finding.url,
                "count": finding.count,
            }
            for finding in self._by_row.get(row, ())
        ]


def _judge(recorder_reads: Direction) -> Judge | None:
    """A judge of the checker; None if the checker is not installed."""
    try:
        from accord_check import Judge
    except ModuleNotFoundError as error:
        if error.name != "accord_check":
            raise
        return None
    return Judge(recorder_reads)
