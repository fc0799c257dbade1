"""Prompts and their Replies with an agent of version 2."""

from __future__ import annotations

import asyncio

import pytest

import accord
from accord import v1
from accord.engine.connection import Limits
from accord.schema import v2
from tests.client.v2.conftest import staged_v2
from tests.waiting import eventually

FAILURE = {"stopReason": "error", "error": {"code": -32603, "message": "the model is silent", "data": {"try": 3}}}


async def test_a_reply_has_the_text_the_tool_calls_and_the_usage_of_its_work():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.state("running")
        stage.say("Hel")
        stage.update({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "Look"})
        stage.say("lo")
        stage.idle(usage={"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}, _meta={"cost": 1})
        outcome = await reply
        assert (outcome.stop_reason, outcome.text) == ("end_turn", "Hello")
        assert [call.title for call in outcome.tool_calls] == ["Look"]
        assert (outcome.usage, outcome.meta) == (v1.Usage(3, 1, 2), {"cost": 1})


async def test_the_text_streams_in_the_classes_that_both_versions_share():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.say("Hel")
        stage.say("lo")
        stage.state("running")
        stage.idle()
        updates = [update async for update in reply]
        assert updates[1:3] == [v1.AgentMessageChunk.of("Hel", "a1"), v1.AgentMessageChunk.of("lo", "a1")]
        assert [type(update) for update in updates[3:]] == [v2.SessionStateUpdate, v2.SessionStateUpdate]
        assert session.state.messages[-1].text == "Hello"


@pytest.mark.parametrize("receipt", ["first", "last"])
async def test_the_receipt_may_come_before_or_after_everything_else(receipt):
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        prompt = await stage.agent.expect("session/prompt")
        if receipt == "first":
            stage.agent.answer(prompt, {"messageId": "u1"})
            assert await reply.inserted == "u1"
            assert not reply.done
        stage.echo("u1", "Hi")
        stage.state("running")
        stage.say("all")
        stage.idle()
        if receipt == "last":
            await stage.agent.expect_silence()
            assert not reply.done
            stage.agent.answer(prompt, {"messageId": "u1"})
        outcome = await reply
        assert (outcome.text, await reply.inserted) == ("all", "u1")


async def test_an_idle_after_session_new_does_not_end_the_first_prompt():
    async with staged_v2() as stage:
        session = await stage.session()
        stage.idle(None)
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.idle(None)
        await stage.agent.expect_silence()
        assert not reply.done
        stage.state("running")
        stage.idle("max_tokens")
        assert (await reply).stop_reason == "max_tokens"


async def test_the_prompt_is_in_the_conversation_once_whether_it_is_echoed_or_not():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await eventually(lambda: [message.text for message in session.state.messages] == ["Hi"])
        await stage.insertion("u1")
        stage.state("running")
        stage.say("yes")
        stage.idle()
        await reply
        assert [message.text for message in session.state.messages] == ["Hi", "yes"]


async def test_a_held_prompt_gets_only_what_comes_after_its_own_message():
    async with staged_v2() as stage:
        session = await stage.session()
        first = session.prompt("one")
        await stage.insertion("u1")
        stage.state("running")
        second = session.prompt("two")
        held = await stage.agent.expect("session/prompt")
        stage.say("1", messageId="a1")
        stage.idle()
        assert (await first).text == "1"
        assert not second.done
        stage.insert(held, "u2")
        stage.state("running")
        stage.say("2", messageId="a2")
        stage.idle("max_tokens")
        outcome = await second
        assert (outcome.text, outcome.stop_reason) == ("2", "max_tokens")
        said = [update.content.text async for update in second if isinstance(update, v1.AgentMessageChunk)]
        assert said == ["2"]


async def test_one_idle_ends_both_replies_when_the_agent_takes_a_prompt_into_its_running_work():
    async with staged_v2() as stage:
        session = await stage.session()
        first = session.prompt("one")
        await stage.insertion("u1")
        stage.state("running")
        stage.say("a", messageId="a1")
        second = session.prompt("two")
        steering = await stage.agent.expect("session/prompt")
        stage.echo("u2", "two")
        stage.say("b", messageId="a2")
        stage.agent.answer(steering, {"messageId": "u2"})
        stage.say("c", messageId="a3")
        stage.idle()
        assert (await first).text == "abc"
        assert (await second).text == "bc"
        said = [update.content.text async for update in second if isinstance(update, v1.AgentMessageChunk)]
        assert said == ["b", "c"], "also what came before the receipt"


@pytest.mark.parametrize("work", ["idle", "error"])
async def test_a_failed_turn_raises_what_it_raises_in_version_1(work):
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        prompt = await stage.agent.expect("session/prompt")
        if work == "idle":
            stage.insert(prompt, "u1")
            stage.state("running")
            stage.idle(None, **FAILURE)
        else:
            stage.agent.error(prompt, -32603, "the model is silent", {"try": 3})
        with pytest.raises(accord.PeerError, match="the model is silent") as caught:
            await reply
        assert (caught.value.code, caught.value.data, caught.value.method) == (-32603, {"try": 3}, "session/prompt")
        again = session.prompt("again")
        await stage.insertion("u2")
        stage.state("running")
        stage.idle()
        assert (await again).stop_reason == "end_turn"


async def test_a_prompt_that_a_busy_agent_refuses_fails_alone():
    async with staged_v2() as stage:
        session = await stage.session()
        first, second = session.prompt("one"), session.prompt("two")
        await stage.insertion("u1")
        stage.state("running")
        stage.agent.error(await stage.agent.expect("session/prompt"), -32600, "busy")
        with pytest.raises(accord.PeerError, match="busy"):
            await second
        with pytest.raises(accord.PeerError, match="busy"):
            await second.inserted
        stage.say("fine")
        stage.idle()
        assert (await first).text == "fine"


# Cancelling


async def test_a_cancelled_reply_ends_with_the_idle_that_confirms_it():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.state("running")
        await reply.inserted
        cancelling = asyncio.create_task(reply.cancel())
        assert (await stage.agent.expect("session/cancel"))["params"] == {"sessionId": "s"}
        stage.say("last words")
        stage.idle("cancelled")
        outcome = await cancelling
        assert (outcome.stop_reason, outcome.text) == ("cancelled", "last words")


@pytest.mark.parametrize("answer", ["refused", "inserted all the same"])
async def test_a_held_prompt_is_withdrawn_and_the_running_one_goes_on(answer):
    async with staged_v2() as stage:
        session = await stage.session()
        first = session.prompt("one")
        await stage.insertion("u1")
        stage.state("running")
        second = session.prompt("two")
        held = await stage.agent.expect("session/prompt")
        second.request_cancel()
        withdrawn = await stage.agent.expect("$/cancel_request")
        assert withdrawn["params"] == {"requestId": held["id"]}
        if answer == "refused":
            stage.agent.error(held, -32800, "withdrawn")
            assert (await second).stop_reason == "cancelled"
            assert await second.inserted is None
        else:
            stage.insert(held, "u2")
            await stage.agent.expect("session/cancel")
        stage.idle("end_turn" if answer == "refused" else "cancelled")
        assert (await first).stop_reason == ("end_turn" if answer == "refused" else "cancelled")
        await second


async def test_work_that_has_begun_is_stopped_even_before_its_receipt_has_come():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        prompt = await stage.agent.expect("session/prompt")
        stage.state("running")
        stage.say("at it")
        await eventually(lambda: session.state.messages[-1].text == "at it")
        reply.request_cancel()
        await stage.agent.expect("$/cancel_request")
        await stage.agent.expect("session/cancel")
        stage.echo("u1", "Hi")
        stage.idle("cancelled")
        stage.agent.answer(prompt, {"messageId": "u1"})
        assert (await reply).stop_reason == "cancelled"


async def test_cancelling_a_session_cancels_all_of_its_prompts():
    async with staged_v2() as stage:
        session = await stage.session()
        first, second = session.prompt("one"), session.prompt("two")
        await stage.insertion("u1")
        stage.state("running")
        held = await stage.agent.expect("session/prompt")
        await first.inserted
        cancelling = asyncio.create_task(session.cancel())
        await stage.agent.expect("session/cancel")
        stage.agent.error(held, -32800, "cancelled")
        stage.idle("cancelled")
        assert [(await first).stop_reason, (await second).stop_reason] == ["cancelled", "cancelled"]
        assert await cancelling == await first


async def test_a_prompt_that_is_sent_after_the_cancel_lives():
    async with staged_v2() as stage:
        session = await stage.session()
        first = session.prompt("one")
        await stage.insertion("u1")
        stage.state("running")
        await first.inserted
        first.request_cancel()
        second = session.prompt("two")
        await stage.agent.expect("session/cancel")
        held = await stage.agent.expect("session/prompt")
        stage.idle("cancelled")
        stage.insert(held, "u2")
        stage.state("running")
        stage.say("alive", messageId="a2")
        stage.idle()
        assert (await first).stop_reason == "cancelled"
        assert (await second).text == "alive"


# What the agent does by itself


async def test_work_that_the_agent_begins_by_itself_reaches_updates():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.state("running")
        stage.idle()
        await reply
        outside = session.updates()
        stage.state("running")
        stage.say("by myself", messageId="a2")
        stage.idle()
        told = [await anext(outside) for _ in range(3)]
        assert told[1] == v1.AgentMessageChunk.of("by myself", "a2")
        assert (await reply).text == ""


async def test_a_session_is_idle_when_no_prompt_is_open_and_the_agent_does_nothing():
    async with staged_v2() as stage:
        session = await stage.session()
        await session.idle()
        stage.state("running")
        await eventually(lambda: session.is_busy)
        waiting = asyncio.create_task(session.idle())
        reply = session.prompt("Hi")
        held = await stage.agent.expect("session/prompt")
        stage.idle()
        await stage.agent.expect_silence()
        assert not waiting.done()
        stage.insert(held, "u1")
        stage.state("running")
        stage.idle()
        await reply
        await waiting
        assert not session.is_busy


async def test_waiting_for_an_idle_session_ends_with_the_session():
    async with staged_v2() as stage:
        session = await stage.session()
        stage.state("running")
        await eventually(lambda: session.is_busy)
        waiting = asyncio.create_task(session.idle())
        closing = asyncio.create_task(session.close())
        stage.agent.answer(await stage.agent.expect("session/close"))
        await closing
        await asyncio.wait([waiting])
        assert waiting.exception() is None or isinstance(waiting.exception(), accord.ConnectionClosed)


# Deadlines, limits, ends


async def test_the_idle_timeout_counts_every_update_of_the_session_after_the_receipt_too():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi", idle_timeout=0.05)
        await stage.insertion("u1")
        stage.state("running")
        with pytest.raises(accord.Timeout, match="without a message"):
            await reply
        await stage.agent.expect("session/cancel")


async def test_the_timeout_covers_the_work_and_not_only_the_receipt():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi", timeout=0.05)
        await stage.insertion("u1")
        with pytest.raises(accord.Timeout):
            await reply
        await stage.agent.expect("session/cancel")


async def test_the_end_of_the_connection_fails_a_prompt_that_was_inserted():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.say("half")
        await reply.inserted
        await stage.agent.close()
        with pytest.raises(accord.ConnectionClosed):
            await reply
        assert session.state.messages[-1].text == "half"


async def test_closing_the_session_fails_its_prompts():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        await reply.inserted
        closing = asyncio.create_task(session.close())
        stage.agent.answer(await stage.agent.expect("session/close"))
        await closing
        with pytest.raises(accord.ConnectionClosed, match="the session was closed"):
            await reply


async def test_an_unread_reply_pauses_reading_and_a_reader_gets_everything():
    async with staged_v2(limits=Limits(intake=10_000)) as stage:
        session = await stage.session()
        reply = session.prompt("a")
        await stage.insertion("u1")
        intake = stage.remote.peer.connection.read_pause
        sent = 0
        while not intake.paused:
            stage.say("x" * 100)
            sent += 1
            await asyncio.sleep(0)
        stage.state("running")
        stage.idle()
        assert sum([len(text) async for text in reply.iter_text()]) == 100 * sent
        assert not intake.paused


async def test_the_wire_form_of_updates_is_what_came():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("a", wire=True)
        prompt = await stage.agent.expect("session/prompt")
        stage.agent.answer(prompt, {"messageId": "u1"})
        odd = b'{"sessionUpdate" : "hologram", "depth":1.50}'
        end = b'{"sessionUpdate":"state_update", "state":"idle","stopReason":"end_turn"}'
        for update in (odd, end):
            stage.agent.send_raw(
                b'{"jsonrpc":"2.0","method":"session/update","params":{"update":' + update + b' ,"sessionId":"s"}}'
            )
        assert [update async for update in reply.wire()] == [odd, end]


async def test_work_that_ends_without_a_reason_is_done_and_says_so():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.state("running")
        stage.idle(None)
        assert (await reply).stop_reason == "unknown"
