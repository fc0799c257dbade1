"""The conversation as messages for a model, and the model's answer as it streams."""

import asyncio
import json
import re

import pytest
from interop.model.replies import Thinking, ToolCall, Words
from interop.model.server import ModelServer

import accord
from accord import v1
from accord.agent.model_answer import ModelAnswer

APIS = ["anthropic", "openai", "responses"]


def request_type(api):
    """The real type of a request's messages, as pydantic reads it; a test without the package is skipped."""
    pydantic = pytest.importorskip("pydantic")
    if api == "anthropic":
        types = pytest.importorskip("anthropic.types")
        return pydantic.TypeAdapter(list[types.MessageParam])
    if api == "openai":
        types = pytest.importorskip("openai.types.chat")
        return pydantic.TypeAdapter(list[types.ChatCompletionMessageParam])
    types = pytest.importorskip("openai.types.responses")
    return pydantic.TypeAdapter(types.ResponseInputParam)


def check_request(api, messages):
    """The API would take these messages: their types are right, and each call has its result before anything else."""
    request_type(api).validate_python(messages)
    if api == "anthropic":
        assert messages[0]["role"] == "user"
    open_calls = []
    for kind, value in parts(api, messages):
        if kind == "call":
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", value)
            open_calls.append(value)
        elif kind == "result":
            open_calls.remove(value)
        elif kind == "user":
            assert not open_calls
    assert not open_calls


def parts(api, messages):
    """The calls, the results and the user's own words, in order, whichever API they are for."""
    for message in messages:
        content = message.get("content")
        if message.get("role") == "tool":
            yield "result", message["tool_call_id"]
        elif message.get("type") == "function_call":
            yield "call", message["call_id"]
        elif message.get("type") == "function_call_output":
            yield "result", message["call_id"]
        elif message.get("type") == "reasoning":
            continue
        elif message["role"] == "assistant":
            for part in content if isinstance(content, list) else []:
                if part["type"] == "tool_use":
                    yield "call", part["id"]
            for call in message.get("tool_calls", []):
                yield "call", call["id"]
        else:
            for part in content:
                yield ("result", part["tool_use_id"]) if part["type"] == "tool_result" else ("user", part)


@pytest.fixture(params=APIS)
def api(request):
    return request.param


@pytest.fixture(params=[1, 2])
async def session_of(request, tmp_path):
    """`await session_of(agent)`: a session with this agent, in both versions of the protocol."""
    connections = []

    async def open_session(agent, **client):
        connection = accord.connect(agent, accord.Client(**client), versions=[request.param])
        connections.append(connection)
        return await (await connection.__aenter__()).new_session(tmp_path)

    yield open_session
    for connection in connections:
        await connection.__aexit__(None, None, None)


def model_agent(work=None):
    """An agent that keeps what a model would be asked at its latest prompt, for each API."""
    agent = accord.Agent("model", accepts=["image", "audio", "embedded"])
    agent.asked = {}

    @agent.on_prompt
    async def reply(turn):
        agent.asked = {api: await turn.session.messages_for(api) for api in APIS}
        return await work(turn) if work else None

    return agent


BLOCKS = [
    v1.TextContent("Look at these."),
    v1.ImageContent("aGk=", "image/png"),
    v1.ImageContent("aGk=", "image/tiff"),
    v1.AudioContent("aGk=", "audio/wav"),
    v1.ResourceLink("notes", "file:///notes.txt"),
    v1.EmbeddedResource(v1.TextResourceContents("file:///a.py", "print()")),
    v1.EmbeddedResource(v1.BlobResourceContents("aGk=", "file:///a.pdf", mime_type="application/pdf")),
    v1.EmbeddedResource(v1.BlobResourceContents("aGk=", "file:///a.png", mime_type="image/png")),
    v1.EmbeddedResource(v1.BlobResourceContents("aGk=", "file:///a.bin")),
    v1.TextContent("  "),
]


async def test_all_that_a_prompt_holds_is_in_the_request_or_named_in_it(session_of, api):
    agent = model_agent()
    session = await session_of(agent)
    await session.prompt(BLOCKS)
    [message] = agent.asked[api]
    check_request(api, [message])
    kinds = [part["type"].removeprefix("input_").removesuffix("_url") for part in message["content"]]
    assert kinds.count("image") == 2
    assert {"anthropic": "document"}.get(api, "file") in kinds
    assert ("audio" in kinds) == (api == "openai")
    text = "".join(part.get("text", "") for part in message["content"])
    for named in ("file:///notes.txt", "print()", "image/tiff", "file:///a.bin"):
        assert named in text


async def ended_well(tool):
    await tool.text("as text")


async def with_output(tool):
    await tool.text("for people")
    await tool.raw_output({"for": "models"})


