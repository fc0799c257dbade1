"""A chat at a terminal, or through pipes: each line is a message.

`hello` goes to the conversation that you wrote to last, `#garden hello` to the conversation `garden`.
"""

import asyncio
import getpass
import re
import sys
import threading
import uuid
from collections.abc import Callable

from room import Message

from accord.printable import printable

ADDRESSED = re.compile(r"#(?P<conversation>\w+)\s*(?P<text>.*)", re.DOTALL)


class TerminalRoom:
    """A room on standard input and output."""

    def __init__(self) -> None:
        self._conversation = "main"
        self._written: dict[str, str] = {}
        self._latest = ""
        """The message whose text is at the end of the output."""

    async def run(self, deliver: Callable[[Message], None]) -> None:
        lines: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def read() -> None:
            for line in sys.stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, "")

        # A thread of its own, which does not keep the program from ending while it waits for a line.
        threading.Thread(target=read, daemon=True).start()
        while line := await lines.get():
            if addressed := ADDRESSED.fullmatch(line.strip()):
                self._conversation, line = addressed["conversation"], addressed["text"]
            if text := line.strip():
                deliver(Message(uuid.uuid4().hex, self._conversation, getpass.getuser(), text))

    async def post(self, conversation: str, text: str) -> str:
        message = uuid.uuid4().hex
        self._show(conversation, message, text)
        return message

    async def edit(self, conversation: str, message: str, text: str) -> None:
        self._show(conversation, message, text)

    def _show(self, conversation: str, message: str, text: str) -> None:
        """Go on with the message at the end of the output, or print another one as a whole."""
        before = self._written.get(message, "") if message == self._latest else ""
        if before and text.startswith(before):
            print(printable(text[len(before) :]), end="", flush=True)
        else:
            print(f"{chr(10) if self._latest else ''}[{conversation}] {printable(text)}", end="", flush=True)
        self._written = {message: text}
        self._latest = message
