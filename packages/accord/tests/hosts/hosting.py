"""Several hosts as processes, with a balancer in front of them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager

from accord import v1
from accord.http.client.client_socket import Broken
from accord.http.client.connection_pool import ConnectionPool
from tests.hosts.balancer import Balancer
from tests.http.talking import Editor, transport_to
from tests.waiting import DEADLINE

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
JSON = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]

KEY = "a key of more than thirty-two bytes for the tests"


@asynccontextmanager
async def editor_on(url, way="http1", **options):
    """An editor that is connected."""
    transport = transport_to(url, way, **options)
    async with Editor(transport) as editor:
        await editor.initialize(v1.InitializeRequest(1), timeout=DEADLINE)
        yield editor


async def post(url, body=INITIALIZE):
    """The status, the headers and the text of the answer to a POST."""
    asking = ConnectionPool(url, http2=False)
    try:
        response = await asking.request("POST", JSON, body)
        return response.status, dict(response.headers), (await response.body(1 << 20)).decode()
    finally:
        await asking.close()


class HostProcess:
    """One host."""

    def __init__(self, process, url, identifier):
        self.process = process
        self.url = url
        self.id = identifier

    @classmethod
    async def start(cls, settings):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.hosts.host_process", json.dumps(settings)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(DEADLINE):
            line = (await process.stdout.readline()).decode()
            assert line, f"the host did not start: {(await process.stderr.read()).decode()}"
        return cls(process, *line.split())

    async def said(self, text, times=1):
        """Wait until its log has said this so many times."""
        async with asyncio.timeout(DEADLINE):
            while times:
                line = (await self.process.stderr.readline()).decode()
                assert line, "the host has ended"
                times -= text in line
        self.last_said = line

    async def end(self, number=signal.SIGKILL):
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(DEADLINE):
            return await self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    async def health(self):
        """The status that its health check answers."""
        return (await self.ask("GET", path="/healthz"))[0]

    async def ask(self, method, headers=(), body=b"", path="/acp"):
        """The status and the text of the answer to one request."""
        asking = ConnectionPool(self.url.replace("/acp", path), http2=False)
        try:
            response = await asking.request(method, list(headers), body)
            return response.status, (await response.body(1 << 20)).decode()
        finally:
            await asking.close()


class HostProcesses:
    """Hosts that share a directory, and know each other."""

    def __init__(self, settings, count):
        self.settings = settings
        self.count = count
        self.all = []

    async def __aenter__(self):
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._end)
            await asyncio.gather(*(self.add() for _ in range(self.count)))
            self.balancer = await stack.enter_async_context(Balancer([host.url for host in self.all]))
            await self.know_each_other()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_):
        await self._stack.aclose()

    async def _end(self):
        for host in self.all:
            if host.process.returncode is None:
                os.kill(host.process.pid, signal.SIGCONT)
            await host.end()

    async def add(self, **more):
        """Start one more host."""
        self.all.append(host := await HostProcess.start({**self.settings, **more}))
        return host

    @property
    def url(self):
        return self.balancer.url

    async def host_of(self, editor):
        """The host with the agent of this editor."""
        session = await editor.open_session()
        await editor.prompt(session, "who")
        editor.first_words.clear()
        return next(host for host in self.all if str(host.process.pid) == editor.text(session))

    async def know_each_other(self):
        """Wait until every host forwards to every other: a connection that it does not have is refused by its host."""
        for host in self.all:
            for other in self.all:
                await self.answered(host, other, 404, "no such connection")

    async def answered(self, host, other, status, text):
        """Wait until `host` answers so for a connection of `other`."""
        headers = [("acp-connection-id", f"{other.id}.unknown"), ("accept", "text/event-stream")]
        headers += [("authorization", f"Bearer {token}") for token in list(self.settings.get("tokens", ()))[:1]]
        async with asyncio.timeout(DEADLINE):
            while True:
                try:
                    found = await host.ask("GET", headers)
                except Broken:
                    found = (0, "")
                if found[0] == status and text in found[1]:
                    return
                await asyncio.sleep(0.02)
