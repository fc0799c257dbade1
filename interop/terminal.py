"""A program in a terminal of a fixed size: what stands on its screen, and keys for it.

what the program writes ──▶ pyte, which keeps the screen as a terminal does ──▶ `wait_for` reads on until it shows what
is waited for; `type` and `press` write what a keyboard would send. It is POSIX's pseudo-terminal, so not for Windows.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pyte

SECONDS = 180.0
"""How long something may take to appear; the first start of a program compiles all of it."""
COLUMNS, LINES = 120, 40
CHUNK = 65536

KEYS = {
    "enter": "\r",
    "escape": "\x1b[27u",  # as newer terminals send it, so that it is no beginning of anything else
    "up": "\x1b[A",
    "down": "\x1b[B",
    **{f"ctrl+{letter}": chr(number) for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz", 1)},
}


class Terminal:
    """A program in a terminal of its own; leaving the block kills whatever of it is still there."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._screen: Any = _Screen(self._write)
        self._stream = pyte.ByteStream(self._screen)
        with open(theirs, "rb", closefd=True):  # noqa: PTH123 - there is no path
            self.program = subprocess.Popen(
                command,
                cwd=cwd,
                env={"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **env},
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                close_fds=True,
            )

    @property
    def text(self) -> str:
        """What stands on the screen."""
        # Not `display`, which fails where half of a wide character was overwritten.
        rows, columns = range(self._screen.lines), range(self._screen.columns)
        return "\n".join("".join(self._screen.buffer[row][at].data for at in columns).rstrip() for row in rows)

    def type(self, text: str) -> None:
        self._write(text)

    def paste(self, text: str) -> None:
        """As terminals hand it over to programs that want to tell it from typing."""
        self._write(f"\x1b[200~{text}\x1b[201~")

    def press(self, *keys: str) -> None:
        """Keys by name, such as `enter` or `ctrl+q`, or as they are."""
        for key in keys:
            self._write(KEYS.get(key, key))

    def wait_for(self, *words: str, until: Callable[[str], object] = bool, seconds: float = SECONDS) -> str:
        """Read on until all of these words stand on the screen, and `until` holds for its text; that text."""
        end = time.monotonic() + seconds
        while not (all(word in self.text for word in words) and until(self.text)):
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"never on the screen: {words or until}\n{self.text}")
        return self.text

    def wait_for_end(self, seconds: float = SECONDS) -> int:
        """Read on until the program has ended; its exit code."""
        end = time.monotonic() + seconds
        while self._read(end - time.monotonic()):
            pass
        return self.program.wait(max(end - time.monotonic(), 0))

    def _read(self, seconds: float) -> bool:
        """Take what the program writes next; whether it wrote in time."""
        ready, _, _ = select.select([self._end], [], [], max(seconds, 0))
        if not ready:
            return False
        try:
            chunk = os.read(self._end, CHUNK)
        except OSError:  # how Linux says that the other end is closed
            return False
        self._stream.feed(chunk)
        return bool(chunk)

    def _write(self, text: str) -> None:
        os.write(self._end, text.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()
        os.close(self._end)


class _Screen(pyte.Screen):
    """It answers what a program asks of its terminal."""

    def __init__(self, answer: Callable[[str], None]) -> None:
        super().__init__(COLUMNS, LINES)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data)
