"""`UserCommand`: a command of the shell that the user runs in a conversation with `!`.

It runs in the folder to which the latest one has changed with `cd`, at a pseudo-terminal, so that it prints in colours
and without buffering. It has no input: a program that needs the whole screen is refused by its name, or ended once it
requests that from the terminal. The agent learns of it only by `@out`, which sends the output of the latest command.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from accord import Terminal, v1
from accord.services import ending_of
from accord_tools.presentation.command_output import output_lines
from accord_tools.tui.attachments import Part

OUTPUT_LIMIT = 1024 * 1024
"""Bytes of the output that are kept."""
LINES = 5_000
"""Lines of the output that `@out` sends, the first ones."""

FULL_SCREEN = (
    *("btop", "emacs", "fzf", "htop", "joe", "less", "man", "micro", "more", "mutt", "nano", "nvim"),
    *("screen", "tig", "tmux", "top", "vi", "vim"),
)
"""Programs that are useless without the whole screen."""
_TAKES_SCREEN = ("\x1b[?1049h", "\x1b[?1047h", "\x1b[?47h")
"""The sequences with which a program requests the whole screen."""
_SHELLS = ("bash", "dash", "ksh", "sh", "zsh")
_QUIET_PAGERS = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "xterm-256color"}


class UserCommand:
    """A command of the user, from its start to its end."""

    def __init__(self, line: str, folder: Path) -> None:
        """Raises ValueError for a program that needs the whole screen."""
        self.line = line
        self.folder = folder
        """Its folder; after its end, the one to which it has changed."""
        if (name := Path(line.split(maxsplit=1)[0]).name) in FULL_SCREEN:
            raise NeedsScreenError(name)
        self.terminal = Terminal(v1.TerminalId(f"user_{secrets.token_hex(8)}"), self._words(""), folder, OUTPUT_LIMIT)

    def _words(self, gone_to: str) -> list[str]:
        """The command as the shell of the user runs it, which writes at the end where it is."""
        if sys.platform == "win32":
            return ["cmd.exe", "/d", "/c", self.line]
        shell = os.environ.get("SHELL", "")
        shell = shell if Path(shell).name in _SHELLS else "/bin/sh"
        return [shell, "-c", f'{self.line}\n__code=$?; pwd >"$0"; exit $__code', gone_to]

    async def run(self, on_change: Callable[[], object]) -> None:
        """Run it to its end. Raises ConnectionClosed if it cannot be started, ValueError if it needs the
        whole screen.
        """
        with tempfile.TemporaryDirectory(prefix="accord-shell-") as folder:
            gone_to = Path(folder, "pwd")
            self.terminal.command = self._words(str(gone_to))
            await self.terminal.start({**os.environ, **_QUIET_PAGERS}, pty=sys.platform != "win32")
            try:
                async for text in self.terminal.follow():
                    on_change()
                    if any(sequence in text for sequence in _TAKES_SCREEN):
                        raise NeedsScreenError(self.line.split()[0])
                with suppress(OSError):
                    self.folder = Path((await asyncio.to_thread(gone_to.read_text, "utf-8")).rstrip("\n"))
            finally:
                await self.terminal.release()
                on_change()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.terminal.exit_status is None

    def part(self) -> Part:
        """The output, to be sent with a prompt."""
        status = self.terminal.exit_status
        ending = "it still runs" if status is None else ending_of(status.exit_code, status.signal)
        text = "\n".join(line.text for line in output_lines(self.terminal.text, LINES))
        return Part(f"The output of `{self.line}` in {self.folder} ({ending})", "shell:output", text, "text/plain")


class NeedsScreenError(ValueError):
    """A program needs the whole screen."""

    def __init__(self, program: str) -> None:
        super().__init__(f"{program} needs the whole screen: run it in a terminal beside the chat")
