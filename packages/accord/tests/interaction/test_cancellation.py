"""Cancelling: what the caller sends, what the handler sees, and the one answer that there is all the same."""

from __future__ import annotations

import asyncio

import pytest

from accord.engine.handlers import Handlers
from accord.errors import PeerError
from tests.interaction.staging import ask, chunk, result, says, tell, text_of
from tests.interaction.versions import spoken

CANCELLED = -32800


def prompting(peer, session="s", **options):
    return asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId(session), "go"), **options))


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# Cancelling what we asked


@pytest.mark.uvloop
async def test_cancelling_the_task_that_waits_sends_a_cancel_request(connect):
    async with connect.as_agent() as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        await cancelled(asking)
        cancel = await script.expect("$/cancel_request")
        assert cancel == tell("$/cancel_request", requestId=call["id"])
        assert peer.connection.statistics().pending == 0


async def test_leaving_a_timeout_sends_a_cancel_request(connect, clock):
    async with connect.as_agent() as (script, peer):

        async def impatient():
            async with asyncio.timeout(5):
                await peer.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go"))

        asking = asyncio.create_task(impatient())
        call = await script.expect("session/prompt")
        await clock.advance(6)
        with pytest.raises(TimeoutError):
            await asking
        assert (await script.expect("$/cancel_request"))["params"] == {"requestId": call["id"]}


async def test_a_task_that_is_cancelled_before_its_first_step_sends_nothing(connect):
    async with connect.as_agent() as (script, peer):
        await cancelled(prompting(peer))
        await script.expect_silence()


async def test_a_request_whose_answer_is_here_sends_no_cancel_request(connect):
    client, held = Handlers(), asyncio.Event()

    @client.on(spoken.SessionNotification)
    async def update(notification):
        await held.wait()

    async with connect.as_agent(client) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("slow"), result(call, **spoken.ending()))
        await script.expect_silence()
        await cancelled(asking)
        await script.expect_silence()
        held.set()


async def test_an_answer_that_comes_with_the_cancellation_sends_no_cancel_request(connect):
    async with connect.as_agent() as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        heard = asyncio.Event()
        peer.connection.observe(lambda _: heard.set())
        script.answer(call, spoken.ending())
        await heard.wait()
        asking.cancel()
        await asyncio.wait([asking])
        await script.expect_silence()


@pytest.mark.requirement("cancel-request.result-accepted", "cancel-request.optional")
@pytest.mark.parametrize("late", ["a result", "an error", "nothing"])
async def test_whatever_comes_for_a_cancelled_request_the_link_goes_on(connect, late):
    async with connect.as_agent() as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        await cancelled(asking)
        await script.expect("$/cancel_request")
        if late == "a result":
            script.answer(call, spoken.ending())
        elif late == "an error":
            script.error(call, CANCELLED)
        await script.expect_silence()
        assert peer.connection.statistics().strays == 0
        again = prompting(peer)
        script.answer(await script.expect("session/prompt"), spoken.ending("refusal"))
        assert spoken.end_of(await again) == "refusal"


@pytest.mark.requirement("prompt.cancel.late-updates-taken")
async def test_updates_that_come_after_session_cancel_are_taken(connect):
    client, texts = Handlers(), []

    @client.on(spoken.SessionNotification)
    async def update(notification):
        await asyncio.sleep(0)
        texts.append(text_of(notification))

    async with connect.as_agent(client) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        await peer.notify(spoken.CancelNotification(spoken.SessionId("s")))
        await script.expect("session/cancel")
        script.send(says("still"), says("here"), result(call, **spoken.ending("cancelled")))
        assert spoken.end_of(await asking) == "cancelled"
        assert texts == ["still", "here"]


@pytest.mark.needs("nothing in between")
async def test_a_request_that_waits_for_room_can_be_cancelled(connect):
    async with connect.as_agent(transport={"high_water": 1000}) as (script, peer):
        script.transport.pause_reading()
        telling = asyncio.create_task(peer.notify_raw("_example.com/large", {"text": "x" * 2000}))
        await asyncio.wait([telling], timeout=0)
        asking = asyncio.create_task(peer.request_raw("_example.com/ask"))
        await asyncio.wait([asking], timeout=0)
        await cancelled(asking)
        script.transport.resume_reading()
        await telling
        await script.expect("_example.com/large")
        call = await script.expect("_example.com/ask")
        assert (await script.expect("$/cancel_request"))["params"] == {"requestId": call["id"]}
        assert peer.connection.statistics().pending == 0


# Being cancelled


