"""Reads an agent's standard error: keeps its end for error messages, and passes lines to a callback."""

from __future__ import annotations

import logging
from collections.abc import Callable

LONGEST_LINE = 64 * 1024
"""Bytes of a line; a longer one is passed on in parts, so that an endless line is not kept."""

_log = logging.getLogger("accord.transports")


class StderrTail:
    """Keeps the last `size` bytes and calls `on_line` with each line."""

    def __init__(self, size: int, on_line: Callable[[str], object] | None) -> None:
        self._size = size
        self._on_line = on_line
        self.is_telling = False
        """Whether `on_line` is being called; a chunk that came now would overtake lines before it."""
        self._tail = bytearray()
        self._line = b""

    @property
    def text(self) -> str:
        """The bytes that are kept, as text."""
        return self._tail[-self._size :].decode(errors="replace") if self._size else ""

    def feed(self, chunk: bytes) -> None:
        """Add a chunk."""
        self._tail += chunk
        if len(self._tail) > 2 * self._size:  # cut rarely: each cut moves the kept bytes
            del self._tail[: -self._size or None]
        if self._on_line is not None:
            *lines, self._line = (self._line + chunk).split(b"\n")
            for line in lines:
                self._say(line)
            while len(self._line) > LONGEST_LINE:
                self._say(self._line[:LONGEST_LINE])
                self._line = self._line[LONGEST_LINE:]

    def finish(self) -> None:
        """Pass on the last line, even without its newline: nothing follows."""
        if self._line:
            line, self._line = self._line, b""
            self._say(line)

    def _say(self, line: bytes) -> None:
        assert self._on_line is not None
        self.is_telling = True
        try:
            self._on_line(line.rstrip(b"\r").decode(errors="replace"))
        except Exception:  # stderr must be read on, whatever the callback does
            _log.exception("the on_stderr callback failed")
        finally:
            self.is_telling = False
