"""A chain whose client and components are scripts, twice: in this program, and as processes under `accord conduct`."""

from __future__ import annotations

import asyncio
import shlex
import socket
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from accord.proxy.chain import Chain
from accord.testing import ScriptedPeer
from accord.transports import Target
from accord.transports.memory_transport import pair
from accord.transports.process_transport import ProcessTransport
from accord.transports.stdio_transport import StdioTransport
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401
from tests.waiting import DEADLINE

COMPONENT = Path(__file__).parent / "component.py"
"""Seconds for a message; generous, as machines are shared."""

CONDUCT = [sys.executable, "-m", "accord", "conduct"]


class Script(ScriptedPeer):
    """A component, or the client."""

    def __init__(self, transport=None):
        super().__init__(transport, deadline=DEADLINE)
        self.started = asyncio.Event()

    async def there(self):
        """Wait until the component has been started."""
        async with asyncio.timeout(DEADLINE):
            await self.started.wait()
        return self

    def wrapped(self, method, params=None, *, id=None):  # noqa: A002
        """Send a request in an envelope; returns its id."""
        return self.call("proxy/successor", inner(method, params), id=id)

    def tell_wrapped(self, method, params=None):
        self.tell("proxy/successor", inner(method, params))

    async def expect_wrapped(self, method):
        """Receive the next message, an envelope with this method in it; returns its id, if it has one, and the rest."""
        envelope = await self.expect("proxy/successor")
        assert envelope["params"]["method"] == method
        return {**envelope["params"], **({"id": envelope["id"]} if "id" in envelope else {})}


def inner(method, params):
    return {"method": method, **({} if params is None else {"params": params})}


class InMemory(Target):
    """A script in this program, as a target of a chain."""

    name = "script"

    def __init__(self, script):
        self._script = script
        self.opening = None

    def dial(self):
        here, self._script.transport = pair()
        self.opening = asyncio.create_task(self._open())
        return here

    async def _open(self):
        await self._script.open()
        self._script.started.set()


class Line:
    """A chain of scripts that is being tried."""

    def __init__(self, way, stack):
        self.way = way
        self._stack = stack
        self.client = Script()
        self.scripts = []
        self._folder = Path(tempfile.mkdtemp(prefix="chain-"))

    @property
    def proxies(self):
        return self.scripts[:-1]

    @property
    def agent(self):
        return self.scripts[-1]

    def component(self):
        """A new script, as a component: a target in memory, a command for processes."""
        script = Script()
        self.scripts.append(script)
        if self.way == "memory":
            return InMemory(script)
        path = self._folder / f"{len(self.scripts)}.sock"
        self._listen(script, path)
        return shlex.join([sys.executable, str(COMPONENT), str(path)])

    def _listen(self, script, path):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(1)
        listener.setblocking(False)
        self._stack.callback(listener.close)
        accepting = asyncio.create_task(self._accept(script, listener))
        self._stack.callback(accepting.cancel)

    async def _accept(self, script, listener):
        link, _ = await asyncio.get_running_loop().sock_accept(listener)
        fd = link.detach()
        script.transport = StdioTransport(fd, fd)
        await script.open()
        script.started.set()

    async def open(self, *components, as_proxy=False, bridge=False):
        """Connect the client with these components; without the bridge, all answers pass as they came."""
        if self.way == "memory":
            self.target = Chain(components, as_proxy=as_proxy, trace=None, bridge=bridge)
            self.client.transport = self.target.dial()
            self._stack.push_async_callback(self.target.release)
        else:
            options = [*(["--as-proxy"] if as_proxy else []), *([] if bridge else ["--no-bridge"])]
            command = [*CONDUCT, *options, *components]
            self.client.transport = ProcessTransport(command)
        await self.client.open()
        self._stack.push_async_callback(self.close)
        return self

    def nested(self, *components):
        """These components as one component."""
        if self.way == "memory":
            return Chain(components, as_proxy=True, trace=None)
        return shlex.join([*CONDUCT, "--as-proxy", *components])

    async def close(self):
        await self.client.close()
        for script in self.scripts:
            if script.started.is_set():
                await script.close()


@pytest.fixture(params=["memory", "stdio"])
def way(request):
    return request.param


@pytest.fixture
async def line(way):
    """A chain of scripts to build: `await line.open(line.component(), line.component())`."""
    async with AsyncExitStack() as stack:
        yield Line(way, stack)


@pytest.fixture
async def chain(line):
    """`await chain(2)`: a chain of two proxies and an agent, initialized."""

    async def build(proxies, version=1):
        await line.open(*(line.component() for _ in range(proxies + 1)))
        await initialize(line, version=version)
        return line

    return build


async def initialize(line, version=1, answer=None):
    """Go through the handshake; every component chooses this version."""
    asked = line.client.call("initialize", {"protocolVersion": version})
    outer = []
    for proxy in line.proxies:
        await proxy.there()
        outer.append(await proxy.expect("proxy/initialize"))
        proxy.wrapped("initialize", outer[-1]["params"], id="init")
    agent = await line.agent.there()
    agent.answer(await agent.expect("initialize"), answer or {"protocolVersion": version})
    for proxy, request in zip(reversed(line.proxies), reversed(outer), strict=True):
        proxy.answer(request, await proxy.expect_result("init"))
    return await line.client.expect_result(asked)
