"""A peer that does what its script says, in raw JSON, on the other end of any transport.

    here, there = memory_pair()
    async with ScriptedPeer(there) as agent, Peer(here, role="client") as client:
        asking = asyncio.create_task(client.request(PromptRequest.of("s", "hello")))
        prompt = await agent.expect("session/prompt")
        agent.tell("session/update", {"sessionId": "s", "update": {...}})
        agent.answer(prompt, {"stopReason": "end_turn"})
        await asking

It sends what it is told to, right or wrong, and nothing of its own accord. It reads in order: whoever expects one thing
and gets another fails with the conversation so far. Every wait has a deadline.

A script can also be an agent of its own, in a process: a file with an `async def script(peer)` in it, started as
`script_command("agent.py")` says.
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

from accord.jsonrpc.frames import Oversized, RequestId
from accord.schema import codec
from accord.schema.base import Json
from accord.transports.base import End, Transport
from accord.transports.stdio import StdioTransport

DEADLINE = 10.0
"""Seconds that a script waits for something; generous, as machines are shared."""

SHOWN = 30
"""Messages of the conversation that a failure shows: the last ones."""

Received: TypeAlias = dict[str, Any]
"""A message as it came."""

Way: TypeAlias = Literal["in", "out"]

Script: TypeAlias = Callable[["ScriptedPeer"], Awaitable[object]]


class ScriptFailed(AssertionError):
    """The other side did not do what the script expects."""


class ScriptedPeer:
    """One side of a link, played by a script. Opened and closed by `async with`."""

    def __init__(self, transport: Transport, *, deadline: float = DEADLINE) -> None:
        self.transport = transport
        self.deadline = deadline
        self.conversation: list[tuple[Way, bytes]] = []
        """Everything that was said, as it went over the wire; what is still unread is not yet part of it."""
        self.end: End | None = None
        """How the link ended, once it has."""
        self._unread: deque[bytes | Oversized] = deque()
        self._changed = asyncio.Event()
        self._next_id = 1

    # Saying

    def send(self, *messages: Mapping[str, Json]) -> None:
        """Send these objects exactly as they are, right or wrong; several arrive together."""
        self.send_raw(*(codec.encode(message) for message in messages))

    def send_raw(self, *frames: bytes) -> None:
        """Send these bytes, each as a frame of its own."""
        self.conversation.extend(("out", frame) for frame in frames)
        self.transport.send(frames)

    def call(self, method: str, params: Json = None, *, id: RequestId | None = None) -> RequestId:  # noqa: A002
        """Send a request, and tell its id."""
        if id is None:
            id, self._next_id = self._next_id, self._next_id + 1  # noqa: A001
        self.send(_message(method, params, id=id))
        return id

    def tell(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        self.send(_message(method, params))

    def answer(self, call: Received, result: Json = None) -> None:
        """Answer a request that came; without a result, with an object that has no fields."""
        self.send({"jsonrpc": "2.0", "id": call["id"], "result": {} if result is None else result})

    def error(self, call: Received, code: int, message: str = "it failed", data: Json = None) -> None:
        """Answer a request that came with an error."""
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        self.send({"jsonrpc": "2.0", "id": call["id"], "error": error})

    # Hearing

    async def receive(self) -> Received:
        """The next message, whatever it is."""
        return await self._message("a message")

    async def receive_raw(self) -> bytes:
        """The next frame, byte for byte."""
        return await self._frame("a frame")

    async def expect(self, method: str) -> Received:
        """The next message, which is a request or a notification of this method."""
        message = await self._message(method)
        if message.get("method") != method:
            raise self._failed(f"expected {method}, and got {_described(message)}")
        return message

    async def expect_answer(self, id: RequestId) -> Received:  # noqa: A002
        """The next message, which answers the request of this id: with a `result` or an `error`."""
        message = await self._message(f"the answer to {id!r}")
        if "method" in message or not _same(message.get("id"), id):
            raise self._failed(f"expected the answer to {id!r}, and got {_described(message)}")
        return message

    async def expect_result(self, id: RequestId) -> Json:  # noqa: A002
        """The result in the next message, which answers the request of this id."""
        answer = await self.expect_answer(id)
        if "result" not in answer:
            raise self._failed(f"expected a result for {id!r}, and got the error {answer.get('error')}")
        return answer["result"]

    async def expect_error(self, id: RequestId | None, code: int | None = None) -> Received:  # noqa: A002
        """The error in the next message, which answers the request of this id, or with None what has no id."""
        message = await self._message(f"an error for {id!r}")
        error = _error(message)
        if error is None or not _same(message.get("id", "none"), id):
            raise self._failed(f"expected an error for {id!r}, and got {_described(message)}")
        if code is not None and error.get("code") != code:
            raise self._failed(f"expected an error {code} for {id!r}, and got {error}")
        return error

    async def request(self, method: str, params: Json = None) -> Json:
        """Send a request, and give the result in the next message."""
        return await self.expect_result(self.call(method, params))

    async def expect_end(self) -> End:
        """How the link ends, with nothing more said before it."""
        while self.end is None:
            if self._unread:
                raise self._failed(f"expected the end, and got {_text(self._read())}")
            await self._news("the end")
        return self.end

    async def expect_silence(self) -> None:
        """Make sure that nothing was said about all that was sent, as far as it is handled in its order.

        It asks for something that nobody knows: that this is refused must be the first to come.
        """
        asked = self.call("_accord/silence", id=f"silence-{len(self.conversation)}")
        message = await self._message("silence")
        if "method" in message or message.get("id") != asked:
            raise self._failed(f"expected silence, and got {_described(message)}")

    # Life

    async def open(self) -> None:
        await self.transport.start(self)

    async def close(self) -> End:
        return await self.transport.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # What the transport tells

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        self._unread += frames
        self._changed.set()

    def paused(self) -> None: ...

    def resumed(self) -> None: ...

    def ended(self, end: End) -> None:
        self.end = end
        self._changed.set()

    # Reading

    async def _message(self, what: str) -> Received:
        frame = await self._frame(what)
        try:
            message = codec.loads(frame)
        except ValueError:
            raise self._failed(f"expected {what}, and got what is not JSON: {_text(frame)}") from None
        if not isinstance(message, dict):
            raise self._failed(f"expected {what}, and got no object: {_text(frame)}")
        return cast("Received", message)

    async def _frame(self, what: str) -> bytes:
        while not self._unread:
            if self.end is not None:
                raise self._failed(f"expected {what}, and the link ended: {self.end.error()}")
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
                raise self._failed(f"expected {what}, and nothing came within {self.deadline:g} seconds") from None

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
    """The command that runs a script as an agent over stdio: a file and the name of a function in it, or the function.

    The function stands at the top of its file. The process ends when the script does: with 1 if it failed, and then
    its stderr says why.
    """
    if not isinstance(script, str | Path):
        script, name = inspect.getfile(script), getattr(script, "__qualname__", name)
    return [sys.executable, "-m", "accord.testing", str(script), name]


def main(arguments: Sequence[str]) -> int:
    """What such a command does."""
    path, name = arguments
    return asyncio.run(_play(_loaded(Path(path), name)))


def _loaded(path: Path, name: str) -> Script:
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))  # as for any script, what lies beside it can be imported
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
