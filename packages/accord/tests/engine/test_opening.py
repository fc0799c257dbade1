"""What is sent while a connection opens, and a connection that cannot be opened."""

import asyncio

import pytest

import accord
from accord import Peer, v1
from accord.transports import End, Transport
from accord.transports.memory_transport import pair
from accord.transports.wrapped_transport import WrappedTransport
from tests.waiting import DEADLINE, eventually


class Unreachable(Transport):
    """Tries to start until it is told to give up."""

    name = "unreachable"
    unsent = 0

    def __init__(self, error):
        self.gives_up = asyncio.Event()
        self._error = error

    async def start(self, receiver):  # noqa: ARG002
        await self.gives_up.wait()
        raise self._error

    def send(self, frames):
        raise AssertionError(f"{frames} were sent on a link that is not open")

    async def flush(self):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass

    async def close(self, grace=2.0):  # noqa: ARG002
        return End("closed")


@pytest.mark.parametrize("error", [accord.ConnectionClosed("broken", "no such host"), OSError("no such host")])
async def test_a_request_that_was_made_meanwhile_fails_with_the_reason(error):
    transport = Unreachable(error)
    peer = Peer(transport, role="client")
    opening = asyncio.create_task(peer.connection.open())
    asking = asyncio.create_task(peer.request(v1.NewSessionRequest("/", [])))
    async with asyncio.timeout(DEADLINE):
        await eventually(lambda: peer.connection.statistics().pending == 1)
        transport.gives_up.set()
        with pytest.raises(type(error), match="no such host"):
            await opening
        with pytest.raises(accord.ConnectionClosed, match="no such host"):
            await asking
        assert not peer.connection.is_open
        with pytest.raises(accord.ConnectionClosed, match="no such host"):
            await peer.request(v1.NewSessionRequest("/", []))
        await peer.close()


class Slow(WrappedTransport):
    """Opens when it is told to."""

    def __init__(self, inner):
        super().__init__(inner)
        self.opens = asyncio.Event()

    async def start(self, receiver):
        await self.opens.wait()
        await super().start(receiver)


def answering(came):
    handlers = accord.Handlers()

    @handlers.on(v1.InitializeRequest)
    def initialize(_):
        came.append("initialize")
        return v1.InitializeResponse(1)

    @handlers.on(v1.NewSessionRequest)
    def new_session(_):
        came.append("session/new")
        return v1.NewSessionResponse(v1.SessionId("s"))

    return handlers


async def test_what_is_sent_while_a_connection_opens_leaves_in_order_when_it_is_open():
    here, there = pair()
    came = []
    slow = Slow(here)
    peer = Peer(slow, role="client")
    async with Peer(there, answering(came), role="agent"), asyncio.timeout(DEADLINE):
        opening = asyncio.create_task(peer.connection.open())
        asking = asyncio.gather(peer.initialize(v1.InitializeRequest(1)), peer.request(v1.NewSessionRequest("/", [])))
        await eventually(lambda: peer.connection.statistics().pending == 2)
        assert peer.connection.statistics().unsent == 0
        slow.opens.set()
        await opening
        _, opened = await asking
        await peer.close()
    assert (opened.session_id, came) == ("s", ["initialize", "session/new"])
