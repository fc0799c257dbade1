"""Standard input of `accord run`: the whole prompt, or text that goes with it.

    accord run -                  the prompt is what comes, until its end
    git diff | accord run "Why?"  what comes is a second block of the prompt

The second form reads only what somebody sent: a file or a pipe, never a terminal or /dev/null. A pipe may be one that
the program was started with by chance, as jobs of cron and CI are, and that nobody will ever write to or close. So the
first byte has `FIRST` seconds to come, and the command goes on without it and says so. Once it has come, the rest is
meant: past the limit it is an error, because half of a diff is not what the user asked about. Reading has a thread of
its own, which a read that never returns does not keep alive.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress

from accord import Timeout
from accord_tools.cli import printing
from accord_tools.cli.endings import WrongUsage

LARGEST = 10_000_000
"""Bytes: more is no prompt for any model."""
FIRST = 5.0
"""Seconds in which a pipe must give its first byte: programs like `git diff` take a moment."""


def whole() -> str:
    """All of standard input, however long that takes."""
    if os.isatty(0):
        printing.complain("accord run: type the prompt; Ctrl-D on an empty line ends it")
    return _Reader().text() if _mode() is not None else ""


def piped(within: float) -> str | None:
    """The text of a file or pipe at standard input; None for anything else, and for a pipe that nobody writes to.

    Raises Timeout if a pipe that has begun does not end within so many seconds.
    """
    if (mode := _mode()) is None or stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK):
        return None
    reader = _Reader()
    if not reader.has_begun(FIRST):
        printing.complain(f"accord run: nothing came on standard input in {FIRST:g} s, so the prompt goes without it")
        return None
    return reader.text(within)


def _mode() -> int | None:
    """What kind of file standard input is; None if the program that started us has closed it."""
    try:
        return os.fstat(0).st_mode
    except OSError:
        return None


class _Reader:
    """Reads standard input in a thread."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._begun, self._ended = threading.Event(), threading.Event()
        threading.Thread(target=self._read, name="accord standard input", daemon=True).start()

    def has_begun(self, within: float) -> bool:
        """Wait so many seconds for the first byte or the end."""
        return self._begun.wait(within)

    def text(self, within: float | None = None) -> str:
        if not self._ended.wait(within):
            raise Timeout(f"standard input did not end within --start-timeout {within:g}")
        if len(self._data) > LARGEST:
            raise WrongUsage(f"standard input has more than {LARGEST:,} bytes; name a file that the agent can read")
        return self._data.decode("utf-8", "replace")

    def _read(self) -> None:
        try:
            with suppress(OSError):  # a folder, or a stream that cannot be read
                while len(self._data) <= LARGEST and (chunk := os.read(0, 65536)):
                    self._data += chunk
                    self._begun.set()
        finally:
            self._begun.set()
            self._ended.set()
