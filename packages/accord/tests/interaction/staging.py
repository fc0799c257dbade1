"""The agent's side of a test: a function at the top of the test's module, played here or in a process of its own.

    def agent(handlers, stage):
        @handlers.on(spoken.PromptRequest)
        async def prompt(request, context):
            stage.tell("started", session=request.session_id)
            await stage.cue("finish")
            return spoken.ended("end_turn")

What it tells and the cues that it waits for go past the link under test: over a socket of their own where the agent has
a process of its own. So a test says the same wherever its agent runs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import signal
import sys
from collections import defaultdict
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

from accord.agent.agent_connection import Router
from accord.engine.connection import Limits
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.engine.routes import Routes
from accord.schema import v1
from accord.transports.stdio_transport import StdioTransport
from tests.interaction.versions import spoken


class Stage:
    """What an agent of a test tells, and what it waits for."""

    def __init__(self, tell):
        self._tell = tell
        self._cues = defaultdict(lambda: asyncio.Semaphore(0))

    def tell(self, word, **facts):
        """Say that something happened."""
        self._tell(word, facts)

    async def cue(self, word):
        """Wait until the test gives this cue; each cue lets one waiter go on."""
        await self._cues[word].acquire()

    def cued(self, word):
        self._cues[word].release()


def staged(agent, stage):
    """What handles an agent's messages: its own handlers, and one for `initialize` unless it has one."""
    handlers = Handlers()
    agent(handlers, stage)
    handlers.on_request("_stage/curtain")(lambda _: stage.tell("curtain"))
    method = ("initialize", True)
    if method not in handlers.by_method:
        declared = getattr(agent, "capabilities", None)

        @handlers.on(spoken.InitializeRequest)
        def initialize(_, context):
            if spoken.version == 2:
                context.peer.connection.let_handshake_be_repeated()
            return spoken.welcomed(declared)

    return handlers if spoken.version == 1 else Routed(handlers)


class Routed:
    """Handlers of version 2, with the router that each agent of version 2 has."""

    def __init__(self, handlers):
        self._handlers = handlers

    def add_routes(self, routes, peer):
        own = Routes()
        self._handlers.add_routes(own, peer)
        self._handlers.add_routes(routes, peer)
        Router((2,), lambda _: own, lambda _: None).add_routes(routes, peer)


def declaring(capabilities):
    """What an agent of a test declares; for `initialize` when it has no handler for it."""

    def mark(agent):
        agent.capabilities = capabilities
        return agent

    return mark


def options_of(role, *, limits=None, **options):
    """Options as they travel to a process, as a peer takes them."""
    return {"role": role, "limits": None if limits is None else Limits(**limits), **options}


async def forever():
    """What never ends by itself."""
    await asyncio.get_running_loop().create_future()


async def until(condition):
    """Wait for what no event tells: it is looked at in every turn of the loop."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def turns(count=20):
    """Let everything happen that takes no time."""
    for _ in range(count):
        await asyncio.sleep(0)


def text_of(notification):
    return notification.update.content.text


def chunk(text, session="s"):
    return spoken.SessionNotification(v1.SessionId(session), spoken.chunk(text))


def says(text, session="s"):
    """An update as an agent sends it."""
    return tell("session/update", sessionId=session, update=spoken.chunk_on_the_wire(text))


def result(call, **fields):
    """The answer to a call that came, or to one with this id."""
    return {"jsonrpc": "2.0", "id": call["id"] if isinstance(call, dict) else call, "result": fields}


def ask(method, request_id, **params):
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def tell(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def prompt_params(text="go", session="s"):
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


# In a process of its own


@asynccontextmanager
async def remote_stage(path):
    reader, writer = await asyncio.open_unix_connection(path)

    def tell(word, facts):
        writer.write(json.dumps([word, facts]).encode() + b"\n")

    stage = Stage(tell)

    async def listen():
        async for line in reader:
            stage.cued(json.loads(line))

    listening = asyncio.create_task(listen())
    try:
        yield stage
    finally:
        listening.cancel()
        await writer.drain()
        writer.close()


async def play(agent, path, transport, options):
    async with remote_stage(path) as stage:
        transport = StdioTransport.standard(**transport)
        async with Peer(transport, staged(agent, stage), **options_of("agent", **options)) as peer:
            await peer.connection.closed()


class NoMarks(ModuleType):
    """Stands for pytest in an agent's process, to which the marks of tests mean nothing; importing it takes long."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments, **_):
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self


def loaded(path):
    spec = importlib.util.spec_from_file_location("test_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    given = json.loads(sys.argv[1])
    sys.modules["pytest"] = NoMarks("pytest")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in a shell's background
    spoken.version = given["version"]
    agent = getattr(loaded(Path(given["module"])), given["agent"])
    factory = None
    if given["uvloop"]:
        from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(play(agent, given["stage"], given["transport"], given["options"]))


if __name__ == "__main__":
    main()
