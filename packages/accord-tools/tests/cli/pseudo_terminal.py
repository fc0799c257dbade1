"""A program at a pseudo-terminal, and what it shows there."""

from __future__ import annotations

import contextlib
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyte

from tests.cli import at_terminal
from tests.posix import fcntl, termios

ACCORD = [sys.executable, "-m", "accord"]
OURS = re.compile(
    r"\x1b\[2?7m([┌│├└])?|\r(?:(?:\x1b\[36m)?[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏](?:\x1b\[0m)? (?:\x1b\[2m)?[^\r\n\x1b]*(?:\x1b\[0m)?)?\x1b\[K"
)
"""How the edge of a question's frame is drawn, and the spinner."""


def own_folders(folder: Path) -> dict[str, str]:
    """The environment of a user who has no settings and no state."""
    return {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}


class Terminal:
    """`accord` at a pseudo-terminal. `output` and `errors` are files for its standard output and error."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        output: str = "",
        errors: str = "",
        size: tuple[int, int] = (80, 24),
        program: list[str] | None = None,
        **environment: str,
    ) -> None:
        self.raw = b""
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self.fd, theirs = os.openpty()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        with contextlib.ExitStack() as files:
            streams = (files.enter_context(Path(name).open("wb")) if name else theirs for name in (output, errors))
            self.process = subprocess.Popen(
                [sys.executable, "-m", at_terminal.__name__, *(program or ACCORD), *arguments],
                stdin=theirs,
                stdout=next(streams),
                stderr=next(streams),
                cwd=cwd,
                start_new_session=True,
                env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", **own_folders(cwd), **environment},
            )
        os.close(theirs)

    def shows(self, words: str) -> str:
        """Read until the screen shows this."""
        while words not in "\n".join(self.screen.display):
            assert self._read(), f"{words!r} was not shown, but this: {self.raw!r}"
        return "\n".join(self.screen.display)

    def types(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def to_the_end(self) -> str:
        """Everything that was written to the terminal, but for the edges of frames and the spinner."""
        while self._read():
            pass
        self.process.wait(60)
        return OURS.sub(r"\1", self.raw.decode("utf-8")).replace("\r\n", "\n")

    def _read(self) -> bool:
        with contextlib.suppress(OSError):  # Linux says the end so
            if chunk := os.read(self.fd, 65_536):
                self.raw += chunk
                self._stream.feed(chunk)
                return True
        return False


@contextlib.contextmanager
def start_terminals(folder: Path) -> Iterator[Callable[..., Terminal]]:
    """A function that starts `accord` at a terminal; all of them end with the block."""
    made: list[Terminal] = []

    def start(*arguments: str, **options: Any) -> Terminal:
        made.append(Terminal(*arguments, **{"cwd": folder, **options}))
        return made[-1]

    yield start
    for terminal in made:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.fd)
