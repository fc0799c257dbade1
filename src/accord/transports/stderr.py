"""What an agent says on its standard error: its last words for errors, and its lines for whoever wants them."""

from __future__ import annotations

import logging
from collections.abc import Callable

LONGEST_LINE = 64 * 1024
"""A line is handed on in pieces of this size, so that one without an end is not kept."""

_log = logging.getLogger("accord.transports")


class StderrTail:
    """Keeps the last `size` bytes of it, and hands it on line by line."""

    def __init__(self, size: int, on_line: Callable[[str], None] | None) -> None:
        self._size = size
        self._on_line = on_line
        self._tail = bytearray()
        self._line = b""

    @property
    def text(self) -> str:
        return self._tail[-self._size :].decode(errors="replace") if self._size else ""

    def feed(self, chunk: bytes) -> None:
        self._tail += chunk
        if len(self._tail) > 2 * self._size:  # cut rarely: each cut moves what is kept
            del self._tail[: -self._size or None]
        if self._on_line is not None:
            *lines, self._line = (self._line + chunk).split(b"\n")
            for line in lines:
                self._say(line)
            while len(self._line) > LONGEST_LINE:
                self._say(self._line[:LONGEST_LINE])
                self._line = self._line[LONGEST_LINE:]

    def finish(self) -> None:
        """Nothing follows: a last line without its newline is a line, too."""
        if self._line:
            line, self._line = self._line, b""
            self._say(line)

    def _say(self, line: bytes) -> None:
        assert self._on_line is not None
        try:
            self._on_line(line.rstrip(b"\r").decode(errors="replace"))
        except Exception:  # stderr is drained whatever its listener does
            _log.exception("the listener to an agent's stderr failed")
