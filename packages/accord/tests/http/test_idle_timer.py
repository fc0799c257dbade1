"""IdleTimer, on a loop whose time is virtual: `virtual_time.py` moves it."""

import asyncio

import pytest

from accord._internal.tasks import IdleTimer
from tests.engine.virtual_time import VirtualLoop


@pytest.fixture
def idle_times():
    """Runs a program with the list of the times at which nothing had happened for ten seconds."""

    def run(program):
        async def main():
            loop = asyncio.get_running_loop()
            noticed = []
            timer = IdleTimer(10, lambda: noticed.append(loop.time()))
            try:
                await program(timer)
            finally:
                timer.stop()
            return noticed

        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(main())

    return run


async def until(when):
    reached = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_at(when, reached.set_result, None)
    await reached


def test_silence_is_noticed_each_time_that_it_has_lasted(idle_times):
    assert idle_times(lambda _: until(35)) == [10, 20, 30]


def test_silence_begins_with_the_latest_message(idle_times):
    async def program(timer):
        for when in (4, 9, 18):
            await until(when)
            timer.touch()
        await until(30)

    assert idle_times(program) == [28]


def test_a_stopped_silence_is_not_noticed(idle_times):
    async def program(timer):
        await until(5)
        timer.stop()
        timer.stop()
        await until(50)

    assert idle_times(program) == []


def test_silence_may_be_stopped_when_it_is_noticed():
    async def main():
        noticed = asyncio.Event()

        def stop():
            noticed.set()
            timer.stop()

        timer = IdleTimer(10, stop)
        await noticed.wait()
        noticed.clear()
        await until(100)
        return noticed.is_set()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert not runner.run(main())
