"""Prompts that steer a running turn, and work that an agent begins by itself, in both versions."""

from __future__ import annotations

import asyncio

import pytest

from accord import Agent, PeerError, v1


class Worker:
    """An agent that works in steps: `next()` lets it take the prompts that wait, `end()` ends the turn."""

    def __init__(self, **options):
        self.agent = Agent("worker", prompt_while_working="steer", **options)
        self.agent.on_prompt(self.work)
        self.steps = asyncio.Queue()

    async def work(self, turn):
        await turn.say(turn.text)
        while await self.steps.get() == "next":
            async for more in turn.prompts():
                await turn.say(f"more: {more.text}")
            await turn.say("step")

    def next(self):
        self.steps.put_nowait("next")

    def end(self):
        self.steps.put_nowait("end")


async def test_a_prompt_steers_the_running_turn_and_one_idle_ends_both(speak):
    worker = Worker()
    async with speak(worker.agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id, "one"), "one")
        assert await client.said() == "one"
        requests = {text: client.prompt(session_id, text) for text in ("two", "three")}
        await client.expect_silence()
        worker.next()
        for text, request in requests.items():
            echo = await client.update("user_message")
            assert echo["content"] == [{"type": "text", "text": text}]
            assert await client.expect_result(request) == {"messageId": echo["messageId"]}
            assert await client.said() == f"more: {text}"
        assert await client.said() == "step"
        worker.end()
        await client.state("idle", stopReason="end_turn")
        await client.expect_silence()


async def test_a_prompt_that_no_turn_takes_becomes_a_turn(speak):
    worker = Worker()
    async with speak(worker.agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id, "one"), "one")
        assert await client.said() == "one"
        two = client.prompt(session_id, "two")
        worker.end()
        await client.state("idle", stopReason="end_turn")
        await client.inserted(two, "two")
        assert await client.said() == "two"
        worker.end()
        await client.state("idle", stopReason="end_turn")


async def test_what_is_said_after_a_steering_prompt_is_another_message(speak):
    worker = Worker()
    async with speak(worker.agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id, "one"), "one")
        first = await client.update("agent_message_chunk")
        two = client.prompt(session_id, "two")
        await client.expect_silence()
        worker.next()
        await client.update("user_message")
        await client.expect_result(two)
        second = await client.update("agent_message_chunk")
        assert first["messageId"] != second["messageId"]
        worker.end()
        await client.until("state_update", state="idle")


async def test_a_withdrawn_prompt_steers_nothing(speak):
    worker = Worker()
    async with speak(worker.agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id, "one"), "one")
        assert await client.said() == "one"
        two = client.prompt(session_id, "two")
        client.tell("$/cancel_request", {"requestId": two})
        await client.expect_error(two, -32800)
        worker.next()
        assert await client.said() == "step"
        worker.end()
        await client.state("idle", stopReason="end_turn")


async def test_in_version_1_a_steering_prompt_is_answered_with_the_turn(serve):
    worker = Worker()
    async with serve(worker.agent) as editor:
        session_id = await editor.open()
        one = asyncio.create_task(editor.prompt(session_id, "one"))
        await editor.heard(v1.AgentMessageChunk)
        two = asyncio.create_task(editor.prompt(session_id, "two"))
        await editor.heard(lambda _: worker.next() or "step" in editor.text)
        while "more: two" not in editor.text:
            seen = len(editor.updates)
            worker.next()
            await editor.heard(lambda _, seen=seen: len(editor.updates) > seen)
        assert (one.done(), two.done()) == (False, False)
        worker.end()
        assert [(await it).stop_reason for it in (one, two)] == ["end_turn", "end_turn"]


async def test_in_version_1_a_steering_prompt_fails_with_the_turn(serve):
    agent = Agent("broken", prompt_while_working="steer")
    taken = asyncio.Event()

    @agent.on_prompt
    async def work(turn):
        await turn.say("working")
        while not taken.is_set():
            async for _ in turn.prompts():
                taken.set()
            await asyncio.sleep(0)
        raise LookupError("broken")

    async with serve(agent) as editor:
        session_id = await editor.open()
        one = asyncio.create_task(editor.prompt(session_id, "one"))
        await editor.heard(v1.AgentMessageChunk)
        two = asyncio.create_task(editor.prompt(session_id, "two"))
        for prompt in one, two:
            with pytest.raises(PeerError, match="Internal error"):
                await prompt


# Work that the agent begins


