"""The record of a run: every conversation of it in one trace file, so that a finding can name its lines."""

from __future__ import annotations

import io
from pathlib import Path

from accord import TraceEvent, TraceFile
from accord_check.finding import Side


class Recording:
    """Keeps the conversations of a run in memory, as the lines of one trace file. Secrets in it are masked."""

    def __init__(self) -> None:
        self._file = io.BytesIO()
        self._lines = 0
        self._trace: TraceFile | None = None

    def begin(self, peer: str, role: Side = "client") -> None:
        """Begin another conversation, in which we have this role."""
        self._trace = TraceFile(self._file, role=role, peer=peer)
        self._lines += 1

    def add(self, event: TraceEvent) -> int:
        """Record an event; returns its number: one less than its line, as the first line of a file is no event."""
        if self._trace is None:
            raise RuntimeError("begin a conversation before you record its events")
        self._trace(event)
        self._lines += 1
        return self._lines - 1

    def append(self, other: Recording) -> int:
        """Append the conversations of another recording; returns what their events' numbers have grown by."""
        grown = self._lines
        self._file.write(other._file.getvalue())
        self._lines += other._lines
        return grown

    def write(self, path: str | Path) -> None:
        """Write the trace file. Only its owner can read it."""
        # A TraceFile makes the file as a trace must be: private, and never through a link.
        TraceFile(path).close()
        Path(path).write_bytes(self._file.getvalue())
