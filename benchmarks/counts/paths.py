"""The paths that are counted: each is opened once, and then run with numbers of messages."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

import accord
from accord import Handlers, Peer, StdioTransport, v1
from accord.http import connect_transport, serving
from accord.transports import Target, Transport
from benchmarks.contract import FILE, FILE_TEXT, Json
from benchmarks.counts.calibration import calibrate
from benchmarks.counts.scripted import TEXT, ScriptedAgent, ScriptedClient
from benchmarks.floor import Message, Params, Pipe, Text, Update

Run: TypeAlias = Callable[[int], Awaitable[object]]
"""Handles so many messages."""

SESSION = v1.SessionId("0123456789abcdef0123456789abcdef")


class Path(NamedTuple):
    """Messages that go one way through the program."""

    name: str
    size: int
    """Messages of the shorter run; the longer one has three times as many."""
    opened: Callable[[], AbstractAsyncContextManager[Run]]


agent = accord.Agent("counted")


@agent.on_prompt
async def prompt(turn: accord.Turn) -> None:
    """Say a chunk, or update a tool, as often as the prompt says.

    `one` is a turn with one chunk, `work` one with twenty chunks and a tool call between them.
    """
    verb, _, number = turn.text.partition(" ")
    match verb:
        case "say":
            for _ in range(int(number)):
                await turn.say(TEXT)
        case "tool":
            async with turn.tool("Edit a file", kind="edit") as tool:
                for _ in range(int(number)):
                    await tool.text(TEXT)
        case "one":
            await turn.say(TEXT)
        case "work":
            for _ in range(10):
                await turn.say(TEXT)
            async with turn.tool("Edit a file", kind="edit") as tool:
                await tool.text(TEXT)
            for _ in range(10):
                await turn.say(TEXT)
        case _:
            pass


@asynccontextmanager
async def calibration() -> AsyncGenerator[Run]:
    """No code of ours: what the other counts are divided by."""
    yield calibrate


# Requests


def link() -> tuple[tuple[int, int], tuple[int, int]]:
    """The descriptors of two ends that are joined by two pipes: each end reads the first and writes the second."""
    (read_here, write_there), (read_there, write_here) = os.pipe(), os.pipe()
    return (read_here, write_here), (read_there, write_there)


@asynccontextmanager
async def peers() -> AsyncGenerator[Peer]:
    """An agent's end of a link over pipes, whose client answers requests for a file."""
    here, there = link()
    handlers = Handlers()

    @handlers.on(v1.InitializeRequest)
    def initialize(_: v1.InitializeRequest) -> v1.InitializeResponse:
        return v1.InitializeResponse(protocol_version=1)

    files = Handlers()

    @files.on(v1.ReadTextFileRequest)
    def read_text_file(_: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
        return v1.ReadTextFileResponse(FILE_TEXT)

    async with (
        Peer(StdioTransport(*here), handlers, role="agent") as ours,
        Peer(StdioTransport(*there), files, role="client") as client,
    ):
        can_read = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(read_text_file=True))
        await client.initialize(v1.InitializeRequest(1, can_read))
        yield ours


@asynccontextmanager
async def requests(in_flight: int) -> AsyncGenerator[Run]:
    """The agent reads a file through the client; both ends are counted."""
    async with peers() as peer:
        request = v1.ReadTextFileRequest(SESSION, FILE)
        yield partial(one_after_another, lambda: peer.request(request), in_flight)


async def one_after_another(ask: Callable[[], Awaitable[object]], in_flight: int, count: int) -> None:
    """Ask so many times, so many at once."""
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await ask()

    await asyncio.gather(*(work() for _ in range(in_flight)))


@asynccontextmanager
async def floor_requests(in_flight: int) -> AsyncGenerator[Run]:
    """The same bytes over a bare pipe with msgspec, as `benchmarks.floor` says."""
    here, there = link()
    contents: dict[str, Json] = {"content": FILE_TEXT}
    asking = Pipe(lambda _: None, *here)
    answering = Pipe(lambda message: answering.write(Message("2.0", message.id, result=contents)), *there)
    params = Params(SESSION, path=FILE)
    try:
        yield partial(one_after_another, lambda: asking.ask("fs/read_text_file", params), in_flight)
    finally:
        for descriptor in {*here, *there}:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)


@asynccontextmanager
async def floor_updates() -> AsyncGenerator[Run]:
    """Updates in one direction over a bare pipe, made and read with msgspec; both ends are counted."""
    here, there = link()
    wanted, came = 0, asyncio.Event()

    def arrived(_: Message) -> None:
        nonlocal wanted
        wanted -= 1
        if not wanted:
            came.set()

    sending = Pipe(lambda _: None, *here)
    Pipe(arrived, *there)  # the loop keeps it
    chunk = Update("agent_message_chunk", Text(TEXT))

    async def run(count: int) -> None:
        nonlocal wanted
        wanted = count
        came.clear()
        for _ in range(count):
            if sending.put(Message("2.0", method="session/update", params=Params(SESSION, chunk))):
                sending.flush()
                await sending.room.wait()
        sending.flush()
        await came.wait()

    try:
        yield run
    finally:
        for descriptor in {*here, *there}:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)


