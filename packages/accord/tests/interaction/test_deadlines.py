"""Deadlines for a request: for the whole of it, and for a time without a message."""

from __future__ import annotations

import asyncio

import pytest

from accord.engine.connection import Limits
from accord.engine.handlers import Handlers
from accord.errors import Timeout
from tests.interaction.staging import ask, forever, result, says, text_of, turns, until
from tests.interaction.versions import spoken


def prompting(peer, session="s", **options):
    return asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId(session), "go"), **options))


async def test_a_deadline_fails_the_request_and_cancels_it(connect, clock):
    async with connect.as_agent() as (script, peer):
        asking = prompting(peer, timeout=20)
        call = await script.expect("session/prompt")
        await clock.advance(19)
        assert not asking.done()
        await clock.advance(2)
        await asyncio.wait([asking])
        assert isinstance(asking.exception(), Timeout)
        assert isinstance(asking.exception(), TimeoutError)
        assert str(asking.exception()) == "session/prompt: no answer after 20 seconds"
        assert (await script.expect("$/cancel_request"))["params"] == {"requestId": call["id"]}
        assert peer.connection.statistics().pending == 0


async def test_a_raw_request_has_a_deadline_too(connect, clock):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request_raw("_example.com/ask", timeout=5))
        await script.expect("_example.com/ask")
        await clock.advance(6)
        with pytest.raises(Timeout):
            await asking
        await script.expect("$/cancel_request")


@pytest.mark.uvloop
async def test_a_deadline_that_has_passed_already_fails_at_once(connect):
    async with connect.as_agent() as (script, peer):
        with pytest.raises(Timeout):
            await peer.request_raw("_example.com/ask", timeout=0)
        await script.expect("_example.com/ask")
        await script.expect("$/cancel_request")
        await script.expect_silence()


@pytest.mark.parametrize("deadline", [{"timeout": 5}, {"idle_timeout": 5}], ids=str)
async def test_a_deadline_also_counts_while_the_other_side_does_not_read(connect, clock, deadline):
    async with connect.as_agent(transport={"high_water": 1_000}) as (script, peer):
        script.transport.pause_reading()
        sending = asyncio.create_task(fill(peer, enough := asyncio.Event()))
        await until(lambda: peer.connection._outbox.full)
        asking = prompting(peer, **deadline)
        await turns()
        await clock.advance(6)
        with pytest.raises(Timeout):
            await asking
        enough.set()
        script.transport.resume_reading()
        await sending


async def fill(peer, enough):
    """Say so much that it fills what a network takes in between, and whatever it takes."""
    while not enough.is_set():
        await peer.notify_raw("_example.com/news", {"text": "x" * 50_000})


@pytest.mark.needs("a clock that can jump")
async def test_an_answer_in_time_is_an_answer(connect, clock):
    async with connect.as_agent() as (script, peer):
        asking = prompting(peer, timeout=20, idle_timeout=20)
        call = await script.expect("session/prompt")
        await clock.advance(19)
        script.answer(call, spoken.ending())
        assert spoken.end_of(await asking) == "end_turn"
        await clock.advance(20)
        await script.expect_silence()


@pytest.mark.needs("a clock that can jump")
async def test_updates_keep_an_idle_deadline_from_passing(connect, clock):
    async with connect.as_agent(updates()) as (script, peer):
        asking = prompting(peer, idle_timeout=10)
        call = await script.expect("session/prompt")
        for _ in range(5):
            await clock.advance(9)
            script.send(says("still here"))
            await script.expect_silence()
        assert not asking.done()
        script.answer(call, spoken.ending())
        await asking


@pytest.mark.needs("a clock that can jump")
async def test_a_time_without_a_message_fails_the_request_and_cancels_it(connect, clock):
    async with connect.as_agent(updates()) as (script, peer):
        asking = prompting(peer, timeout=100, idle_timeout=10)
        call = await script.expect("session/prompt")
        await clock.advance(9)
        script.send(says("last words"))
        await script.expect_silence()
        await clock.advance(9)
        assert not asking.done()
        await clock.advance(2)
        await asyncio.wait([asking])
        assert str(asking.exception()) == "session/prompt: no answer after 10 seconds without a message"
        assert (await script.expect("$/cancel_request"))["params"] == {"requestId": call["id"]}


async def test_words_of_another_session_are_no_words_of_this_one(connect, clock):
    async with connect.as_agent(updates()) as (script, peer):
        asking = prompting(peer, "a", idle_timeout=10)
        await script.expect("session/prompt")
        await clock.advance(9)
        script.send(says("hello", "b"))
        await script.expect_silence()
        await clock.advance(2)
        with pytest.raises(Timeout):
            await asking
        await script.expect("$/cancel_request")


