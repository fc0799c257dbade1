"""What a host does for a client is broken off when the client has left."""

import asyncio

import pytest

from accord.hosts.forwarder import CancelOnDisconnect
from accord.http.server.validation import Refusal
from tests.waiting import DEADLINE


@pytest.fixture
def receive():
    """What the server receives of a client: nothing until the test says it."""
    waiting = asyncio.Queue()

    async def receive():
        receive.asked.set()
        return await waiting.get()

    receive.asked = asyncio.Event()
    receive.tell = waiting.put_nowait
    return receive


async def test_work_is_broken_off_when_the_client_has_left(receive):
    receive.tell({"type": "http.request"})
    receive.tell({"type": "http.disconnect"})
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(Refusal, match="the client closed the connection"):
            async with CancelOnDisconnect(receive):
                await asyncio.Event().wait()


async def test_work_that_is_done_soon_asks_for_nothing(receive):
    async with CancelOnDisconnect(receive):
        await asyncio.sleep(0)
    assert not receive.asked.is_set()


async def test_work_that_is_done_later_leaves_no_task(receive):
    before = asyncio.all_tasks()
    async with asyncio.timeout(DEADLINE), CancelOnDisconnect(receive):
        await receive.asked.wait()
    receive.tell({"type": "http.disconnect"})
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_an_error_and_a_cancellation_are_passed_on(receive):
    with pytest.raises(KeyError):
        async with CancelOnDisconnect(receive):
            raise KeyError

    async def work():
        async with CancelOnDisconnect(receive):
            await receive.asked.wait()
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    async with asyncio.timeout(DEADLINE):
        await receive.asked.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
