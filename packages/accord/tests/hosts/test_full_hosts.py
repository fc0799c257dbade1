"""A connection is opened through hosts that are full, or that die while they open it."""

import asyncio
import signal
import time
from contextlib import AsyncExitStack

import accord
from accord import v1
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.hosts.hosts import listed_hosts
from accord.hosts.peers import PATH
from accord.hosts.signed_forward import Signer
from accord.hosts.sqlite_hosts import SqliteDirectory
from accord.http.client.connection_pool import ConnectionPool
from accord.http.server.agent_host import Host
from accord.http.server.serve import serving
from tests.hosts.hosting import INITIALIZE, JSON, HostProcesses, editor_on
from tests.http.talking import an_agent
from tests.waiting import DEADLINE, eventually

LEASE = 2.0


async def opened_by(sender, receiver, directory):
    """Open a connection of a host in the name of another one, as that forwards it; returns the id."""
    row = {row.id: row for row in await listed_hosts(directory, "accord")}[receiver.id]
    async with SqliteDirectory(directory) as table:
        key = await table.key()
    signer = Signer([key], lambda: sender.id)
    forward = signer.forward(receiver.id, time.monotonic(), body=INITIALIZE)  # all processes here have one clock
    asking = ConnectionPool(f"http://{row.address}{PATH}", http2=False)
    try:
        headers = [*JSON, ("accord-hop", signer.sign(forward, "POST", PATH, dict(JSON)))]
        response = await asking.request("POST", headers, INITIALIZE)
        await response.body(1 << 20)
        assert response.status == 200
        return response.header("acp-connection-id")
    finally:
        await asking.close()


async def connections_of(host, directory):
    return {row.id: row.connections for row in await listed_hosts(directory, "accord")}[host.id]


async def has_connections(host, directory, count):
    """Wait until the directory says that a host has so many connections."""
    async with asyncio.timeout(DEADLINE):
        while await connections_of(host, directory) != count:  # noqa: ASYNC110 - the process has no event for us
            await asyncio.sleep(0)


async def test_a_connection_whose_forwarder_dies_before_its_client_has_used_it_ends_at_once(tmp_path):
    directory = tmp_path / "hosts.sqlite3"
    settings = {"directory": str(directory), "store": str(tmp_path / "store.sqlite3"), "lease": LEASE}
    async with HostProcesses(settings, 2) as hosts:
        agents, forwarder = hosts.all
        used = await opened_by(forwarder, agents, directory)
        await opened_by(forwarder, agents, directory)
        await opened_by(forwarder, agents, directory)
        await has_connections(agents, directory, 3)
        headers = [("acp-connection-id", used), ("accept", "application/json"), *JSON]
        told = await agents.ask("POST", headers, b'{"jsonrpc":"2.0","method":"_example/hello"}')
        assert told[0] == 202
        await forwarder.end(signal.SIGKILL)
        await has_connections(agents, directory, 1)
        assert (await agents.ask("DELETE", headers))[0] == 202


class Slow(Host):
    """Answers `initialize` when it may."""

    name = "slow"

    def __init__(self):
        self.asked, self.may_answer, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.handlers = Handlers()
        self.handlers.on(v1.InitializeRequest)(self.open)

    async def open(self, request):  # noqa: ARG002
        self.asked.set()
        await self.may_answer.wait()
        return v1.InitializeResponse(1)

    async def serve(self, transport, owner):  # noqa: ARG002
        async with Peer(transport, self.handlers, role="agent") as peer:
            await peer.connection.closed()
        self.ended.set()


async def test_a_connection_whose_client_leaves_while_it_is_opened_elsewhere_ends_at_once(tmp_path):
    directory, slow = tmp_path / "hosts.sqlite3", Slow()
    async with (
        serving(slow, hosts=accord.Hosts(directory)) as agents,
        serving(an_agent(), hosts=accord.Hosts(directory, weight=0)) as front,
    ):
        await eventually(front.app.cluster.peers.ready)
        asking = ConnectionPool(front.url, http2=False)
        opening = asyncio.ensure_future(asking.request("POST", JSON, INITIALIZE))
        async with asyncio.timeout(DEADLINE):
            await slow.asked.wait()
            opening.cancel()
            await asyncio.wait([opening])
            await asking.close()
            slow.may_answer.set()
            await slow.ended.wait()
        assert agents.app.connections == 0


async def test_a_client_waits_until_a_host_has_room(tmp_path):
    settings = {"directory": str(tmp_path / "hosts.sqlite3"), "store": str(tmp_path / "store.sqlite3")}
    async with HostProcesses({**settings, "connections": 1}, 2) as hosts, AsyncExitStack() as stack:
        await stack.enter_async_context(editor_on(hosts.all[0].url))
        async with editor_on(hosts.all[1].url):
            opening = asyncio.create_task(stack.enter_async_context(editor_on(hosts.url)))
            await eventually(lambda: any(hosts.balancer.taken.values()))
            assert not opening.done()
        editor = await opening
        session = await editor.open_session()
        await editor.prompt(session, "hello")
        assert editor.text(session) == "hello"