async def refused(tool):
    assert not await tool.ask()


async def failed(tool):
    await tool.fail("no such file")


async def with_picture(tool):
    await tool.content(v1.ImageContent("aGk=", "image/png"))


@pytest.mark.parametrize(
    ("end", "result"),
    [
        (ended_well, "as text"),
        (with_output, '{"for":"models"}'),
        (refused, "It did not run to its end: it failed, or the user refused or cancelled it."),
        (failed, "no such file"),
        (with_picture, "(no output)"),
    ],
)
async def test_each_call_of_a_model_has_its_result(session_of, api, end, result):
    async def work(turn):
        if turn.text == "work":
            await turn.say("I look.")
            async with turn.tool("First", name="look", raw_input={"path": "a"}) as tool:
                await end(tool)
            async with turn.tool("Second", name="look") as tool:
                await end(tool)
            async with turn.tool("Of the agent's own") as tool:
                await tool.text("nobody asked for it")
            await turn.say("Done.")

    agent = model_agent(work)
    session = await session_of(agent, permissions=lambda _: False)
    await session.prompt("work")
    await session.prompt("and now?")
    messages = agent.asked[api]
    check_request(api, messages)
    assert [kind for kind, _ in parts(api, messages)].count("call") == 2
    assert json.dumps(messages).count(json.dumps(result)[1:-1]) == 2
    assert "nobody asked" not in json.dumps(messages)
    if end is with_picture:
        assert json.dumps(messages).count("aGk=") == 2


async def test_a_cancelled_turn_leaves_no_call_without_a_result(session_of, api):
    began = asyncio.Event()

    async def work(turn):
        if turn.text == "work":
            await turn.say("One moment")
            async with turn.tool("Wait", name="wait"):
                began.set()
                await asyncio.Event().wait()

    agent = model_agent(work)
    session = await session_of(agent)
    reply = session.prompt("work")
    await began.wait()
    await reply.cancel()
    await session.prompt("and now?")
    check_request(api, agent.asked[api])
    assert "cancelled it." in json.dumps(agent.asked[api])


async def test_a_refused_turn_is_not_in_the_request_and_a_failed_one_is(session_of, api):
    async def work(turn):
        if turn.text == "refuse":
            return "refusal"
        if turn.text == "fail":
            async with turn.tool("Break", name="break"):
                raise ValueError
        return None

    agent = model_agent(work)
    session = await session_of(agent)
    await session.prompt("refuse")
    with pytest.raises(accord.PeerError):
        await session.prompt("fail")
    await session.prompt("and now?")
    check_request(api, agent.asked[api])
    assert 'refuse"' not in json.dumps(agent.asked[api])
    assert "break" in json.dumps(agent.asked[api])


async def test_an_unknown_api_is_refused_by_its_name(session_of):
    async def work(turn):
        with pytest.raises(ValueError, match=r"messages_for\(api\).*anthropic.*'gemini'"):
            await turn.session.messages_for("gemini")

    session = await session_of(model_agent(work))
    await session.prompt("go")


# Answers, from the real packages over HTTP