@pytest.mark.needs("a clock that can jump")
async def test_a_whole_deadline_passes_whatever_is_said(connect, clock):
    async with connect.as_agent(updates()) as (script, peer):
        asking = prompting(peer, timeout=20, idle_timeout=10)
        await script.expect("session/prompt")
        for _ in range(3):
            await clock.advance(7)
            script.send(says("still here"))
            await script.expect("$/cancel_request") if asking.done() else await script.expect_silence()
        await asyncio.wait([asking])
        assert str(asking.exception()) == "session/prompt: no answer after 20 seconds"


async def test_several_idle_deadlines_in_a_session_do_not_disturb_each_other(connect, clock):
    client, held = Handlers(), asyncio.Event()

    @client.on(spoken.SessionNotification)
    async def update(notification):
        if text_of(notification) == "slow":
            await held.wait()

    async with connect.as_agent(client, limits=Limits(stuck_after=100)) as (script, peer):
        first, second = prompting(peer, idle_timeout=10), prompting(peer, idle_timeout=10)
        one, other = await script.expect("session/prompt"), await script.expect("session/prompt")
        # Both answers are here; the second one has to wait for a notification between them.
        script.send(result(one, **spoken.ending()), says("slow"), result(other, **spoken.ending("refusal")))
        await first
        await clock.advance(11)
        with pytest.raises(Timeout):
            await second
        third = prompting(peer, idle_timeout=10)
        script.answer(await script.expect("session/prompt"), spoken.ending())
        held.set()
        await third
        assert peer.connection.outgoing.heard == {}


async def test_nothing_is_kept_of_idle_deadlines_once_they_are_over(connect, clock):
    async with connect.as_agent(updates()) as (script, peer):
        patient, watched = prompting(peer), prompting(peer, idle_timeout=10)
        calls = [await script.expect("session/prompt") for _ in range(2)]
        script.answer(calls[1], spoken.ending())
        await watched
        script.answer(calls[0], spoken.ending())
        await patient
        assert peer.connection.outgoing.heard == {}


@pytest.mark.needs("a clock that can jump")
async def test_a_request_of_the_other_side_is_a_word_and_its_wait_for_us_is_not_its_silence(connect, clock):
    """An agent that waits for the user's permission is not idle: we are."""
    client, decided = updates(), asyncio.Event()

    @client.on(spoken.RequestPermissionRequest)
    async def permission(request):
        await decided.wait()
        return spoken.RequestPermissionResponse.cancelled()

    async with connect.as_agent(client) as (script, peer):
        asking = prompting(peer, idle_timeout=10)
        call = await script.expect("session/prompt")
        await clock.advance(9)
        about = {"toolCall": {"toolCallId": "t"}} if spoken.version == 1 else {"title": "Go on?"}
        script.send(ask("session/request_permission", "p", sessionId="s", options=[], **about))
        await script.expect_silence()
        await clock.advance(9)
        await clock.advance(9)
        assert not asking.done()
        decided.set()
        await script.expect_result("p")
        await clock.advance(9)
        assert not asking.done()
        script.answer(call, spoken.ending())
        await asking


async def test_a_deadline_of_the_caller_cancels_what_waits_behind_it(connect, clock):
    """A handler that asks with a deadline and does not catch it answers with an internal error."""
    client = Handlers()

    @client.on_request("_example.com/relay")
    async def relay(params, context):
        return await context.peer.request_raw("_example.com/ask", timeout=5)

    async with connect.as_agent(client) as (script, _):
        script.send(ask("_example.com/relay", 1))
        await script.expect("_example.com/ask")
        await clock.advance(6)
        await script.expect("$/cancel_request")
        await script.expect_error(1, -32603)


async def test_the_end_of_the_link_comes_before_any_deadline(connect):
    async with connect.as_agent() as (script, peer):
        asking = prompting(peer, timeout=3600, idle_timeout=3600)
        await script.expect("session/prompt")
        await script.close()
        await asyncio.wait([asking])
        assert asking.exception().reason == "peer_closed"


def updates():
    client = Handlers()

    @client.on(spoken.SessionNotification)
    def update(notification): ...

    return client


async def test_a_deadline_also_counts_while_a_slow_handler_holds_the_answer(connect, clock):
    client = Handlers()

    @client.on(spoken.SessionNotification)
    async def update(notification):
        await forever()

    async with connect.as_agent(client) as (script, peer):
        asking = prompting(peer, timeout=5)
        call = await script.expect("session/prompt")
        script.send(says("slow"), result(call, **spoken.ending()))
        await script.expect_silence()
        await clock.advance(6)
        with pytest.raises(Timeout):
            await asking
        await script.expect_silence()