def worker(handlers, stage):
    @handlers.on_request("_example.com/work")
    async def work(params):
        stage.tell("started")
        try:
            await stage.cue("finish")
        except asyncio.CancelledError:
            stage.tell("cancelled")
            raise
        return {"done": True}

    @handlers.on_request("_example.com/graceful")
    async def graceful(params, context):
        stage.tell("started")
        try:
            await stage.cue("finish")
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            await context.peer.notify(chunk("last words"))
            return {"partial": True}

    @handlers.on_request("_example.com/clumsy")
    async def clumsy(params):
        stage.tell("started")
        try:
            await stage.cue("finish")
        finally:
            raise ValueError("the cleaning up failed")

    @handlers.on_request("_example.com/deaf")
    async def deaf(params, context):
        stage.tell("started")
        while True:
            try:
                await stage.cue("finish")
            except asyncio.CancelledError:
                stage.tell("cancelled", known=context.cancelled)
            else:
                return {"done": True}

    @handlers.on_request("_example.com/nested")
    async def nested(params, context):
        async with asyncio.TaskGroup() as group:
            group.create_task(context.peer.request_raw("_example.com/asked-back", {"number": 1}))
            group.create_task(context.peer.request_raw("_example.com/asked-back", {"number": 2}))

    @handlers.on_request("_example.com/gives-up")
    async def gives_up(params):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    @handlers.on_request("_example.com/hasty")
    async def hasty(params, context):
        context.after_response(stage.tell, "answered")
        context.answer({"hasty": True})
        context.answer({"hasty": "twice"})
        await stage.cue("finish")
        stage.tell("finished")
        if params["fails"]:
            raise ValueError("nobody hears of this")
        return {"hasty": "still"}

    @handlers.on_request("_example.com/decides")
    async def decides(params, context):
        wanted = asyncio.Event()
        context.on_cancel(wanted.set)
        stage.tell("started")
        await wanted.wait()
        return {"stopped": True, "known": context.cancelled}

    @handlers.on_request("_example.com/quick")
    def quick(params):
        return {"done": True}


@pytest.mark.uvloop
@pytest.mark.requirement("cancel-request.still-answered", "cancel-request.stops-work")
async def test_a_cancelled_handler_sees_it_and_is_answered_for(connect):
    async with connect.as_client(worker) as script:
        asked = script.call("_example.com/work")
        await script.told("started")
        script.tell("$/cancel_request", {"requestId": asked})
        await script.told("cancelled")
        error = await script.expect_error(asked, CANCELLED)
        assert error == {"code": CANCELLED, "message": "Request cancelled"}
        await script.expect_silence()


async def test_a_handler_may_turn_its_cancellation_into_a_result_and_speak_before_it(connect):
    async with connect.as_client(worker) as script:
        asked = script.call("_example.com/graceful")
        await script.told("started")
        script.tell("$/cancel_request", {"requestId": asked})
        await script.expect("session/update")
        assert await script.expect_result(asked) == {"partial": True}


async def test_an_error_on_the_way_out_does_not_change_the_answer_to_a_cancelled_request(connect):
    async with connect.as_client(worker) as script:
        asked = script.call("_example.com/clumsy")
        await script.told("started")
        script.tell("$/cancel_request", {"requestId": asked})
        await script.expect_error(asked, CANCELLED)


async def test_a_handler_may_finish_in_spite_of_being_cancelled_more_than_once(connect):
    async with connect.as_client(worker) as script:
        asked = script.call("_example.com/deaf")
        await script.told("started")
        for _ in range(3):
            script.tell("$/cancel_request", {"requestId": asked})
            assert await script.told("cancelled") == {"known": True}
        script.cue("finish")
        assert await script.expect_result(asked) == {"done": True}


@pytest.mark.parametrize("fails", [False, True])
async def test_a_handler_may_answer_before_it_ends_and_is_answered_for_once(connect, fails):
    async with connect.as_client(worker) as script:
        for _ in range(2):  # the id is free again once the answer is there
            script.send(ask("_example.com/hasty", 7, fails=fails))
            assert await script.expect_result(7) == {"hasty": True}
            await script.told("answered")
        script.cue("finish")
        await script.told("finished")
        await script.expect_silence()


async def test_a_handler_may_see_to_its_cancellation_itself(connect):
    async with connect.as_client(worker) as script:
        asked = script.call("_example.com/decides")
        await script.told("started")
        script.tell("$/cancel_request", {"requestId": asked})
        assert await script.expect_result(asked) == {"stopped": True, "known": True}
        # In one breath as well: it decides as soon as it has begun.
        script.send(ask("_example.com/decides", 8), tell("$/cancel_request", requestId=8))
        assert await script.expect_result(8) == {"stopped": True, "known": True}


async def test_a_request_that_is_cancelled_in_the_same_breath_is_started_and_then_cancelled(connect):
    async with connect.as_client(worker) as script:
        script.send(ask("_example.com/work", 7), tell("$/cancel_request", requestId=7))
        await script.expect_error(7, CANCELLED)
        await script.expect_silence()
        assert await script.curtain() == ["started", "cancelled"]


@pytest.mark.requirement("cancel-request.finished-first")
async def test_a_request_that_needs_no_time_is_answered_before_its_cancellation(connect):
    async with connect.as_client(worker) as script:
        script.send(ask("_example.com/quick", 7), tell("$/cancel_request", requestId=7))
        assert await script.expect_result(7) == {"done": True}
        await script.expect_silence()


