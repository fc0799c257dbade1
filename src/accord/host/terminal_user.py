"""The user at a terminal, as somebody to ask: runs the dialogues, one at a time.

    with TerminalUser() as user:
        client = accord.Client(permissions=user.permit, elicitation=accord.Elicitation(user.fill, user.visit))

It reads and writes the controlling terminal itself, so that standard input and output stay free for a program's own
use, and reads without a thread, so that a question goes away at once when its turn is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import webbrowser
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Self, TypeVar

from accord.host.dialogue import ask_permission, consider_link, fill_in
from accord.host.elicitation import Filled, FormQuestion, LinkQuestion
from accord.host.question import Choice, PermissionQuestion

AnswerT = TypeVar("AnswerT")


class TerminalUser:
    """Asks whoever sits at the terminal. `open_link` is what opens a link the user agreed to visit."""

    def __init__(
        self, path: str = "/dev/tty", *, open_link: Callable[[str], Awaitable[object] | object] | None = None
    ) -> None:
        self._fd = os.open(path, os.O_RDWR | getattr(os, "O_NOCTTY", 0))
        os.set_blocking(self._fd, False)
        self._open_link = open_link or open_in_browser
        self._turn = asyncio.Lock()
        self._typed = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._fd)

    async def permit(self, question: PermissionQuestion) -> Choice:
        """For `Client(permissions=...)`."""
        return await self._run(ask_permission(question))

    async def fill(self, question: FormQuestion) -> Filled:
        """For `Elicitation(fill=...)`."""
        return await self._run(fill_in(question))

    async def visit(self, question: LinkQuestion) -> bool | None:
        """For `Elicitation(visit=...)`: opens the link once the user has agreed."""
        agreed = await self._run(consider_link(question))
        if agreed:
            opening = self._open_link(question.link.url)
            if isinstance(opening, Awaitable):
                await opening
        return agreed

    async def _run(self, dialogue: Generator[str, str | None, AnswerT]) -> AnswerT:
        async with self._turn:
            self._typed = b""
            try:
                prompt = next(dialogue)
                while True:
                    await self._show(prompt)
                    prompt = dialogue.send(await self._line())
            except StopIteration as end:
                answer: AnswerT = end.value
                return answer
            except BaseException:
                await asyncio.shield(self._show("\n"))  # what comes next does not stand behind the question
                raise

    async def _show(self, text: str) -> None:
        rest = text.encode(errors="replace")
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await self._ready(asyncio.get_running_loop().add_writer, asyncio.get_running_loop().remove_writer)

    async def _line(self) -> str | None:
        """A line as it was typed, without its end; None at the end of input."""
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
    """In the user's own browser, where nothing here can look in. Without one, they have the URL on the screen."""
    await asyncio.to_thread(webbrowser.open, url)
