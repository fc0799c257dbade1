"""How the checks learn that a client has left the agent that it started."""

import asyncio
import socket

import pytest

from accord_check.client.launch_command import RelayedClient
from accord_check.client.relay import HEAD


class Receiver:
    def __init__(self):
        self.end = asyncio.get_running_loop().create_future()

    def received(self, frames):
        raise AssertionError(frames)

    def ended(self, end):
        self.end.set_result(end)


@pytest.fixture
async def relay():
    """The relay's end of the line, the transport at the other end, and its receiver."""
    ours, theirs = socket.socketpair()
    relayed, receiver = RelayedClient(*await asyncio.open_connection(sock=ours)), Receiver()
    await relayed.start(receiver)
    _, writer = await asyncio.open_connection(sock=theirs)
    async with asyncio.timeout(60):
        yield writer, relayed, receiver
        writer.close()
        await relayed.close()


async def test_a_client_that_closes_both_streams_may_close_the_output_first(relay):
    writer, relayed, receiver = relay
    writer.write(HEAD.pack(b"b", 0))
    assert "standard output" in (await receiver.end).detail
    assert not relayed.input_over.is_set()
    writer.write(HEAD.pack(b"e", 0))
    await relayed.input_over.wait()
    assert relayed.end_of_input


async def test_no_end_of_the_input_comes_when_the_process_has_ended(relay):
    writer, relayed, receiver = relay
    writer.write(HEAD.pack(b"b", 0))
    await receiver.end
    writer.close()
    await relayed.input_over.wait()
    assert not relayed.end_of_input
