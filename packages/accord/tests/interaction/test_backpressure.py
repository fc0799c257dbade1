"""A slow side costs the other side time, and nobody memory; and not reading is never what everybody waits for."""

from __future__ import annotations

import asyncio

import pytest

from accord.engine.connection import Limits
from accord.engine.handlers import Handlers
from accord.errors import Overflow
from tests.interaction.staging import ask, chunk, result, says, text_of, turns, until
from tests.interaction.versions import spoken

SMALL = {"high_water": 20_000}
LARGE_TEXT = "x" * 5_000


def small(text):
    """Marks that a few of these texts are past."""
    return {"high_water": 4 * len(text)}


class Slow:
    """A client whose handler of updates goes on only when it may."""

    def __init__(self):
        self.handlers = Handlers()
        self.texts = []
        self.may_go_on = asyncio.Event()
        self.handlers.on(spoken.SessionNotification)(self.update)

    async def update(self, notification):
        await self.may_go_on.wait()
        self.texts.append(text_of(notification))


@pytest.fixture
async def slow():
    return Slow()


def prompting(peer, session="s"):
    return asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId(session), "go")))


def intake(text, **more):
    """A mark that ten of these texts are past."""
    return Limits(intake=10 * len(text), **more)


async def backed_up(script, peer, text):
    """Wait until reading is paused, and what was not read waits at the other side."""
    await until(
        lambda: peer.connection.statistics().queued > 10 * len(text) and script.transport.unsent > 20 * len(text)
    )


async def send_many(peer, count, name="news", text=LARGE_TEXT):
    for number in range(count):
        await peer.notify_raw("_example.com/news", {"from": name, "number": number, "text": text})


# Sending


@pytest.mark.uvloop
async def test_a_sender_waits_while_the_other_side_does_not_read(connect):
    text = connect.a_lot
    async with connect.as_agent(transport=small(text)) as (script, peer):
        script.transport.pause_reading()
        sending = asyncio.create_task(send_many(peer, 200, text=text))
        await until(lambda: peer.connection._outbox.full)
        await turns()
        assert not sending.done()
        unsent = peer.connection.statistics().unsent
        assert 4 * len(text) < unsent < 24 * len(text)
        await turns()
        assert peer.connection.statistics().unsent == unsent
        script.transport.resume_reading()
        for number in range(200):
            assert (await script.expect("_example.com/news"))["params"]["number"] == number
        await sending


@pytest.mark.uvloop
async def test_several_senders_that_wait_all_go_on_and_each_keeps_its_order(connect):
    text = connect.a_lot
    async with connect.as_agent(transport=small(text)) as (script, peer):
        script.transport.pause_reading()
        names = ["a", "b", "c"]
        sending = [asyncio.create_task(send_many(peer, 50, name, text)) for name in names]
        await until(lambda: peer.connection._outbox.full)
        script.transport.resume_reading()
        seen = {name: [] for name in names}
        for _ in range(150):
            params = (await script.expect("_example.com/news"))["params"]
            seen[params["from"]].append(params["number"])
        assert seen == {name: [*range(50)] for name in names}
        await asyncio.gather(*sending)


async def test_a_request_waits_for_room_as_well(connect):
    text = connect.a_lot
    async with connect.as_agent(transport=small(text)) as (script, peer):
        script.transport.pause_reading()
        sending = asyncio.create_task(send_many(peer, 150, text=text))
        await until(lambda: peer.connection._outbox.full)
        asking = asyncio.create_task(peer.request_raw("_example.com/ask"))
        await turns()
        script.transport.resume_reading()
        while (call := await script.receive())["method"] != "_example.com/ask":
            pass
        script.answer(call, {"fine": True})
        assert await asking == {"fine": True}
        while not sending.done():
            await script.receive()


async def test_a_sender_that_never_waits_still_lets_others_live(connect):
    async with connect.as_agent() as (script, peer):
        turns_of_others = 0

        async def others():
            nonlocal turns_of_others
            while True:
                await asyncio.sleep(0)
                turns_of_others += 1

        living = asyncio.create_task(others())
        await send_many(peer, 1_000)
        living.cancel()
        assert turns_of_others > 20
        for _ in range(1_000):
            await script.receive()


async def test_a_sender_that_never_suspends_sees_its_cancellation(connect):
    async with connect.as_agent() as (_, peer):

        async def send_for_ever():
            while True:
                await send_many(peer, 1_000)

        sending = asyncio.create_task(send_for_ever())
        await turns(5)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending


# Receiving


@pytest.mark.uvloop
async def test_reading_pauses_past_the_mark_and_goes_on_when_the_handler_does(connect, slow):
    text = connect.a_lot
    async with connect.as_agent(slow.handlers, limits=intake(text), transport=small(text)) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        for _ in range(100):
            script.send(says(text))
            await turns(2)
        script.answer(call, spoken.ending())
        await backed_up(script, peer, text)
        queued = peer.connection.statistics().queued
        assert 10 * len(text) < queued < 50 * len(text)
        await turns()
        assert peer.connection.statistics().queued == queued
        assert not asking.done()
        slow.may_go_on.set()
        assert spoken.end_of(await asking) == "end_turn"
        assert slow.texts == [text] * 100
        assert peer.connection.statistics().queued == 0


async def test_reading_does_not_pause_while_a_request_needs_its_answer(connect, slow):
    async with connect.as_agent(slow.handlers, limits=Limits(intake=50_000)) as (script, peer):
        setting = asyncio.create_task(peer.request_raw("session/set_mode", {"sessionId": "other", "modeId": "m"}))
        call = await script.expect("session/set_mode")
        for _ in range(100):
            script.send(says(LARGE_TEXT))
        script.answer(call, {})
        await setting
        assert peer.connection.statistics().queued > 400_000
        slow.may_go_on.set()


async def test_making_another_request_makes_reading_go_on(connect, slow):
    text = connect.a_lot
    async with connect.as_agent(slow.handlers, limits=intake(text), transport=small(text)) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        for _ in range(100):
            script.send(says(text))
            await turns(2)
        await backed_up(script, peer, text)
        setting = asyncio.create_task(peer.request_raw("session/set_mode", {"sessionId": "other", "modeId": "m"}))
        script.answer(await script.expect("session/set_mode"), {})
        await setting
        script.answer(call, spoken.ending())
        slow.may_go_on.set()
        await asking
        assert len(slow.texts) == 100


async def test_a_handler_whose_question_is_behind_what_it_holds_up_gets_its_answer(connect):
    """Reading is paused because of this very handler, and it asks: its answer must be read."""
    client, texts = Handlers(), []

    @client.on(spoken.SessionNotification)
    async def update(notification, context):
        if not texts:
            await begin.wait()
            await context.peer.request_raw("_example.com/more", {"sessionId": "s"})
        texts.append(1)

    begin = asyncio.Event()
    text = connect.a_lot
    async with connect.as_agent(client, limits=intake(text), transport=small(text)) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        for _ in range(100):
            script.send(says(text))
            await turns(2)
        await backed_up(script, peer, text)
        begin.set()
        script.answer(await script.expect("_example.com/more"))
        script.answer(call, spoken.ending())
        await asking
        assert len(texts) == 100


async def test_closing_works_while_reading_is_paused(connect, slow):
    text = connect.a_lot
    limits = intake(text, grace=0.05)
    async with connect.as_agent(slow.handlers, limits=limits, transport=small(text)) as (script, peer):
        asking = prompting(peer)
        await script.expect("session/prompt")
        for _ in range(100):
            script.send(says(text))
            await turns(2)
        await backed_up(script, peer, text)
        await peer.close()
        await asyncio.wait([asking])
        assert asking.exception().reason == "closed"


# Both ways at once


def echoes(handlers, stage):
    @handlers.on_notification("_example.com/ping")
    async def ping(params, context):
        await asyncio.sleep(0)
        await context.peer.notify_raw("_example.com/pong", params)

    @handlers.on_request("_example.com/flood")
    async def flood(params, context):
        for number in range(params["count"]):
            await context.peer.notify_raw("_example.com/pong", {"number": number, "text": LARGE_TEXT})
        return {}


@pytest.mark.uvloop
async def test_two_sides_that_send_to_each_other_at_once_never_stop(connect):
    client, count, done = Handlers(), 0, asyncio.Event()

    @client.on_notification("_example.com/pong")
    async def pong(params, context):
        nonlocal count
        await asyncio.sleep(0)
        count += 1
        if params["number"] < 2_000:
            await context.peer.notify_raw("_example.com/ping", params | {"number": params["number"] + 1_000})
        if count == 3_000:
            done.set()

    small = {"intake": 50_000}
    async with connect(
        echoes, client, limits=Limits(**small), agent_options={"limits": small}, transport=SMALL
    ) as link:
        for number in range(1_000):
            await link.client.notify_raw("_example.com/ping", {"number": number, "text": LARGE_TEXT})
        await done.wait()
        assert count == 3_000


