"""Turns: what a function says arrives, one turn at a time, and a cancel always ends in `cancelled`."""

import asyncio

import pytest

from accord import Agent, PeerError, RequestError, v1


async def test_an_agent_of_ten_lines_answers(serve):
    agent = Agent("echo", version="1.2.3", title="Echo")

    @agent.on_prompt
    async def echo(turn):
        await turn.say(f"You said: {turn.text}")

    async with serve(agent) as editor:
        session = await editor.open()
        answer = await editor.prompt(session, "hello")
        assert answer.stop_reason == "end_turn"
        assert editor.text == "You said: hello"
        assert editor.agent.agent_info == v1.Implementation("echo", "1.2.3", "Echo")


async def a_function(turn):
    await turn.say("a")
    await turn.say("b")


async def an_asynchronous_generator(turn):
    yield "a"
    yield v1.TextContent("b")


def a_generator(turn):
    yield "a"
    yield "b"


@pytest.mark.parametrize("function", [a_function, an_asynchronous_generator, a_generator], ids=lambda it: it.__name__)
async def test_a_prompt_is_answered_by(serve, function):
    agent = Agent("two words")
    agent.on_prompt(function)
    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "hello")
        assert editor.text == "ab"


@pytest.mark.requirement("prompt.stop-reason-fits")
@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal"])
async def test_a_plain_function_ends_the_turn_with_the_reason_it_returns(serve, reason):
    agent = Agent("ends")
    agent.on_prompt(lambda _: reason)
    async with serve(agent) as editor:
        assert (await editor.prompt(await editor.open(), "hello")).stop_reason == reason


async def test_the_tool_calls_of_a_refused_turn_are_forgotten(serve):
    agent, known = Agent("refuses"), []

    @agent.on_prompt
    async def work(turn):
        known.append(turn.session.tool_call("call"))
        await turn.send(v1.ToolCall(v1.ToolCallId("call"), "Look"))
        known.append(turn.session.tool_call("call").title)
        return "refusal"

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "once")
        await editor.prompt(session, "and again")
    assert known == [None, "Look", None, "Look"]


async def test_text_that_is_returned_instead_of_said_is_an_error_that_says_so(serve, caplog):
    agent = Agent("confused")
    agent.on_prompt(lambda _: "Hello!")
    async with serve(agent) as editor:
        with pytest.raises(PeerError, match="Internal error"):
            await editor.prompt(await editor.open(), "hello")
    assert "turn.say" in caplog.text


async def test_an_error_of_the_author_s_choosing_is_the_answer(serve):
    agent = Agent("picky")

    @agent.on_prompt
    async def refuse(turn):
        raise RequestError.invalid_params("no such file", path="a.txt")

    async with serve(agent) as editor:
        with pytest.raises(PeerError) as raised:
            await editor.prompt(await editor.open(), "hello")
        assert (raised.value.code, raised.value.data) == (-32602, {"path": "a.txt"})


async def test_an_error_of_the_author_s_choosing_is_the_answer_also_from_inside_task_groups(serve):
    agent = Agent("picky")

    async def refuse():
        raise RequestError.not_found("no such model")

    @agent.on_prompt
    async def work(turn):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.Event().wait())
            tasks.create_task(refuse())

    async with serve(agent) as editor:
        with pytest.raises(PeerError, match="no such model"):
            await editor.prompt(await editor.open(), "hello")


@pytest.mark.requirement("session.agent-baseline")
async def test_a_cancelled_turn_answers_cancelled_and_the_next_is_clean(serve):
    agent = Agent("slow")

    @agent.on_prompt
    async def work(turn):
        await turn.say("working")
        if turn.text == "wait":
            try:
                await asyncio.Event().wait()
            finally:
                await turn.say(", stopped")

    async with serve(agent) as editor:
        session = await editor.open()
        asking = asyncio.create_task(editor.prompt(session, "wait"))
        await editor.heard(v1.AgentMessageChunk)
        await editor.cancel(session)
        assert (await asking).stop_reason == "cancelled"
        assert editor.text == "working, stopped"
        assert (await editor.prompt(session, "go")).stop_reason == "end_turn"