# Updates


@asynccontextmanager
async def sent(command: str) -> AsyncGenerator[Run]:
    """The agent alone: its client drops what it receives."""
    client = ScriptedClient()
    serving_it = asyncio.create_task(agent.serve(client.transport))
    try:
        await client.ask(b'{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":1}}')
        opened = await client.ask(
            b'{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}'
        )
        session = msgspec.json.decode(opened)["result"]["sessionId"].encode()

        async def run(count: int) -> None:
            text = f"{command} {count}".encode()
            await client.ask(
                b'{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"'
                + session
                + b'","prompt":[{"type":"text","text":"'
                + text
                + b'"}]}}'
            )

        yield run
    finally:
        serving_it.cancel()
        with suppress(asyncio.CancelledError):
            await serving_it


@asynccontextmanager
async def received(version: int, *, read: bool) -> AsyncGenerator[Run]:
    """The client alone: it awaits a turn of so many chunks, or reads them one by one; both fold them."""
    scripted = ScriptedAgent(version)
    async with accord.connect(scripted, versions=(version,)) as remote:
        session = await remote.new_session("/")

        async def run(count: int) -> None:
            scripted.chunks = count
            reply = session.prompt("more")
            if read:
                async for _ in reply:
                    pass
            await reply

        yield run


@asynccontextmanager
async def through_a_proxy() -> AsyncGenerator[Run]:
    """A chunk, from the agent through a conductor and a proxy to the client."""
    chain = accord.chain(accord.Proxy("pass"), agent)
    async with accord.connect(chain) as remote:
        session = await remote.new_session("/")
        yield lambda count: session.prompt(f"say {count}")


# Turns


@asynccontextmanager
async def turns(target: accord.Agent | Target, text: str, version: int = 1) -> AsyncGenerator[Run]:
    """A prompt and its answer, one after the other; both ends are counted."""
    async with accord.connect(target, versions=(version,)) as remote:
        session = await remote.new_session("/")

        async def run(count: int) -> None:
            for _ in range(count):
                await session.prompt(text)

        yield run


@asynccontextmanager
async def remote_turns(way: str) -> AsyncGenerator[Run]:
    """A prompt, one chunk and the answer over the loopback network; both ends are counted."""
    async with serving(agent) as server, Peer(_transport(server.url, way), _updates(), role="client") as peer:
        await peer.initialize(v1.InitializeRequest(1))
        session = (await peer.request(v1.NewSessionRequest("/", []))).session_id

        async def run(count: int) -> None:
            for _ in range(count):
                await peer.request(v1.PromptRequest.of(session, "one"))

        yield run


def _transport(url: str, way: str) -> Transport:
    if way == "WebSocket":
        return connect_transport(url.replace("http", "ws", 1))
    return connect_transport(url, http2=way == "HTTP/2")


def _updates() -> Handlers:
    handlers = Handlers()
    handlers.on(v1.SessionNotification)(lambda _: None)
    return handlers


PATHS = (
    Path("calibration", 300, calibration),
    Path("floor: a round trip", 80, partial(floor_requests, 1)),
    Path("floor: a request, 100 in flight", 400, partial(floor_requests, 100)),
    Path("floor: an update", 300, floor_updates),
    Path("a round trip", 80, partial(requests, 1)),
    Path("a request, 100 in flight", 400, partial(requests, 100)),
    Path("a chunk sent", 300, partial(sent, "say")),
    Path("a chunk awaited", 300, partial(received, 1, read=False)),
    Path("a chunk read", 300, partial(received, 1, read=True)),
    Path("a chunk awaited, version 2", 300, partial(received, 2, read=False)),
    Path("a chunk read, version 2", 300, partial(received, 2, read=True)),
    Path("a tool's update", 200, partial(sent, "tool")),
    Path("an empty turn", 50, partial(turns, agent, "empty")),
    Path("an empty turn, version 2", 50, partial(turns, agent, "empty", 2)),
    Path("a turn with a tool call", 20, partial(turns, agent, "work")),
    Path("a turn with a tool call, version 2", 20, partial(turns, agent, "work", 2)),
    Path("a chunk through a proxy", 300, through_a_proxy),
    Path("a turn over WebSocket", 30, partial(remote_turns, "WebSocket")),
    Path("a turn over HTTP/1.1", 30, partial(remote_turns, "HTTP/1.1")),
    Path("a turn over HTTP/2", 30, partial(remote_turns, "HTTP/2")),
)

HOT = (
    "a round trip",
    "a request, 100 in flight",
    "a chunk sent",
    "a chunk awaited",
    "a chunk read",
    "a chunk awaited, version 2",
    "a chunk read, version 2",
    "a tool's update",
    "an empty turn",
    "an empty turn, version 2",
)
"""The names of the paths that most messages take."""
