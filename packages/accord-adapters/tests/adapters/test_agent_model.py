"""An ACP agent as a model of Pydantic AI."""

import asyncio
from dataclasses import dataclass

import pytest

import accord
from accord import v1

pydantic_ai = pytest.importorskip("pydantic_ai")
adapter = pytest.importorskip("accord_adapters.pydantic_ai")


@pytest.fixture
def helper():
    """An agent that remembers each prompt, with its session, and gives the answers of `helper.says`."""
    agent = accord.Agent("helper", accepts=["image", "audio", "embedded"], unstable=True)
    agent.heard, agent.says = [], []

    @agent.on_prompt
    async def reply(turn):
        agent.heard.append((turn.session.id, turn.prompt))
        answer = agent.says.pop(0) if agent.says else f"Answer {len(agent.heard)}."
        if isinstance(answer, Exception):
            raise answer
        await turn.think("Hm.")
        for word in answer.split(" "):
            await turn.say(word + " ")
        turn.tokens(5, 2)

    return agent


def texts(agent):
    return ["".join(getattr(block, "text", "") for block in prompt) for _, prompt in agent.heard]


async def test_an_agent_answers_as_a_model_with_thoughts_and_usage(helper, tmp_path):
    agent = pydantic_ai.Agent(
        adapter.model(accord.connect(helper), name="helper", cwd=tmp_path), instructions="Be brief."
    )
    result = await agent.run("Hello")
    assert result.output == "Answer 1. "
    assert (result.usage.input_tokens, result.usage.output_tokens) == (5, 2)
    response = result.all_messages()[-1]
    assert [type(part).__name__ for part in response.parts] == ["ThinkingPart", "TextPart"]
    assert (response.model_name, response.finish_reason) == ("helper", "stop")
    assert texts(helper) == ["Be brief.Hello"]


async def test_a_conversation_goes_on_in_its_session_and_an_edited_one_begins_another(helper, tmp_path):
    agent = pydantic_ai.Agent(adapter.model(accord.connect(helper), cwd=tmp_path))
    first = await agent.run("One")
    second = await agent.run("Two", message_history=first.all_messages())
    await agent.run("Three", message_history=second.all_messages())
    await agent.run("Other", message_history=first.all_messages())
    sessions = [session for session, _ in helper.heard]
    assert len(set(sessions[:3])) == 1
    assert sessions[3] != sessions[0]
    assert texts(helper)[:3] == ["One", "Two", "Three"]
    assert texts(helper)[3] == "One\nYou have answered:\nAnswer 1. \nOther"


async def test_text_streams_as_the_agent_says_it(helper, tmp_path):
    agent = pydantic_ai.Agent(adapter.model(accord.connect(helper), cwd=tmp_path))
    helper.says = ["one two three"]
    async with agent.run_stream("Count") as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    assert pieces == ["one ", "two ", "three "]


@dataclass
class Place:
    path: str
    line: int


async def test_an_output_type_is_asked_for_and_repaired(helper, tmp_path):
    agent = pydantic_ai.Agent(adapter.model(accord.connect(helper), cwd=tmp_path), output_type=Place)
    helper.says = ['{"path": "a.py"}', '{"path": "a.py", "line": 3}']
    result = await agent.run("Where?")
    assert result.output == Place("a.py", 3)
    assert '"line"' in texts(helper)[0]
    assert "line" in texts(helper)[1]
    assert len({session for session, _ in helper.heard}) == 1


async def test_pictures_and_links_reach_the_agent(helper, tmp_path):
    agent = pydantic_ai.Agent(adapter.model(accord.connect(helper), cwd=tmp_path))
    picture = pydantic_ai.BinaryContent(b"hi", media_type="image/png")
    await agent.run(["Look", picture, pydantic_ai.DocumentUrl("https://example.com/a.pdf")])
    [(_, prompt)] = helper.heard
    assert prompt[0] == v1.TextContent("Look")
    assert prompt[1] == v1.ImageContent("aGk=", "image/png")
    assert prompt[2].uri == "https://example.com/a.pdf"


async def test_an_agent_that_fails_is_an_error_of_the_model(helper, tmp_path):
    agent = pydantic_ai.Agent(adapter.model(accord.connect(helper), name="helper", cwd=tmp_path))
    helper.says = [accord.RequestError.internal("no more tokens")]
    with pytest.raises(pydantic_ai.exceptions.ModelAPIError, match="no more tokens"):
        await agent.run("Hello")


async def test_tools_of_pydantic_ai_are_refused_by_name(helper, tmp_path):
    agent = pydantic_ai.Agent(adapter.model(accord.connect(helper), cwd=tmp_path), tools=[len])
    with pytest.raises(pydantic_ai.exceptions.UserError, match="uses its own tools and cannot call these: len"):
        await agent.run("Hello")
    assert helper.heard == []


async def test_a_run_that_is_cancelled_cancels_the_turn(tmp_path):
    began, over = asyncio.Event(), asyncio.Event()
    slow = accord.Agent("slow")

    @slow.on_prompt
    async def reply(turn):
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    running = asyncio.create_task(pydantic_ai.Agent(adapter.model(accord.connect(slow), cwd=tmp_path)).run("Hello"))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await over.wait()
