"""`ScriptedPeer`: a peer that a script plays, in raw JSON, on the other end of any transport.

    here, there = memory_pair()
    async with ScriptedPeer(there) as agent, Peer(here, role="client") as client:
        asking = asyncio.create_task(client.request(PromptRequest.of("s", "hello")))
        prompt = await agent.expect("session/prompt")
        agent.tell("session/update", {"sessionId": "s", "update": {...}})
        agent.answer(prompt, {"stopReason": "end_turn"})
        await asking

It sends only the messages of the script, valid or not. It reads in order: if the next message is not the expected one,
the script fails, and the error shows the conversation so far. Every wait has a deadline.

A script can also be an agent in a process of its own: a file with an `async def script(peer)`, started with the command
that `script_command("agent.py")` returns.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, cast

from accord.jsonrpc.line_frames import Oversized, RequestId
from accord.schema import codec
from accord.schema.base import Json
from accord.transports import End, Transport
from accord.transports.stdio_transport import StdioTransport

DEADLINE = 10.0
"""Seconds that a script waits for a message; generous, because machines are busy."""

SHOWN = 30
"""How many of the last messages a failure shows."""

Received: TypeAlias = dict[str, Any]
"""A message as it arrived."""

Way: TypeAlias = Literal["in", "out"]

Script: TypeAlias = Callable[["ScriptedPeer"], Awaitable[object]]


class ScriptFailed(AssertionError):
    """The other side did not do what the script expects; the text shows the conversation."""


class ScriptedPeer:
    """One side of a connection, played by a script; opened and closed by `async with`.

        async with ScriptedPeer(transport) as agent:
            prompt = await agent.expect("session/prompt")
            agent.answer(prompt, {"stopReason": "end_turn"})

    `deadline` is how many seconds it waits for each message.
    """

    def __init__(self, transport: Transport, *, deadline: float = DEADLINE) -> None:
        self.transport = transport
        """The transport that the script speaks over."""
        self.deadline = deadline
        """Seconds that the script waits for each message."""
        self.conversation: list[tuple[Way, bytes]] = []
        """All messages so far, each with its direction, as bytes; messages that were not read yet are missing."""
        self.end: End | None = None
        """How the connection ended; None while it is open."""
        self._unread: deque[bytes | Oversized] = deque()
        self._changed = asyncio.Event()
        self._next_id = 1

    # Sending

    def send(self, *messages: Mapping[str, Json]) -> None:
        """Send these objects exactly as they are, valid or not, in one write."""
        self.send_raw(*(codec.encode(message) for message in messages))

    def send_raw(self, *frames: bytes) -> None:
        """Send these bytes, each as one frame."""
        self.conversation.extend(("out", frame) for frame in frames)
        self.transport.send(frames)

    def call(self, method: str, params: Json = None, *, id: RequestId | None = None) -> RequestId:  # noqa: A002
        """Send a request; returns its id."""
        if id is None:
            id, self._next_id = self._next_id, self._next_id + 1  # noqa: A001
        self.send(_message(method, params, id=id))
        return id

    def tell(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        self.send(_message(method, params))

    def answer(self, call: Received, result: Json = None) -> None:
        """Answer a request with this result, by default an empty object."""
        self.send({"jsonrpc": "2.0", "id": call["id"], "result": {} if result is None else result})

    def error(self, call: Received, code: int, message: str = "it failed", data: Json = None) -> None:
        """Answer a request with an error."""
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        self.send({"jsonrpc": "2.0", "id": call["id"], "error": error})

    # Receiving

    async def receive(self) -> Received:
        """Receive the next message, whatever it is."""
        return await self._message("a message")

    async def receive_raw(self) -> bytes:
        """Receive the next frame, byte for byte."""
        return await self._frame("a frame")

    async def expect(self, method: str) -> Received:
        """Receive the next message; raises ScriptFailed unless it is a request or a notification of this method."""
        message = await self._message(method)
        if message.get("method") != method:
            raise self._failed(f"expected {method}, got {_described(message)}")
        return message

    async def expect_answer(self, id: RequestId) -> Received:  # noqa: A002
        """Receive the next message; raises ScriptFailed unless it is the answer to the request with this id."""
        message = await self._message(f"the answer to {id!r}")
        if "method" in message or not _same(message.get("id"), id):
            raise self._failed(f"expected the answer to {id!r}, got {_described(message)}")
        return message

    async def expect_result(self, id: RequestId) -> Json:  # noqa: A002
        """Receive the next message; fails unless it is a result for the request with this id, which is returned."""
        answer = await self.expect_answer(id)
        if "result" not in answer:
            raise self._failed(f"expected a result for {id!r}, got the error {answer.get('error')}")
        return answer["result"]

    async def expect_error(self, id: RequestId | None, code: int | None = None) -> Received:  # noqa: A002
        """Receive the next message; fails unless it is an error for the request with this id, which is returned.

        None stands for an error without an id. With `code`, the error must have this code.
        """
        message = await self._message(f"an error for {id!r}")
        error = _error(message)
        if error is None or not _same(message.get("id", "none"), id):
            raise self._failed(f"expected an error for {id!r}, got {_described(message)}")
        if code is not None and error.get("code") != code:
            raise self._failed(f"expected an error {code} for {id!r}, got {error}")
        return error

    async def request(self, method: str, params: Json = None) -> Json:
        """Send a request, and receive its result as the next message."""
        return await self.expect_result(self.call(method, params))

    async def expect_end(self) -> End:
        """Wait for the end of the connection; fails if a message comes before it."""
        while self.end is None:
            if self._unread:
                raise self._failed(f"expected the end, got {_text(self._read())}")
            await self._news("the end")
        return self.end

    async def expect_silence(self) -> None:
        """Fail if the other side has sent any message so far.

        It sends a request of an unknown method, whose refusal must be the next message.
        """
        asked = self.call("_accord/silence", id=f"silence-{len(self.conversation)}")
        message = await self._message("silence")
        if "method" in message or message.get("id") != asked:
            raise self._failed(f"expected silence, got {_described(message)}")

    # Life

    async def open(self) -> None:
        """Start the transport; `async with` does it as well."""
        await self.transport.start(self)

    async def close(self) -> End:
        """Close the transport; returns how the connection ended."""
        return await self.transport.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # The transport's callbacks

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        """Keep frames until the script reads them; the transport calls it."""
        self._unread += frames
        self._changed.set()

    def paused(self) -> None:
        """Ignore that the transport is full; the transport calls it."""

    def resumed(self) -> None:
        """Ignore that the transport has room again; the transport calls it."""

    def ended(self, end: End) -> None:
        """Remember how the connection ended; the transport calls it."""
        self.end = end
        self._changed.set()

    # Reading

    async def _message(self, what: str) -> Received:
        frame = await self._frame(what)
        try:
            message = codec.loads(frame)
        except ValueError:
            raise self._failed(f"expected {what}, got invalid JSON: {_text(frame)}") from None
        if not isinstance(message, dict):
            raise self._failed(f"expected {what}, got JSON that is not an object: {_text(frame)}")
        return cast("Received", message)

    async def _frame(self, what: str) -> bytes:
        while not self._unread:
            if self.end is not None:
                raise self._failed(f"expected {what}, but the connection ended: {self.end.error()}")
            await self._news(what)
        return self._read()

    def _read(self) -> bytes:
        frame = self._unread.popleft()
        if isinstance(frame, Oversized):
            raise self._failed(f"got a message of {frame.length:,} bytes, which is over the limit")
        self.conversation.append(("in", frame))
        return frame

    async def _news(self, what: str) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(self.deadline):
                await self._changed.wait()
        except TimeoutError:
            if not self._changed.is_set():  # on a busy machine, both may happen at once
                raise self._failed(f"expected {what}, but nothing came within {self.deadline:g} seconds") from None

    def _failed(self, problem: str) -> ScriptFailed:
        said = [f"  {_ARROWS[direction]} {_text(frame)}" for direction, frame in self.conversation[-SHOWN:]]
        left_out = len(self.conversation) - len(said)
        lines = [
            problem,
            f"the conversation so far (-> is what the script sent){'' if said else ': none'}",
            *([f"  ... {left_out} before"] if left_out else []),
            *said,
            *(f"  <- {_text(frame)} (not read yet)" for frame in self._unread),
        ]
        return ScriptFailed("\n".join(lines))


def script_command(script: str | Path | Script, name: str = "script") -> list[str]:
    """Return the command that runs a script as an agent over stdio.

    `script` is a function at the top level of its file, or the path of a file with a function `name`. The process ends
    when the script does; if the script failed, with exit code 1 and the reason on stderr.
    """
    if not isinstance(script, str | Path):
        script, name = inspect.getfile(script), getattr(script, "__qualname__", name)
    return [sys.executable, "-m", "accord.testing", str(script), name]


def main(arguments: Sequence[str]) -> int:
    """Run the command that `script_command` returns."""
    path, name = arguments
    return asyncio.run(_play(_loaded(Path(path), name)))


def _loaded(path: Path, name: str) -> Script:
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot load {path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))  # as for any script, modules beside it can be imported
    spec.loader.exec_module(module)
    script: Script = getattr(module, name)
    return script


async def _play(script: Script) -> int:
    async with ScriptedPeer(StdioTransport.standard()) as peer:
        try:
            await script(peer)
        except ScriptFailed as failure:
            print(failure, file=sys.stderr)
            return 1
    return 0


def _message(method: str, params: Json, **members: Json) -> dict[str, Json]:
    return {"jsonrpc": "2.0", **members, "method": method, **({} if params is None else {"params": params})}


def _error(message: Received) -> Received | None:
    error = message.get("error")
    return cast("Received", error) if isinstance(error, dict) else None


def _same(one: Json, other: RequestId | None) -> bool:
    """Ids are type-exact: `"3"` is not 3, and True is not 1."""
    return type(one) is type(other) and one == other


def _described(message: Received) -> str:
    if isinstance(method := message.get("method"), str):
        return f"{method} ({'a request' if 'id' in message else 'a notification'})"
    return f"the answer to {message.get('id')!r}: {_text(codec.encode(message))}"


def _text(frame: bytes | Oversized, limit: int = 300) -> str:
    if isinstance(frame, Oversized):
        return f"(a message of {frame.length:,} bytes, over the limit)"
    text = frame[: 4 * limit].decode("utf-8", "replace")
    return text if len(text) <= limit else f"{text[:limit]}… ({len(frame):,} bytes)"


_ARROWS: dict[Way, str] = {"in": "<-", "out": "->"}
