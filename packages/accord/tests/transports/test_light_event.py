"""`LightEvent` does what `asyncio.Event` does."""

import asyncio

import pytest

from accord._internal.tasks import LightEvent

KINDS = pytest.mark.parametrize("make", [LightEvent, asyncio.Event])


async def steps():
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


@KINDS
async def test_a_set_event_is_not_waited_for(make):
    event = make()
    assert not event.is_set()
    event.set()
    assert event.is_set()
    await event.wait()


@KINDS
async def test_all_who_wait_go_on_in_their_order(make):
    event, order = make(), []

    async def wait(name):
        await event.wait()
        order.append(name)

    tasks = [asyncio.create_task(wait(name)) for name in range(4)]
    await steps()
    assert order == []
    event.set()
    event.set()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3]


@KINDS
async def test_who_waited_goes_on_also_if_it_is_cleared_at_once(make):
    event = make()
    task = asyncio.create_task(event.wait())
    await steps()
    event.set()
    event.clear()
    await task
    assert not event.is_set()


@KINDS
async def test_one_who_gives_up_does_not_disturb_the_others(make):
    event = make()
    first, second = asyncio.create_task(event.wait()), asyncio.create_task(event.wait())
    await steps()
    first.cancel()
    await steps()
    assert first.cancelled()
    third = asyncio.create_task(event.wait())
    await steps()
    event.set()
    second.cancel()  # its waiting is over, but its task has not run
    await steps()
    assert second.cancelled()
    await third


@KINDS
async def test_it_can_be_set_and_cleared_again_and_again(make):
    event, seen = make(), 0

    async def follow():
        nonlocal seen
        for _ in range(3):
            await event.wait()
            event.clear()
            seen += 1

    task = asyncio.create_task(follow())
    for _ in range(3):
        await steps()
        event.set()
    await task
    assert seen == 3