async def events_of(api, url, messages):
    """What the real package of an API yields for these messages."""
    tool = {"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}}
    if api == "anthropic":
        client = pytest.importorskip("anthropic").AsyncAnthropic(api_key="none", base_url=url)
        tools = [{"name": "add", "description": "Add.", "input_schema": tool["parameters"]}]
        request = client.messages.create(model="fake", max_tokens=9, messages=messages, tools=tools, stream=True)
    else:
        client = pytest.importorskip("openai").AsyncOpenAI(api_key="none", base_url=url + "/v1")
        if api == "openai":
            tools = [{"type": "function", "function": tool}]
            request = client.chat.completions.create(model="fake", messages=messages, tools=tools, stream=True)
        else:
            tools = [{"type": "function", **tool, "strict": False}]
            request = client.responses.create(model="fake", input=messages, tools=tools, stream=True)
    async with client:
        return [event async for event in await request]


async def test_an_agent_talks_to_a_model_by_the_provider_s_package(session_of, api):
    def reply(asked):
        if asked.answered:
            yield from (Words("It is "), Words("5."))
        else:
            yield from (Words("Let me see. "), ToolCall("add", {"left": 2, "right": 3}))

    async def work(turn):
        while True:
            events = await events_of(api, model.url, await turn.session.messages_for(api))
            answer = await turn.stream_answer(events, context=1000)
            for call in answer.calls:
                async with turn.tool("Add up", name=call.name, raw_input=call.input) as tool:
                    await tool.raw_output(sum(call.input.values()))
            if not answer.calls:
                return answer.stop_reason

    with ModelServer(reply=reply) as model:
        session = await session_of(model_agent(work))
        outcome = await session.prompt("What is 2 + 3?")
    assert outcome.text == "Let me see. It is 5."
    assert [call.raw_input for call in outcome.tool_calls] == [{"left": 2, "right": 3}]
    assert session.state.usage.size == 1000


async def test_objects_dicts_and_lines_are_the_same_answer(api):
    def reply(asked):
        yield from (
            *([Thinking("Hm.")] if api == "openai" else []),
            Words("Let me see. "),
            ToolCall("add", {"left": 2}),
        )

    with ModelServer(reply=reply) as model:
        question = [{"role": "user", "content": "add"}]
        objects = await events_of(api, model.url, question)
    dicts = [it.model_dump(mode="json", exclude_none=True) for it in objects]
    lines = ["event: x", *(f"data: {json.dumps(it)}" for it in dicts), b": keep-alive", b"", b"data: [DONE]\n"]
    answers = []
    for events in (objects, dicts, lines):
        answer = ModelAnswer()
        deltas = [delta for event in events for delta in answer.add(event)]
        answers.append((deltas, answer.parts, answer.usage, answer.stop_reason))
        assert answer.text == "Let me see. "
        assert [(call.name, call.input) for call in answer.calls] == [("add", {"left": 2})]
    assert answers[0] == answers[1] == answers[2]


THINKING = {"type": "thinking", "thinking": "Deep.", "signature": "SIGNED"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SEALED"}
THOUGHTFUL = {
    "anthropic": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Deep."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "SIGNED"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Yes."}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ],
    "responses": [
        {"type": "response.reasoning_summary_text.delta", "delta": "Deep."},
        {"type": "response.output_item.done", "item": {**REASONING, "status": "completed"}},
        {"type": "response.output_text.delta", "delta": "Yes."},
        {"type": "response.completed", "response": {"output": []}},
    ],
}


@pytest.mark.parametrize(("api", "sealed"), [("anthropic", THINKING), ("responses", REASONING)])
async def test_a_thought_goes_back_to_its_provider_as_it_was_and_to_no_other(session_of, api, sealed):
    async def work(turn):
        await turn.stream_answer(THOUGHTFUL[api])

    agent = model_agent(work)
    session = await session_of(agent)
    await session.prompt("think")
    await session.prompt("again")
    assert next(message.text for message in session.state.messages if message.speaker == "thought") == "Deep."
    for other in APIS:
        check_request(other, agent.asked[other])
        said = [part for message in agent.asked[other] for part in (message, *(message.get("content") or ()))]
        assert (sealed in said) == (other == api)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([{"error": {"message": "out of\nspace"}}], "out of"),
        ([{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}], "Overloaded"),
        ([{"type": "error", "message": "it broke"}], "it broke"),
        ([{"type": "response.failed", "response": {"error": {"message": "no quota"}}}], "no quota"),
        ([{"choices": [{"delta": {"content": "Hel"}}]}], "ended before it was complete"),
        ([], "ended before it was complete"),
    ],
)
async def test_an_answer_that_fails_is_an_error_in_the_provider_s_words(session_of, events, said):
    async def work(turn):
        await turn.stream_answer(events)

    session = await session_of(model_agent(work))
    with pytest.raises(accord.PeerError, match=f"the answer of the model failed: .*{said}"):
        await session.prompt("go")


@pytest.mark.parametrize(("reason", "stop"), [("length", "max_tokens"), ("content_filter", "refusal")])
def test_a_call_in_an_answer_that_was_cut_off_is_not_made(reason, stop):
    answer = ModelAnswer()
    call = {"index": 0, "id": "c", "function": {"name": "write", "arguments": '{"pa'}}
    assert not [*answer.add({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": reason}]})]
    assert answer.stop_reason == stop
    assert answer.calls == []


async def test_the_stream_is_closed_when_the_turn_is_cancelled(session_of):
    closed, began = asyncio.Event(), asyncio.Event()

    async def endless():
        try:
            yield {"choices": [{"delta": {"content": "One moment"}}]}
            began.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def work(turn):
        await turn.stream_answer(endless())

    session = await session_of(model_agent(work))
    reply = session.prompt("go")
    await began.wait()
    assert (await reply.cancel()).stop_reason == "cancelled"
    await closed.wait()


async def test_the_tokens_of_all_answers_are_those_of_the_turn(tmp_path):
    chunk = {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    agent = accord.Agent("model", unstable=True)

    @agent.on_prompt
    async def reply(turn):
        await turn.stream_answer([chunk])
        await turn.stream_answer([chunk])

    async with accord.connect(agent) as remote:
        outcome = await (await remote.new_session(tmp_path)).prompt("go")
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens, outcome.usage.total_tokens) == (10, 4, 14)
