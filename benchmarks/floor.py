"""The floor: msgspec on two bare descriptors and an event loop, both ends.

It puts the same bytes on the pipe as an agent and a client would and does nothing that a protocol asks for: no
validation, no dispatch, no order between messages, no deadlines, no shutdown. It shows what the event loop and the
codec cost, so how much of a figure is the machine's.
"""

import asyncio
import os
from collections.abc import Callable
from itertools import count

import msgspec

from benchmarks.contract import Json

FLUSH_AT = READ_AT_ONCE = 64 * 1024


class Wire(msgspec.Struct, rename="camel", omit_defaults=True):
    """One JSON object."""


class Text(Wire, tag_field="type", tag="text"):
    text: str


class Diff(Wire, tag_field="type", tag="diff"):
    path: str
    new_text: str
    old_text: str | None = None


class Content(Wire, tag_field="type", tag="content"):
    content: Text


class Update(Wire):
    session_update: str
    content: Text | list[Diff | Content] | None = None
    tool_call_id: str | None = None
    title: str | None = None
    kind: str | None = None
    status: str | None = None


class Params(Wire):
    session_id: str | None = None
    update: Update | None = None
    path: str | None = None
    prompt: list[Text] | None = None
    options: list[dict[str, str]] | None = None
    tool_call: dict[str, str] | None = None
    cwd: str | None = None
    mcp_servers: list[Json] | None = None
    protocol_version: int | None = None
    client_capabilities: dict[str, Json] | None = None


class Error(Wire):
    code: int
    message: str
    data: Json = None


class Message(Wire):
    """Any message, read and written in one go."""

    jsonrpc: str = ""
    id: int | str | None = None
    method: str | None = None
    params: Params | None = None
    result: dict[str, Json] | None = None
    error: Error | None = None


class Pipe:
    """Bytes to messages and back, and the futures of what was asked."""

    def __init__(self, called: Callable[[Message], None], read_fd: int, write_fd: int) -> None:
        self._called = called
        self._read_fd, self._write_fd = read_fd, write_fd
        self._decode = msgspec.json.Decoder(Message).decode
        self._encode_into = msgspec.json.Encoder().encode_into
        self._ids = count()
        self._asked: dict[int | str, asyncio.Future[Message]] = {}
        self._tail: list[bytes] = []
        self._out = bytearray()
        self._corked = False
        self._loop = asyncio.get_running_loop()
        self.room = asyncio.Event()
        self.room.set()
        self.ended = asyncio.Event()
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self._loop.add_reader(read_fd, self._readable)

    def write(self, message: Message) -> None:
        self.put(message)
        if not self._corked:
            self.flush()

    def put(self, message: Message) -> bool:
        """Write later; true when it is time to flush and to wait for room."""
        self._encode_into(message, self._out, len(self._out))
        self._out += b"\n"
        return len(self._out) >= FLUSH_AT

    def flush(self) -> None:
        if self._out and self.room.is_set():
            self._drain()
            if self._out:
                self.room.clear()
                self._loop.add_writer(self._write_fd, self._writable)

    async def ask(self, method: str, params: Params) -> Message:
        number = next(self._ids)
        answer = self._asked[number] = self._loop.create_future()
        self.write(Message("2.0", number, method, params))
        return await answer

    def _drain(self) -> None:
        try:  # noqa: SIM105  a context manager for each write is more than the floor may cost
            del self._out[: os.write(self._write_fd, self._out)]
        except BlockingIOError:
            pass

    def _writable(self) -> None:
        self._drain()
        if not self._out:
            self._loop.remove_writer(self._write_fd)
            self.room.set()

    def _readable(self) -> None:
        data = os.read(self._read_fd, READ_AT_ONCE)
        lines = data.split(b"\n")
        if len(lines) == 1:
            self._tail.append(data)
            if not data:
                self._loop.remove_reader(self._read_fd)
                self.ended.set()
            return
        if self._tail:
            lines[0] = b"".join([*self._tail, lines[0]])
        self._tail = [rest] if (rest := lines.pop()) else []
        # What the handlers of one read have to say leaves in one write, once the tasks that it woke have had their say.
        self._corked = len(lines) > 1
        for line in lines:
            message = self._decode(line)
            if message.method is None:
                self._asked.pop(message.id or 0).set_result(message)
            else:
                self._called(message)
        if self._corked:
            self._loop.call_soon(self._uncork)

    def _uncork(self) -> None:
        self._corked = False
        self.flush()
