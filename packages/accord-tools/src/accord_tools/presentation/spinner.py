"""A moving line at the end of a terminal while nothing arrives, erased before anything is printed there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.printable import columns, cut
from accord_tools.presentation.appearance import Appearance

if TYPE_CHECKING:
    import asyncio

QUIET = 0.4
"""Seconds without output until the spinner appears."""
BEAT = 0.12
"""Seconds between two of its pictures."""
LONG = 3
"""Seconds from which on the time is shown."""
CLEAR = "\r\x1b[K"


def spinner_line(look: Appearance, number: int, text: str, detail: str, width: int) -> str:
    """Return a line that replaces the previous one: a frame of the spinner, the present activity, and its progress."""
    frame = look.painted("accent", look.frames[number % len(look.frames)])
    room = max(10, width - columns(detail) - 3)
    return f"\r{frame} {look.painted('dim', cut(text, room) + detail)}\x1b[K"


class Spinner:
    """Draws while it is started, nothing else was printed for a moment, and `may_draw` allows it.

    `when_quiet` is called at each beat of a quiet moment, before it draws.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        look: Appearance,
        width: Callable[[], int],
        may_draw: Callable[[], bool],
        when_quiet: Callable[[], None],
    ) -> None:
        from asyncio import get_running_loop  # commands that draw a line without a loop need no asyncio

        self.text = ""
        """The thing being waited for, safe for a terminal."""
        self._write = write
        self._look = look
        self._width = width
        self._may_draw = may_draw
        self._when_quiet = when_quiet
        self._loop = get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_drawn = False
        self._frame = 0
        self._since = self._loop.time()

    @property
    def is_able(self) -> bool:
        """Whether the terminal can show it at all."""
        return self._look.moves

    def start(self) -> None:
        """Appear when nothing has been printed for a moment."""
        if self._timer is None and self._look.moves:
            self._since = self._loop.time()
            self._timer = self._loop.call_later(QUIET, self._beat)

    def clear(self) -> None:
        """Disappear, because something is printed; appear again after a quiet moment."""
        if self._is_drawn:
            self._is_drawn = False
            self._write(CLEAR.encode())
        self._since = self._loop.time()

    def stop(self) -> None:
        """Disappear until `start` is called again."""
        self.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        quiet = self._loop.time() - self._since
        if quiet >= QUIET:
            self._when_quiet()
            if self._may_draw():
                self._draw(int(quiet))
        self._timer = self._loop.call_later(BEAT, self._beat)

    def _draw(self, seconds: int) -> None:
        self._frame += 1
        time = f" {seconds} s" if seconds >= LONG else ""
        shown = spinner_line(self._look, self._frame, self.text, time, self._width())
        self._is_drawn = True
        self._write(shown.encode(errors="replace"))
