"""A wrong value is refused by the call that it is given to, and the error names the argument and what it takes."""

import gc
import warnings

import pytest

import accord
from accord import Agent, v1

ENTRY = v1.PlanEntry("Look", "urgent", "pending")
CALL = v1.ToolCall(3, "Title")


@pytest.fixture
def raised_by(serve):
    """`await raised_by(work)`: what the author's function raises in a turn."""

    async def raised_by(work):
        agent, raised = Agent("wrong"), []

        @agent.on_prompt
        async def prompt(turn):
            try:
                await work(turn)
            except Exception as error:
                raised.append(error)

        async with serve(agent) as editor:
            await editor.prompt(await editor.open(), "go")
        [error] = raised
        return error

    return raised_by


async def tool_of(turn, act):
    async with turn.tool("Work") as tool:
        await act(tool)


WRONG = {
    "say a number": (lambda turn: turn.say(5), TypeError, "turn.say() takes text or a content block, got int 5"),
    "say bytes": (lambda turn: turn.say(b"hi"), TypeError, "decode it first"),
    "think nothing": (lambda turn: turn.think(None), TypeError, "turn.think() takes text or a content block, got None"),
    "speak for the user": (lambda turn: turn.say_as_user(5), TypeError, "turn.say_as_user() takes"),
    "say a bad block": (
        lambda turn: turn.say(v1.TextContent(5)),
        TypeError,
        "turn.say() got an invalid TextContent: expected `str`, got `int` at $.text",
    ),
    "plan with a list": (lambda turn: turn.plan(["a"]), TypeError, "got list ['a']; pass each step by itself: *steps"),
    "plan with an unknown priority": (
        lambda turn: turn.plan(ENTRY),
        ValueError,
        "turn.plan(): priority must be one of high, medium, low, got 'urgent'",
    ),
    "send no update": (lambda turn: turn.send("hello"), TypeError, "turn.send() takes an update of a session"),
    "send a bad tool call": (
        lambda turn: turn.send(CALL),
        TypeError,
        "turn.send() got an invalid ToolCall: expected `str`, got `int` at $.toolCallId",
    ),
    "send a bad plan between turns": (
        lambda turn: turn.session.send(v1.Plan([ENTRY])),
        ValueError,
        "session.send() got an invalid Plan: invalid enum value 'urgent' at $.entries[0].priority",
    ),
    "ask with a question": (
        lambda turn: turn.ask("Push", "sure?"),
        ValueError,
        "'reject_always' or a v1.PermissionOption, got str 'sure?'; the question is the title",
    ),
    "ask with a number": (lambda turn: turn.ask("Push", 5), TypeError, "ask() takes options"),
    "a tool without a title": (lambda turn: tool_of(turn, lambda tool: tool.retitle(5)), TypeError, "takes text"),
    "text of a tool": (lambda turn: tool_of(turn, lambda tool: tool.text(b"x")), TypeError, "tool.text() takes text"),
    "content of a tool": (
        lambda turn: tool_of(turn, lambda tool: tool.content(5)),
        TypeError,
        "tool.content() takes text or a content block, got int 5",
    ),
    "a diff of numbers": (
        lambda turn: tool_of(turn, lambda tool: tool.diff("a.txt", None, 5)),
        TypeError,
        "tool.diff(new) takes text, got int 5",
    ),
    "a tool that was not entered": (
        lambda turn: turn.tool("Work").text("hi"),
        RuntimeError,
        "write `async with turn.tool('Work') as tool:`",
    ),
    "start what is no coroutine": (lambda turn: turn.start(print), TypeError, "turn.start() takes a coroutine"),
    "a request with a bad field": (
        lambda turn: turn.client.request(v1.ReadTextFileRequest(turn.session.id, "/a", line="3")),
        TypeError,
        "client.request() got an invalid ReadTextFileRequest",
    ),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_value_in_a_turn_is_refused_at_the_call(raised_by, name):
    work, kind, words = WRONG[name]
    error = await raised_by(work)
    assert type(error) is kind
    assert words in str(error)


async def test_a_generator_that_yields_a_number_is_told_what_it_may_yield(serve, caplog):
    agent = Agent("yields")

    @agent.on_prompt
    async def prompt(turn):
        yield 5

    async with serve(agent) as editor:
        with pytest.raises(accord.PeerError):
            await editor.prompt(await editor.open(), "go")
    assert "turn.say() takes text or a content block, got int 5" in caplog.text


async def test_an_unknown_block_may_be_sent_on(serve):
    agent = Agent("passes on")
    newer = accord.Unknown("hologram", {"type": "hologram", "depth": 3})

    @agent.on_prompt
    async def prompt(turn):
        await turn.say(newer)
        await turn.send(v1.ToolCall(v1.ToolCallId("t"), "Show", content=[v1.Content(newer)]))

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.of(v1.AgentMessageChunk)[0].content == newer
        assert editor.of(v1.ToolCall)[0].content == [v1.Content(newer)]


async def test_a_tool_that_is_dropped_without_its_block_is_reported(serve):
    agent = Agent("forgets")

    @agent.on_prompt
    async def prompt(turn):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            turn.tool("Work")
            gc.collect()
        await turn.say(" ".join(str(it.message) for it in told))

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.text == "turn.tool('Work') was never entered; write `async with turn.tool('Work') as tool:`"


def register_twice():
    agent = Agent("twice")
    agent.on_prompt(lambda _: None)
    agent.on_prompt(lambda _: "end_turn")


def command_twice():
    agent = Agent("twice")
    agent.command("plan", "Makes a plan")(lambda _: None)
    agent.command("plan", "Makes another plan")(lambda _: None)


DECLARED = {
    "a misspelled word": (
        lambda: Agent("a", remember="sesion"),
        ValueError,
        "remember must be one of session, agent, got 'sesion'; did you mean session?",
    ),
    "a number for a word": (lambda: Agent("a", prompt_while_working=2), TypeError, "prompt_while_working takes one of"),
    "text for a list": (lambda: Agent("a", accepts="image"), TypeError, "got str 'image'; write ['image']"),
    "a number for a name": (lambda: Agent(5), TypeError, "Agent(name) takes text, got int 5"),
    "an object for a class": (lambda: Agent("a", state={}), TypeError, "Agent(state=...) takes a class, got dict {}"),
    "a number for a store": (lambda: Agent("a", store=5), TypeError, "Agent(store=...) takes a path"),
    "a second function for prompts": (register_twice, ValueError, "@agent.on_prompt was used twice"),
    "a command twice": (command_twice, ValueError, "the command 'plan' is registered already"),
    "a command without a description": (
        lambda: Agent("a").command(print, "x"),
        TypeError,
        "@agent.command() takes text, got builtin_function_or_method",
    ),
    "no function for prompts": (lambda: Agent("a").on_prompt("reply"), TypeError, "takes a function, got str 'reply'"),
}


@pytest.mark.parametrize("name", DECLARED)
def test_a_wrong_value_in_a_declaration_is_refused_at_the_call(name):
    declare, kind, words = DECLARED[name]
    with pytest.raises(kind) as raised:
        declare()
    assert words in str(raised.value)
