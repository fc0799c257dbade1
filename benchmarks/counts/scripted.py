"""The other side of a link, made of frames that are ready, so that a path counts the work of one side."""

import asyncio
from collections.abc import Callable, Sequence

from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import RequestFrame, parse
from accord.transports import End, Receiver, Target, Transport

TEXT = "the quick brown fox jumps over the lazy d"
READ_AT_ONCE = 300
"""Frames of one delivery: about what a read of 64 KiB has."""

INITIALIZED = {
    1: b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":1,"agentCapabilities":{}}}',
    2: (
        b'{"jsonrpc":"2.0","id":%d,"result":'
        b'{"protocolVersion":2,"info":{"name":"a","version":"0"},"capabilities":{"session":{}}}}'
    ),
}
OPENED = b'{"jsonrpc":"2.0","id":%d,"result":{"sessionId":"s"}}'
UPDATE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%b}}'
CHUNK = UPDATE % (
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%b"},"messageId":"m1"}' % TEXT.encode()
)
DONE = b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}'
INSERTED = UPDATE % (
    b'{"sessionUpdate":"user_message","messageId":"%d-user","content":[{"type":"text","text":"more"}]}'
)
TAKEN = b'{"jsonrpc":"2.0","id":%d,"result":{"messageId":"%d-user"}}'
RUNNING = UPDATE % b'{"sessionUpdate":"state_update","state":"running"}'
IDLE = UPDATE % b'{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}'


class ScriptedTransport(Transport):
    """Gives each frame that is sent to a function, and delivers the frames that it returns."""

    name = "script"

    def __init__(self, reply: Callable[[bytes], Sequence[bytes]]) -> None:
        self._reply = reply
        self._started: asyncio.Future[Receiver] = asyncio.get_running_loop().create_future()

    async def start(self, receiver: Receiver) -> None:
        """Begin; nothing is delivered before the first frame is sent."""
        self._started.set_result(receiver)

    async def started(self) -> Receiver:
        """Wait for the receiver of what is delivered."""
        return await self._started

    def send(self, frames: Sequence[bytes]) -> None:
        """Deliver the replies to these frames, in later turns of the loop."""
        for frame in frames:
            self.deliver(self._reply(frame))

    def deliver(self, frames: Sequence[bytes]) -> None:
        """Deliver frames in later turns of the loop, as reads would."""
        loop = asyncio.get_running_loop()
        for at in range(0, len(frames), READ_AT_ONCE):
            loop.call_soon(self._started.result().received, list(frames[at : at + READ_AT_ONCE]))

    @property
    def unsent(self) -> int:
        """Nothing waits."""
        return 0

    async def flush(self) -> None:
        """Nothing waits."""

    def pause_reading(self) -> None:
        """A script cannot wait."""

    def resume_reading(self) -> None:
        """A script has not waited."""

    async def close(self, grace: float = 2.0) -> End:  # noqa: ARG002
        """There is nothing to close."""
        return End("closed")


class ScriptedAgent(Target):
    """An agent that streams `chunks` chunks in each turn."""

    name = "scripted agent"

    def __init__(self, version: int) -> None:
        self.chunks = 0
        self._version = version

    def dial(self) -> Transport:
        """A link to this agent."""
        return ScriptedTransport(self._reply)

    def _reply(self, frame: bytes) -> list[bytes]:
        message = parse(frame)
        if not isinstance(message, RequestFrame) or not isinstance(message.id, int):
            return []
        if message.method == "initialize":
            return [INITIALIZED[self._version] % message.id]
        if message.method == "session/new":
            return [OPENED % message.id]
        return self._turn(message.id)

    def _turn(self, number: int) -> list[bytes]:
        if self._version == 1:
            return [CHUNK] * self.chunks + [DONE % number]
        return [INSERTED % number, TAKEN % (number, number), RUNNING, *[CHUNK] * self.chunks, IDLE]


class ScriptedClient:
    """A client that drops what it receives, and knows when its request was answered."""

    def __init__(self) -> None:
        self.transport = ScriptedTransport(self._received)
        self._answered: dict[RequestId, asyncio.Future[bytes]] = {}
        self._count = 0

    async def ask(self, request: bytes) -> bytes:
        """Deliver a request, whose text has a place for its id, and wait for the answer's frame."""
        self._count += 1
        await self.transport.started()
        answer = self._answered[self._count] = asyncio.get_running_loop().create_future()
        self.transport.deliver([request % self._count])
        return await answer

    def _received(self, frame: bytes) -> Sequence[bytes]:
        if frame.startswith(b'{"jsonrpc":"2.0","id":'):
            number = int(frame[len(b'{"jsonrpc":"2.0","id":') :].split(b",", 1)[0])
            self._answered.pop(number).set_result(frame)
        return ()
