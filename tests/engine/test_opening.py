"""A connection that cannot be opened."""

import asyncio

import pytest

import accord
from accord import Peer, v1
from accord.transports.base import End, Transport
from tests.waiting import DEADLINE


class Unreachable(Transport):
    """Tries to start until it is told to give up."""

    name = "unreachable"
    unsent = 0

    def __init__(self, error):
        self.gives_up = asyncio.Event()
        self.sent = asyncio.Event()
        self._error = error

    async def start(self, receiver):  # noqa: ARG002
        await self.gives_up.wait()
        raise self._error

    def send(self, frames):  # noqa: ARG002
        self.sent.set()

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
        await transport.sent.wait()
        transport.gives_up.set()
        with pytest.raises(type(error), match="no such host"):
            await opening
        with pytest.raises(accord.ConnectionClosed, match="no such host"):
            await asking
        assert not peer.connection.is_open
        with pytest.raises(accord.ConnectionClosed, match="no such host"):
            await peer.request(v1.NewSessionRequest("/", []))
        await peer.close()