async def test_a_flood_through_small_marks_arrives_whole_before_its_answer(connect):
    client, numbers = Handlers(), []

    @client.on_notification("_example.com/pong")
    async def pong(params):
        await asyncio.sleep(0)
        numbers.append(params["number"])

    small = {"intake": 50_000}
    async with connect(
        echoes, client, limits=Limits(**small), agent_options={"limits": small}, transport=SMALL
    ) as link:
        await link.client.request_raw("_example.com/flood", {"count": 500})
        assert numbers == [*range(500)]


# The hard mark


async def test_past_the_hard_mark_the_fullest_session_is_given_up_and_the_others_go_on(connect, slow, caplog):
    limits = Limits(intake=50_000, lane=400_000)
    async with connect.as_agent(slow.handlers, limits=limits) as (script, peer):
        sessions = {name: prompting(peer, name) for name in "abc"}
        calls = {(it := await script.expect("session/prompt"))["params"]["sessionId"]: it for _ in sessions}
        needs_answer = asyncio.create_task(peer.request_raw("_example.com/ask"))
        await script.expect("_example.com/ask")
        for _ in range(23):
            script.send(says(LARGE_TEXT, "a"), says(LARGE_TEXT, "b"), says(LARGE_TEXT, "c"))
        for _ in range(20):
            script.send(says(LARGE_TEXT, "b"))
        await asyncio.wait([sessions["b"]])
        assert isinstance(sessions["b"].exception(), Overflow)
        assert "session/prompt" in str(sessions["b"].exception())
        assert (await script.expect("$/cancel_request"))["params"] == {"requestId": calls["b"]["id"]}
        assert caplog.text.count("were dropped") == 1
        slow.may_go_on.set()
        for name in "ac":
            script.answer(calls[name], spoken.ending())
            assert spoken.end_of(await sessions[name]) == "end_turn"
        needs_answer.cancel()
        again = prompting(peer, "b")
        while (message := await script.receive())["method"] != "session/prompt":
            pass
        script.send(says("again", "b"), result(message, **spoken.ending()))
        assert spoken.end_of(await again) == "end_turn"
        assert slow.texts[-1] == "again"


@pytest.mark.needs("one way for all requests")
async def test_an_answer_behind_updates_that_were_given_up_fails_for_they_will_never_be_seen(connect, slow):
    limits = Limits(intake=50_000, lane=100_000)
    async with connect.as_agent(slow.handlers, limits=limits) as (script, peer):
        asking, other = prompting(peer), asyncio.create_task(peer.request_raw("_example.com/ask"))
        prompt, _ = await script.expect("session/prompt"), await script.expect("_example.com/ask")
        script.send(says("first"), result(prompt, **spoken.ending()))
        for _ in range(30):
            script.send(says(LARGE_TEXT))
        with pytest.raises(Overflow):
            await asking
        other.cancel()
        slow.may_go_on.set()


async def test_requests_behind_a_lane_that_is_given_up_are_still_answered(connect, slow):
    client = slow.handlers
    client.on(spoken.QuestionRequest)(lambda request: spoken.told(spoken.topic(request)))
    async with connect.as_agent(client, limits=Limits(intake=50_000, lane=100_000)) as (script, peer):
        other = asyncio.create_task(peer.request_raw("_example.com/ask"))
        await script.expect("_example.com/ask")
        script.send(
            says("first"),
            says("second"),
            ask(spoken.question_method, 1, **spoken.question_params("s", "/f")),
            *[says(LARGE_TEXT)] * 30,
        )
        assert await script.expect_result(1) == spoken.telling("/f")
        other.cancel()
        slow.may_go_on.set()


def streams(handlers, stage):
    @handlers.on(spoken.PromptRequest)
    async def prompt(request, context):
        for _ in range(2_000):
            await context.peer.notify(chunk(LARGE_TEXT, request.session_id))
        return spoken.ended("end_turn")


@pytest.mark.uvloop
async def test_a_long_stream_to_a_slow_reader_arrives_whole_in_bounded_memory(connect):
    client, count, most = Handlers(), 0, 0

    @client.on(spoken.SessionNotification)
    async def update(notification):
        nonlocal count, most
        count += 1
        most = max(most, link.statistics.queued)
        if count % 20 == 0:
            await turns(3)

    async with connect(streams, client, limits=Limits(intake=200_000), transport=SMALL) as link:
        await prompting(link.client)
        assert count == 2_000
        assert most < 200_000 + 500_000