@pytest.mark.requirement("cancel-request.late-ignored")
async def test_a_cancel_request_after_the_answer_is_ignored(connect):
    async with connect.as_client(worker) as script:
        asked = script.call("_example.com/work")
        await script.told("started")
        script.cue("finish")
        assert await script.expect_result(asked) == {"done": True}
        script.tell("$/cancel_request", {"requestId": asked})
        await script.expect_silence()
        assert await script.curtain() == ["started"]


async def test_a_cancel_request_does_not_reach_the_next_request_under_the_same_id(connect):
    async with connect.as_client(worker) as script:
        script.send(ask("_example.com/quick", 7), tell("$/cancel_request", requestId=7), ask("_example.com/work", 7))
        assert await script.expect_result(7) == {"done": True}
        await script.told("started")
        script.cue("finish")
        assert await script.expect_result(7) == {"done": True}


@pytest.mark.requirement("jsonrpc.answer.id-echoed")
async def test_ids_are_type_exact(connect):
    async with connect.as_client(worker) as script:
        script.send(ask("_example.com/work", 3), ask("_example.com/work", "3"))
        await script.told("started")
        await script.told("started")
        script.tell("$/cancel_request", {"requestId": "3"})
        await script.expect_error("3", CANCELLED)
        await script.expect_silence()
        script.cue("finish")
        assert await script.expect_result(3) == {"done": True}


@pytest.mark.parametrize(
    "params",
    [{"requestId": 99}, {"requestId": None}, {"requestId": [1]}, {"requestId": 1.5}, {}, None],
    ids=["unknown", "null", "an array", "a fraction", "missing", "no params"],
)
async def test_a_cancel_request_for_nothing_is_ignored(connect, params):
    async with connect.as_agent() as (script, _):
        script.tell("$/cancel_request", params)
        await script.expect_silence()


async def test_a_request_that_waits_behind_initialize_can_be_cancelled(connect):
    async with connect.as_client(slow_to_open, initialize=False) as script:
        opening = script.call("initialize", spoken.hello)
        await script.told("opening")
        script.send(ask("_example.com/work", "w"), tell("$/cancel_request", requestId="w"))
        script.tell("$/cancel_request", {"requestId": "nobody"})
        script.cue("open")
        await script.expect_result(opening)
        await script.expect_error("w", CANCELLED)
        assert await script.curtain() == ["opening", "started", "cancelled"]


def slow_to_open(handlers, stage):
    worker(handlers, stage)

    @handlers.on(spoken.InitializeRequest)
    async def initialize(request):
        stage.tell("opening")
        await stage.cue("open")
        return spoken.welcomed()


@pytest.mark.requirement("cancel-request.stops-work")
async def test_what_a_cancelled_handler_had_asked_is_cancelled_as_well(connect):
    async with connect.as_client(worker) as script:
        asked = script.call("_example.com/nested")
        calls = [await script.expect("_example.com/asked-back") for _ in range(2)]
        script.tell("$/cancel_request", {"requestId": asked})
        cancels = [await script.expect("$/cancel_request") for _ in range(2)]
        assert {it["params"]["requestId"] for it in cancels} == {call["id"] for call in calls}
        await script.expect_error(asked, CANCELLED)


@pytest.mark.requirement("cancel-request.internal-same-code")
async def test_a_handler_that_gives_up_by_itself_answers_with_the_same_code(connect):
    async with connect.as_client(worker) as script:
        await script.expect_error(script.call("_example.com/gives-up"), CANCELLED)


@pytest.mark.uvloop
async def test_cancelling_reaches_from_one_side_to_the_handler_of_the_other(connect):
    async with connect(worker) as link:
        asking = asyncio.create_task(link.client.request_raw("_example.com/work"))
        await link.told("started")
        await cancelled(asking)
        await link.told("cancelled")
        assert await link.client.request_raw("_example.com/quick") == {"done": True}


async def test_a_cancellation_of_ours_reaches_the_caller_as_an_error_of_the_peer(connect):
    """Per hop: what the other side gave up is no cancellation of the task that waits here."""
    async with connect(worker) as link:
        with pytest.raises(PeerError) as caught:
            await link.client.request_raw("_example.com/gives-up")
        assert caught.value.code == CANCELLED


async def test_an_observer_hears_what_became_of_a_cancel_request_for_nothing(connect):
    async with connect.as_agent() as (script, peer):
        notes = []
        peer.connection.observe(lambda event: notes.append(event.note))
        script.tell("$/cancel_request", {"requestId": 99})
        script.tell("$/cancel_request", {"requestId": [1]})
        await script.expect_silence()
        assert "$/cancel_request: no open request has the id 99" in notes
        assert any(note and note.startswith("$/cancel_request ignored") for note in notes)
