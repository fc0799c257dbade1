"""A host ends, hangs, or drains, and the others go on."""

import asyncio
import signal

import pytest

import accord
from tests.hosts.hosting import editor_on
from tests.waiting import DEADLINE


def others(hosts, host):
    return [other for other in hosts.all if other is not host]


async def begun(editor, text):
    """A session with a running turn that has said something."""
    session = await editor.open_session()
    turn = asyncio.create_task(editor.prompt(session, text))
    async with asyncio.timeout(DEADLINE):
        await editor.first_words.wait()
    return session, turn


async def test_a_turn_goes_on_when_its_forwarders_are_killed(hosts):
    async with editor_on(hosts.url) as editor:
        session, turn = await begun(editor, "slowly 200")
        for host in others(hosts, await hosts.host_of(editor)):
            await host.end(signal.SIGKILL)
            await editor.hear_more()
        assert (await turn).stop_reason == "end_turn"
        assert editor.text(session) == "".join(f"{number} " for number in range(200))


async def test_prompts_are_taken_once_while_forwarders_are_killed(hosts):
    async with editor_on(hosts.url) as editor:
        session = await editor.open_session()
        dying = others(hosts, await hosts.host_of(editor))
        for number in range(40):
            asked = asyncio.create_task(editor.prompt(session, f"<{number}>"))
            if number % 20 == 10:
                await dying.pop().end(signal.SIGKILL)
            await asked
        assert editor.text(session) == "".join(f"<{number}>" for number in range(40))


async def test_a_client_is_told_that_the_host_of_its_connection_was_killed(hosts):
    async with editor_on(hosts.url) as editor:
        session, turn = await begun(editor, "wait")
        dead = await hosts.host_of(editor)
        await dead.end(signal.SIGKILL)
        with pytest.raises(accord.ConnectionClosed, match="the host of this connection has ended"):
            await turn
        assert editor.text(session) == "waiting"
    hosts.balancer.remove(dead.url)
    async with editor_on(hosts.url) as editor:
        await editor.request(accord.v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)
        assert editor.text(session) == "waiting"


async def test_a_frozen_host_is_declared_dead_and_ends_its_connections_when_it_goes_on(hosts):
    async with editor_on(hosts.url) as editor:
        _, turn = await begun(editor, "wait")
        frozen = await hosts.host_of(editor)
        frozen.freeze()
        for other in others(hosts, frozen):
            await hosts.answered(other, frozen, 404, "the host of this connection has ended")
        frozen.thaw()
        with pytest.raises(accord.ConnectionClosed):
            await turn
        # It has joined again under another id.
        async with asyncio.timeout(DEADLINE):
            async with editor_on(frozen.url) as again:
                assert await hosts.host_of(again)


async def test_a_frozen_host_is_answered_for_with_503_until_it_is_declared_dead(hosts):
    one, two, three = hosts.all
    one.freeze()
    for other in (two, three):
        await hosts.answered(other, one, 503, "does not answer")
    one.thaw()
    await hosts.answered(two, one, 404, "")


async def test_a_draining_host_opens_connections_on_others_and_ends(hosts):
    async with editor_on(hosts.url) as editor:
        leaving = await hosts.host_of(editor)
        _, turn = await begun(editor, "slowly 150")
        leaving.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            while await leaving.health() != 503:  # noqa: ASYNC110 - the process has no event for us
                await asyncio.sleep(0.01)
        async with editor_on(leaving.url) as late:
            assert await hosts.host_of(late) is not leaving
        assert (await turn).stop_reason == "end_turn"
    assert await leaving.process.wait() == 0
    for other in others(hosts, leaving):
        await hosts.answered(other, leaving, 404, "was shut down")
