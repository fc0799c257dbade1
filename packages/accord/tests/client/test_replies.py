"""Prompts and their Replies."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import pytest

import accord
from accord import v1
from accord.engine.connection import Limits
from tests.client.conftest import staged
from tests.waiting import eventually


@pytest.mark.requirement("initialize.client-goes-first")
@pytest.mark.requirement("initialize.once")
async def test_initialize_is_the_first_message_and_is_sent_once() -> None:
    async with staged() as stage:
        await stage.session("1")
        await stage.session("2")
        sent = [json.loads(frame)["method"] for way, frame in stage.agent.conversation if way == "in"]
        assert sent == ["initialize", "session/new", "session/new"]


async def test_a_prompt_is_sent_at_once_and_its_text_streams() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        prompt = await stage.agent.expect("session/prompt")
        stage.say("Hel")
        texts = reply.iter_text()
        assert await anext(texts) == "Hel"
        stage.say("lo")
        stage.end(prompt)
        assert [text async for text in texts] == ["lo"]
        assert (await reply).text == "Hello"


async def test_the_outcome_has_all_of_the_turn_though_nobody_read_it() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        prompt = await stage.agent.expect("session/prompt")
        stage.say("a")
        stage.update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Look"})
        stage.say("b")
        stage.agent.answer(
            prompt,
            {"stopReason": "end_turn", "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}},
        )
        outcome = await reply
        assert (outcome.text, [call.title for call in outcome.tool_calls]) == ("ab", ["Look"])
        assert outcome.usage == v1.Usage(3, 1, 2)
        assert len([update async for update in reply]) == 3


async def test_sessions_of_one_link_do_not_disturb_each_other() -> None:
    async with staged() as stage:
        one, two = await stage.session("1"), await stage.session("2")
        first, second = one.prompt("a"), two.prompt("b")
        prompts = [await stage.agent.expect("session/prompt"), await stage.agent.expect("session/prompt")]
        for text in "xyz":
            stage.say(text, "1")
            stage.say(text.upper(), "2")
        stage.end(prompts[1], "refusal")
        assert (await second).text == "XYZ"
        assert not first.done
        stage.end(prompts[0])
        assert (await first).text == "xyz"


async def test_what_comes_behind_the_answer_is_outside_of_the_turn() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("a")
        prompt = await stage.agent.expect("session/prompt")
        stage.end(prompt)
        stage.say("later")
        assert (await reply).text == ""
        assert await anext(session.updates()) == v1.AgentMessageChunk.of("later")


@pytest.mark.requirement("prompt.cancel.tools-marked")
@pytest.mark.requirement("prompt.cancel.late-updates-taken")
async def test_cancelling_marks_tool_calls_takes_late_updates_and_waits_for_the_answer() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("a")
        prompt = await stage.agent.expect("session/prompt")
        stage.update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Look"})
        await anext(reply)
        cancelling = asyncio.create_task(reply.cancel())
        await stage.agent.expect("session/cancel")
        assert session.state.tool_calls[v1.ToolCallId("1")].status == "cancelled"
        stage.say("last words")
        stage.end(prompt, "cancelled")
        assert (await cancelling).stop_reason == "cancelled"
        assert [update async for update in reply] == [v1.AgentMessageChunk.of("last words")]


@pytest.mark.requirement("prompt.cancel.permissions-cancelled")
async def test_cancelling_answers_open_permission_requests_with_cancelled() -> None:
    asked, forever = asyncio.Event(), asyncio.Event()

    async def ask(question: accord.PermissionQuestion) -> bool:
        asked.set()
        await forever.wait()
        return True

    async with staged(accord.Client(permissions=ask)) as stage:
        session = await stage.session()
        reply = session.prompt("a")
        prompt = await stage.agent.expect("session/prompt")
        option = {"optionId": "y", "name": "Yes", "kind": "allow_once"}
        request = stage.agent.call(
            "session/request_permission", {"sessionId": "s", "toolCall": {"toolCallId": "1"}, "options": [option]}
        )
        await asked.wait()
        reply.request_cancel()
        await stage.agent.expect("session/cancel")
        assert await stage.agent.expect_result(request) == {"outcome": {"outcome": "cancelled"}}
        stage.end(prompt, "cancelled")
        assert (await reply).stop_reason == "cancelled"


async def test_cancelling_the_task_that_awaits_a_reply_cancels_the_turn() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("a")
        prompt = await stage.agent.expect("session/prompt")
        waiting = asyncio.create_task(_outcome(reply))
        await asyncio.sleep(0)
        waiting.cancel()
        await stage.agent.expect("session/cancel")
        stage.end(prompt, "cancelled")
        assert (await reply).stop_reason == "cancelled"


async def _outcome(reply: accord.Reply) -> accord.Outcome:
    return await reply


async def test_leaving_the_block_of_a_reply_cancels_it() -> None:
    async with staged() as stage:
        session = await stage.session()

        async def play() -> None:
            prompt = await stage.agent.expect("session/prompt")
            await stage.agent.expect("session/cancel")
            stage.end(prompt, "cancelled")

        playing = asyncio.create_task(play())
        async with session.prompt("a") as reply:
            pass
        assert (await reply).stop_reason == "cancelled"
        await playing


async def test_an_idle_agent_times_out_and_is_told_to_stop() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("a", idle_timeout=0.01)
        await stage.agent.expect("session/prompt")
        with pytest.raises(accord.Timeout, match="without a message"):
            await reply
        await stage.agent.expect("session/cancel")


async def test_the_end_of_the_link_fails_what_waits() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("a")
        await stage.agent.expect("session/prompt")
        stage.say("half")
        await stage.agent.close()
        with pytest.raises(accord.ConnectionClosed):
            await reply
        assert session.state.messages[-1].text == "half"


async def test_updates_before_the_answer_to_session_new_are_kept() -> None:
    async with staged() as stage:
        opening = asyncio.create_task(stage.remote.new_session("/"))
        new = await stage.agent.expect("session/new")
        stage.say("early")
        stage.agent.answer(new, {"sessionId": "s"})
        stage.say("-bird")
        session = await opening
        await stage.agent.expect_silence()
        assert session.state.messages[0].text == "early-bird"


async def test_updates_of_a_session_that_nobody_opens_are_bounded() -> None:
    async with staged(limits=Limits(early=10_000)) as stage:
        for number in range(1000):
            stage.say("x" * 100, session_id=str(number % 7))
        await stage.agent.expect_silence()
        assert stage.remote._sessions.early.size <= 10_000  # pyright: ignore[reportPrivateUsage]


async def test_a_reply_that_is_only_awaited_never_keeps_the_agent_waiting() -> None:
    async with staged(limits=Limits(intake=10_000)) as stage:
        session = await stage.session()
        reply = session.prompt("a")
        prompt = await stage.agent.expect("session/prompt")
        waiting = asyncio.create_task(_outcome(reply))
        await asyncio.sleep(0)
        for _ in range(1000):
            stage.say("x" * 100)
        stage.end(prompt)
        assert len((await waiting).text) == 100_000
        with pytest.raises(accord.Overflow):
            [update async for update in reply]


async def test_an_unread_reply_pauses_reading_and_a_reader_gets_everything() -> None:
    async with staged(limits=Limits(intake=10_000)) as stage:
        session = await stage.session()
        reply = session.prompt("a")
        prompt = await stage.agent.expect("session/prompt")
        intake = stage.remote.peer.connection.read_pause
        sent = 0
        while not intake.paused:
            stage.say("x" * 100)
            sent += 1
            await asyncio.sleep(0)
        stage.end(prompt)
        assert sum([len(text) async for text in reply.iter_text()]) == 100 * sent
        assert not intake.paused


async def test_a_reader_who_waits_keeps_reading_going_and_a_full_reply_fails_alone() -> None:
    async with staged(limits=Limits(intake=10_000, reply=50_000)) as stage:
        slow, quick = await stage.session("slow"), await stage.session("quick")
        unread, read = slow.prompt("a"), quick.prompt("b")
        await stage.agent.expect("session/prompt")
        prompt = await stage.agent.expect("session/prompt")
        reading = asyncio.ensure_future(anext(read.iter_text()))
        await asyncio.sleep(0)
        for number in range(200):  # each of another message, so that they cannot be merged
            stage.say("x" * 1000, "slow", messageId=str(number))
        cancel = await stage.agent.expect("session/cancel")
        assert cancel["params"] == {"sessionId": "slow"}
        with pytest.raises(accord.Overflow):
            await unread
        stage.say("still here", "quick")
        assert await reading == "still here"
        stage.end(prompt)
        assert (await read).stop_reason == "end_turn"


async def test_past_the_mark_chunks_of_one_message_are_merged_and_nothing_is_lost() -> None:
    async with staged(limits=Limits(intake=2_000)) as stage:
        session = await stage.session()
        reply = session.prompt("a")
        prompt = await stage.agent.expect("session/prompt")
        frames = 500
        for number in range(frames):
            stage.say("\ud83d\udc4d"[number % 2])
        stage.end(prompt)
        updates = [update async for update in reply]
        assert len(updates) < frames
        assert (await reply).text == "\U0001f44d" * (frames // 2)


async def test_the_wire_form_of_updates_is_what_came() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("a", wire=True)
        prompt = await stage.agent.expect("session/prompt")
        odd = b'{"sessionUpdate" : "hologram", "depth":1.50}'
        stage.agent.send_raw(
            b'{"jsonrpc":"2.0","method":"session/update","params":{"update":' + odd + b' ,"sessionId":"s"}}'
        )
        stage.end(prompt)
        assert [update async for update in reply.wire()] == [odd]


@pytest.mark.requirement("permission.always-offered")
async def test_permissions_are_refused_by_default_and_cancelled_where_nothing_rejects() -> None:
    async with staged() as stage:
        await stage.session()
        allow = {"optionId": "y", "name": "Yes", "kind": "allow_once"}
        reject = {"optionId": "n", "name": "No", "kind": "reject_once"}
        tool = {"toolCallId": "1"}
        params = {"sessionId": "s", "toolCall": tool, "options": [allow, reject]}
        answer = await stage.agent.request("session/request_permission", params)
        assert answer == {"outcome": {"outcome": "selected", "optionId": "n"}}
        answer = await stage.agent.request("session/request_permission", {**params, "options": [allow]})
        assert answer == {"outcome": {"outcome": "cancelled"}}


async def test_a_second_prompt_is_another_reply_and_each_gets_its_own_updates() -> None:
    async with staged() as stage:
        session = await stage.session()
        first, second = session.prompt("a"), session.prompt("b")
        prompts = [await stage.agent.expect("session/prompt"), await stage.agent.expect("session/prompt")]
        stage.say("1")
        stage.end(prompts[0])
        stage.say("2")
        stage.end(prompts[1])
        assert [(await first).text, (await second).text] == ["1", "2"]
        assert [message.text for message in session.state.messages] == ["a", "1", "b", "2"]


async def test_a_reply_can_be_awaited_inside_of_a_handler_of_its_own_updates() -> None:
    outcomes: asyncio.Queue[accord.Outcome] = asyncio.Queue()
    async with staged(limits=Limits(stuck_after=0.1)) as stage:
        session = await stage.session()
        reply = session.prompt("a")
        waits: list[accord.Reply] = [reply]

        @stage.remote.on(v1.SessionNotification)
        async def heard(_: v1.SessionNotification) -> None:
            while waits:
                outcomes.put_nowait(await waits.pop())

        prompt = await stage.agent.expect("session/prompt")
        stage.say("one")
        stage.say("two")  # stands in the lane behind the handler, and is folded all the same
        stage.end(prompt)
        async with asyncio.timeout(30):
            assert (await outcomes.get()).text == "onetwo"


async def test_a_session_of_an_agent_that_never_ends_keeps_the_newest() -> None:
    async with staged(limits=Limits(state=50_000)) as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        prompt = await stage.agent.expect("session/prompt")
        for number in range(500):
            stage.say(f"{number} ".ljust(1_000), messageId=str(number))
        stage.end(prompt)
        outcome = await reply
        numbers = [int(number) for number in outcome.text.split()]
        assert numbers == list(range(session.state.forgotten - 1, 500)), "the prompt is an entry as well"
        assert session.state.forgotten > 400


async def test_updates_outside_of_a_turn_are_kept_up_to_a_number_of_bytes() -> None:
    async with staged(limits=Limits(early=50_000)) as stage:
        session = await stage.session()
        for number in range(500):
            stage.say(f"{number} ".ljust(1_000))
        await eventually(lambda: any("499 " in message.text for message in session.state.messages))
        outside = session.updates()
        first = await anext(outside)
        assert isinstance(first, v1.AgentMessageChunk)
        assert isinstance(first.content, v1.TextContent)
        assert int(first.content.text) > 400
        await outside.aclose()  # type: ignore[attr-defined]


async def test_the_text_of_a_reply_is_not_kept_by_who_reads_it() -> None:
    async with staged(limits=Limits(state=50_000)) as stage:
        session = await stage.session()
        texts = session.prompt("Hi").iter_text()
        await stage.agent.expect("session/prompt")
        tracemalloc.start()
        try:
            for number in range(2_000):
                stage.say("x" * 1_000, messageId=str(number))
                assert len(await anext(texts)) == 1_000
                stage.agent.conversation.clear()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept < 500_000
        await texts.aclose()


async def test_the_text_of_a_reply_is_awaited_without_parentheses():
    agent = accord.Agent("two words")
    agent.on_prompt(lambda _: iter(["Hello, ", "world"]))
    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        assert await session.prompt("go").text == "Hello, world"
        reply = session.prompt("go")
        assert "await reply.text" in repr(reply.text)
        assert (
            await reply.text == (await reply).text == "".join([text async for text in session.prompt("x").iter_text()])
        )


async def test_the_text_of_a_reply_that_fails_raises_what_it_failed_with():
    agent = accord.Agent("fails")

    @agent.on_prompt
    def refuse(turn):
        raise accord.RequestError(-32001, "Out of credit")

    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.PeerError, match="Out of credit"):
            await session.prompt("go").text