def reporter(report=None):
    """An agent that, on the prompt `later`, works by itself when `go` is set."""
    agent = Agent("reporter")
    go = asyncio.Event()

    async def later(session):
        await go.wait()
        async with session.work() as turn:
            await (report(turn) if report else turn.say("It is done."))
        await session.set_title(f"after, cancelled {asyncio.current_task().cancelling()} times")

    @agent.on_prompt
    async def work(turn):
        if turn.text == "later":
            turn.session.start(later(turn.session))
        else:
            await turn.say("busy")

    return agent, go


async def test_work_without_a_prompt_is_told_as_running_and_idle(speak):
    agent, go = reporter()
    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new(), "later"), "later")
        await client.state("idle", stopReason="end_turn")
        go.set()
        await client.state("running")
        assert await client.said() == "It is done."
        await client.state("idle", stopReason="end_turn")
        await client.update("session_info_update")
        await client.expect_silence()


async def test_work_without_a_prompt_can_be_cancelled_and_its_task_goes_on(speak):
    async def wait(turn):
        await turn.say("waiting")
        await asyncio.Event().wait()

    agent, go = reporter(wait)
    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id, "later"), "later")
        await client.state("idle", stopReason="end_turn")
        go.set()
        await client.state("running")
        await client.said()
        client.cancel(session_id)
        await client.state("idle", stopReason="cancelled")
        assert (await client.update("session_info_update"))["title"] == "after, cancelled 0 times"


async def test_a_prompt_that_comes_meanwhile_is_held(speak):
    released = asyncio.Event()

    async def wait(turn):
        await turn.say("waiting")
        await released.wait()

    agent, go = reporter(wait)
    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id, "later"), "later")
        await client.state("idle", stopReason="end_turn")
        go.set()
        await client.state("running")
        await client.said()
        held = client.prompt(session_id)
        await client.expect_silence()
        released.set()
        await client.state("idle", stopReason="end_turn")
        seen = [await client.receive()]
        while seen[-1].get("params", {}).get("update", {}).get("state") != "idle":
            seen.append(await client.receive())
        assert held in [it.get("id") for it in seen]


async def test_failed_work_is_told_as_an_error_and_raised(speak, caplog):
    async def fail(turn):
        raise LookupError("the secret cupboard is empty")

    agent, go = reporter(fail)
    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new(), "later"), "later")
        await client.state("idle", stopReason="end_turn")
        go.set()
        await client.state("running")
        await client.state("idle", stopReason="error", error={"code": -32603, "message": "Internal error"})
        await client.expect_silence()
    assert "the secret cupboard is empty" in caplog.text


async def test_closing_the_session_ends_its_own_work_and_the_task_of_it(speak):
    ended = []
    agent = Agent("reporter")

    async def always(session):
        try:
            while True:
                async with session.work() as turn:
                    await turn.say("again")
                    await asyncio.Event().wait()
        finally:
            ended.append(session.id)

    @agent.on_prompt
    async def work(turn):
        turn.session.start(always(turn.session))

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.state("idle", stopReason="end_turn")
        await client.state("running")
        await client.said()
        closing = client.call("session/close", {"sessionId": session_id})
        await client.state("idle", stopReason="cancelled")
        assert await client.expect_result(closing) == {}
        assert ended == [session_id]


async def test_in_version_1_the_work_is_told_between_two_turns(serve):
    agent, go = reporter()
    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "later")
        go.set()
        await editor.heard(v1.SessionInfoUpdate)
        assert editor.text == "It is done."


async def test_work_inside_a_turn_is_refused_instead_of_waiting_for_itself(serve):
    agent = Agent("confused")
    problems = []

    @agent.on_prompt
    async def work(turn):
        with pytest.raises(RuntimeError, match="inside a turn") as raised:
            async with turn.session.work():
                pass
        problems.append(raised.value)

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "go")
    assert len(problems) == 1


async def test_own_work_that_is_stopped_while_it_waits_for_a_turn_tells_nothing(speak):
    agent, go_on, waiting = Agent("worker"), asyncio.Event(), []

    async def report(session):
        async with session.work() as turn:
            await turn.say("never")

    @agent.on_prompt
    async def work(turn):
        waiting.append(turn.session.start(report(turn.session)))
        await turn.say("begun")
        await go_on.wait()

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        assert await client.said() == "begun"
        await client.expect_silence()
        waiting[0].cancel()
        await asyncio.wait(waiting)
        await client.expect_silence()
        go_on.set()
        await client.state("idle", stopReason="end_turn")
        await client.expect_silence()
