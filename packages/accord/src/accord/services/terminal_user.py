"""Asks the user at a terminal: runs the dialogues, one at a time.

    with TerminalUser() as user:
        client = accord.Client(permissions=user.permit, elicitation=accord.Elicitation(user.fill, user.visit))

It reads and writes the controlling terminal itself, so that standard input and output stay free for a program's own
use, and reads without a thread, so that a question goes away at once when its turn is cancelled.

An agent may print a fake question, and ask the real one after the user has answered the fake. So input that was typed
before a question is shown is discarded. The frame of a real question is shown in reverse, which text
that went through `printable` cannot do.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import webbrowser
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, Self, TypeVar

from accord.services.elicitation_service import Filled, FormQuestion, LinkQuestion
from accord.services.permission_question import Choice, PermissionQuestion
from accord.services.question_dialogue import COLUMNS, ask_permission, ask_permission_and_scope, consider_link, fill_in

AnswerT = TypeVar("AnswerT")

_EDGES = re.compile("^[┌│├└]", re.MULTILINE)
_IN_REVERSE = "\x1b[7m\\g<0>\x1b[27m"


class TerminalUser:
    """Asks the user at the terminal.

    `open_link` opens a link that the user agreed to visit. `while_asking` is entered while a question is open: a
    program that prints an agent's text at the same terminal keeps it until the answer is given. With `keep`, the user
    is asked whether an "always" holds in later runs, too, and `keep` is called with the question if it does.
    """

    def __init__(
        self,
        path: str = "/dev/tty",
        *,
        open_link: Callable[[str], Awaitable[object] | object] | None = None,
        while_asking: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
        keep: Callable[[PermissionQuestion], object] | None = None,
    ) -> None:
        self._fd = os.open(path, os.O_RDWR | getattr(os, "O_NOCTTY", 0))
        if sys.platform != "win32":  # which has no such file to open
            os.set_blocking(self._fd, False)
        self._open_link = open_link or open_in_browser
        self._while_asking = while_asking
        self._keep = keep
        self._edge = _IN_REVERSE if os.environ.get("TERM", "dumb") != "dumb" else "\\g<0>"
        self._turn = asyncio.Lock()
        self._typed = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the terminal."""
        os.close(self._fd)

    async def permit(self, question: PermissionQuestion) -> Choice:
        """For `Client(permissions=...)`."""
        if self._keep is None:
            return await self._run(ask_permission(question, self._columns()))
        choice, is_kept = await self._run(ask_permission_and_scope(question, self._columns()))
        if is_kept:
            self._keep(question)
        return choice

    async def fill(self, question: FormQuestion) -> Filled:
        """For `Elicitation(fill=...)`."""
        return await self._run(fill_in(question, self._columns()))

    async def visit(self, question: LinkQuestion) -> bool | None:
        """For `Elicitation(visit=...)`: opens the link once the user has agreed."""
        agreed = await self._run(consider_link(question, self._columns()))
        if agreed:
            opening = self._open_link(question.link.url)
            if isinstance(opening, Awaitable):
                await opening
        return agreed

    async def _run(self, dialogue: Generator[str, str | None, AnswerT]) -> AnswerT:
        async with self._turn, self._while_asking():
            self._forget_typed()
            try:
                prompt = next(dialogue)
                while True:
                    await self._show(prompt)
                    prompt = dialogue.send(await self._line())
            except StopIteration as end:
                answer: AnswerT = end.value
                return answer
            except BaseException:
                await asyncio.shield(self._show("\n"))  # the next output starts on a line of its own
                raise

    def _forget_typed(self) -> None:
        """Discard what was typed before this question was shown."""
        assert sys.platform != "win32"
        import termios  # exists on every platform that has a terminal to open

        self._typed = b""
        with suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._fd).columns or COLUMNS
        except OSError:
            return COLUMNS

    async def _show(self, text: str) -> None:
        rest = _EDGES.sub(self._edge, text).encode(errors="replace")
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await self._ready(asyncio.get_running_loop().add_writer, asyncio.get_running_loop().remove_writer)

    async def _line(self) -> str | None:
        """Read a line, without its newline; None at the end of input."""
        while b"\n" not in self._typed:
            await self._ready(asyncio.get_running_loop().add_reader, asyncio.get_running_loop().remove_reader)
            try:
                chunk = os.read(self._fd, 4096)
            except BlockingIOError:
                continue
            except OSError:  # the terminal is gone
                return None
            if not chunk:
                return None
            self._typed += chunk
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace")

    async def _ready(self, watch: Callable[..., Any], unwatch: Callable[[int], Any]) -> None:
        ready = asyncio.Event()
        watch(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            unwatch(self._fd)


async def open_in_browser(url: str) -> None:
    """Open a URL in the user's browser, out of our sight. Without a browser the URL is still on the screen."""
    await asyncio.to_thread(webbrowser.open, url)
