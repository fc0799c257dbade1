"""Cancelling: whatever a turn does, it ends, it is answered `cancelled`, and the next one is clean."""

import asyncio
import logging

import pytest

from accord import Agent, Handlers, PeerError, v1
from accord.agent import remote_client

FOREVER = 3600


def agent_with(work, **options):
    agent = Agent("works", **options)
    agent.on_prompt(work)
    return agent


async def opened(client):
    """A new session's id, by a script."""
    return (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]


def prompted(client, session, text):
    """A prompt's request, by a script: its id."""
    return client.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})


async def cancelled_prompt(editor, *, when=v1.AgentMessageChunk):
    """Prompt, cancel once this has been heard, and give the answer."""
    session = await editor.open()
    asking = asyncio.create_task(editor.prompt(session, "go"))
    await editor.heard(when)
    await editor.cancel(session)
    return await asking


async def returns_something_else(turn):
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "max_tokens"


async def raises(turn):
    try:
        await asyncio.Event().wait()
    finally:
        raise OSError("the model's connection broke")


async def lets_it_through(turn):
    await asyncio.Event().wait()


async def waits_in_a_task_group(turn):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asyncio.sleep(FOREVER))
        tasks.create_task(asyncio.sleep(FOREVER))


async def has_started_something(turn):
    turn.start(asyncio.sleep(FOREVER))


async def catches_everything_once(turn):
    try:
        await asyncio.Event().wait()
    except BaseException:
        await turn.say(" and ended")


@pytest.mark.requirement("prompt.cancel.answers-cancelled", "prompt.cancel.errors-hidden", "prompt.cancel.stops-work")
@pytest.mark.parametrize(
    "end",
    [
        returns_something_else,
        raises,
        lets_it_through,
        waits_in_a_task_group,
        has_started_something,
        catches_everything_once,
    ],
    ids=lambda function: function.__name__,
)
async def test_a_cancelled_turn_is_answered_cancelled_though_it(serve, end):
    async def work(turn):
        await turn.say("working")
        return await end(turn)

    async with serve(agent_with(work)) as editor:
        assert (await cancelled_prompt(editor)).stop_reason == "cancelled"


async def test_a_turn_that_does_not_end_is_answered_after_a_grace(serve, caplog):
    let_go = asyncio.Event()

    async def stubborn(turn):
        await turn.say("working")
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        with pytest.raises(RuntimeError, match="this turn is over"):
            await turn.say("too late")

    async with serve(agent_with(stubborn, cancel_grace=0.01)) as editor:
        assert (await cancelled_prompt(editor)).stop_reason == "cancelled"
        let_go.set()
        await asyncio.sleep(0)
    assert "did not end within its grace period" in caplog.text
    assert editor.text == "working"


async def test_a_turn_that_does_not_end_keeps_nobody_waiting(scripted):
    """Neither who has cancelled its request, nor the next prompt of its session."""
    let_go = asyncio.Event()

    async def work(turn):
        await turn.say(turn.text)
        while turn.text == "stubborn" and not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    async with scripted(agent_with(work, cancel_grace=0.01)) as client:
        session = await opened(client)
        first, second = prompted(client, session, "stubborn"), prompted(client, session, "next")
        await client.expect("session/update")
        client.tell("$/cancel_request", {"requestId": first})
        assert await client.expect_result(first) == {"stopReason": "cancelled"}
        await client.expect("session/update")
        assert await client.expect_result(second) == {"stopReason": "end_turn"}
        let_go.set()


@pytest.mark.requirement("prompt.cancel.updates-before-answer")
async def test_what_a_turn_says_while_it_unwinds_comes_before_the_answer(serve):
    async def work(turn):
        async with turn.tool("Search"):
            await turn.say("working")
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                await turn.say(", stopped")

    async with serve(agent_with(work)) as editor:
        await cancelled_prompt(editor)
        assert editor.text == "working, stopped"
        assert editor.of(v1.ToolCallProgress)[-1].status == "failed"


async def test_a_cancel_when_nothing_runs_is_harmless(serve):
    async def work(turn):
        await turn.say("done")

    async with serve(agent_with(work)) as editor:
        session = await editor.open()
        await editor.cancel(session)
        await editor.cancel(v1.SessionId("never heard of"))
        assert (await editor.prompt(session, "go")).stop_reason == "end_turn"
        await editor.cancel(session)
        assert (await editor.prompt(session, "go")).stop_reason == "end_turn"


async def test_a_cancel_right_behind_its_prompt_is_not_lost(serve):
    async def work(turn):
        await asyncio.Event().wait()

    async with serve(agent_with(work)) as editor:
        session = await editor.open()
        asking = asyncio.create_task(editor.prompt(session, "go"))
        await asyncio.sleep(0)
        await editor.cancel(session)
        assert (await asking).stop_reason == "cancelled"


async def test_cancelling_the_request_cancels_the_turn(scripted):
    async def work(turn):
        await turn.say("working")
        await asyncio.Event().wait()

    async with scripted(agent_with(work)) as client:
        session = await opened(client)
        prompt = prompted(client, session, "go")
        await client.expect("session/update")
        client.tell("$/cancel_request", {"requestId": prompt})
        assert await client.expect_result(prompt) == {"stopReason": "cancelled"}


async def test_a_pending_permission_request_is_given_up(serve):
    asked = asyncio.Event()
    handlers = Handlers()

    @handlers.on(v1.RequestPermissionRequest)
    async def never_answer(request):
        asked.set()
        await asyncio.Event().wait()

    async def work(turn):
        await turn.ask("Push")

    async with serve(agent_with(work), handlers) as editor:
        session = await editor.open()
        asking = asyncio.create_task(editor.prompt(session, "go"))
        await asked.wait()
        await editor.cancel(session)
        assert (await asking).stop_reason == "cancelled"
        assert editor.of(v1.ToolCallProgress)[-1].status == "failed"


@pytest.mark.requirement("cancel-request.follows-session-cancel")
async def test_what_a_cancelled_turn_has_asked_is_cancelled_too(scripted):
    async def work(turn):
        await turn.ask("Push")

    async with scripted(agent_with(work)) as client:
        session = await opened(client)
        prompt = prompted(client, session, "go")
        await client.expect("session/update")  # the tool call
        asked = await client.expect("session/request_permission")
        client.tell("session/cancel", {"sessionId": session})
        assert (await client.expect("$/cancel_request"))["params"] == {"requestId": asked["id"]}
        assert (await client.expect("session/update"))["params"]["update"]["status"] == "failed"
        assert await client.expect_result(prompt) == {"stopReason": "cancelled"}


async def test_a_user_who_has_cancelled_is_not_asked_any_more(serve):
    async def work(turn):
        await turn.say("working")
        try:
            await asyncio.Event().wait()
        finally:
            await turn.ask("Undo?")

    handlers = Handlers()
    handlers.on(v1.RequestPermissionRequest)(lambda _: pytest.fail("the user was asked"))
    async with serve(agent_with(work), handlers) as editor:
        assert (await cancelled_prompt(editor)).stop_reason == "cancelled"


async def test_what_a_forgotten_task_asks_ends_with_the_turn(serve):
    tasks, asked = [], asyncio.Event()
    handlers = Handlers()

    @handlers.on(v1.ReadTextFileRequest)
    async def never_answer(request):
        asked.set()
        await asyncio.Event().wait()

    async def work(turn):
        tasks.append(asyncio.create_task(turn.client.read_text_file("a.txt")))
        await asked.wait()

    declare = v1.ClientCapabilities(v1.FileSystemCapabilities(read_text_file=True))
    async with serve(agent_with(work), handlers, declare=declare) as editor:
        assert (await editor.prompt(await editor.open(), "go")).stop_reason == "end_turn"
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]


@pytest.mark.requirement("prompt.answered-when-done")
async def test_a_turn_waits_for_what_it_has_started(serve):
    async def later(turn):
        await asyncio.sleep(0)
        await turn.say("later")

    async def work(turn):
        turn.start(later(turn))
        await turn.say("now, ")

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.text == "now, later"


async def test_an_error_in_what_a_turn_has_started_is_the_turn_s(serve, caplog):
    async def broken():
        raise LookupError("no model")

    async def work(turn):
        turn.start(broken())
        await asyncio.Event().wait()

    async with serve(agent_with(work)) as editor:
        with pytest.raises(PeerError):
            await editor.prompt(await editor.open(), "go")
    assert "LookupError: no model" in caplog.text


async def test_a_turn_that_cancels_itself_is_an_error(serve):
    async def work(turn):
        raise asyncio.CancelledError

    async with serve(agent_with(work)) as editor:
        with pytest.raises(PeerError) as raised:
            await editor.prompt(await editor.open(), "go")
        assert raised.value.code == -32800


# A second prompt


class Stage:
    """An agent that works on a prompt until it is told to end it."""

    def __init__(self, prompt_while_working):
        self.agent = Agent("stage", prompt_while_working=prompt_while_working, versions=(1,))
        self.end = {}
        self.agent.on_prompt(self.work)

    async def work(self, turn):
        await turn.say(f"{turn.text} ")
        try:
            await self.end.setdefault(turn.text, asyncio.Event()).wait()
        finally:
            await turn.say(f"/{turn.text} ")

    def may_end(self, *prompts):
        for text in prompts:
            self.end.setdefault(text, asyncio.Event()).set()


@pytest.mark.requirement("prompt.cancel.answers-cancelled")
async def test_prompts_wait_for_each_other(serve):
    stage = Stage("queue")
    async with serve(stage.agent) as editor:
        session = await editor.open()
        prompts = [asyncio.create_task(editor.prompt(session, text)) for text in ("one", "two", "three")]
        await editor.heard(v1.AgentMessageChunk)
        stage.may_end("three", "two", "one")
        assert [answer.stop_reason for answer in await asyncio.gather(*prompts)] == ["end_turn"] * 3
        assert editor.text == "one /one two /two three /three "


async def test_a_cancel_is_for_all_prompts_that_came_before_it(serve):
    stage = Stage("queue")
    async with serve(stage.agent) as editor:
        session = await editor.open()
        prompts = [asyncio.create_task(editor.prompt(session, text)) for text in ("one", "two")]
        await editor.heard(v1.AgentMessageChunk)
        await editor.cancel(session)
        assert [answer.stop_reason for answer in await asyncio.gather(*prompts)] == ["cancelled"] * 2
        assert editor.text == "one /one "
        stage.may_end("three")
        assert (await editor.prompt(session, "three")).stop_reason == "end_turn"


async def test_a_waiting_prompt_whose_request_is_cancelled_gives_up_its_place(scripted):
    stage = Stage("queue")
    async with scripted(stage.agent) as client:
        session = await opened(client)
        first, second = prompted(client, session, "one"), prompted(client, session, "two")
        await client.expect("session/update")
        client.tell("$/cancel_request", {"requestId": second})
        assert await client.expect_result(second) == {"stopReason": "cancelled"}
        stage.may_end("one")
        await client.expect("session/update")
        assert await client.expect_result(first) == {"stopReason": "end_turn"}


async def test_a_second_prompt_can_be_refused(serve):
    stage = Stage("reject")
    async with serve(stage.agent) as editor:
        session = await editor.open()
        first = asyncio.create_task(editor.prompt(session, "one"))
        await editor.heard(v1.AgentMessageChunk)
        with pytest.raises(PeerError) as raised:
            await editor.prompt(session, "two")
        assert raised.value.code == -32600
        stage.may_end("one")
        assert (await first).stop_reason == "end_turn"


async def test_a_second_prompt_can_take_the_first_one_s_place(serve):
    stage = Stage("cancel_first")
    async with serve(stage.agent) as editor:
        session = await editor.open()
        first = asyncio.create_task(editor.prompt(session, "one"))
        await editor.heard(v1.AgentMessageChunk)
        stage.may_end("two")
        assert (await editor.prompt(session, "two")).stop_reason == "end_turn"
        assert (await first).stop_reason == "cancelled"
        assert editor.text == "one /one two /two "


async def test_sessions_do_not_wait_for_each_other(serve):
    stage = Stage("queue")
    async with serve(stage.agent) as editor:
        one, two = await editor.open(), await editor.open()
        first = asyncio.create_task(editor.prompt(one, "one"))
        await editor.heard(v1.AgentMessageChunk)
        stage.may_end("two")
        assert (await editor.prompt(two, "two")).stop_reason == "end_turn"
        await editor.cancel(two)
        stage.may_end("one")
        assert (await first).stop_reason == "end_turn"


# Terminals


class Terminals:
    """A client that lends terminals, and what became of them."""

    def __init__(self):
        self.handlers = Handlers()
        self.open, self.story = set(), []
        self.may_create, self.creating = asyncio.Event(), asyncio.Event()
        self.exited, self.released = asyncio.Event(), asyncio.Event()
        self.may_create.set()
        self.handlers.on(v1.CreateTerminalRequest)(self.create)
        self.handlers.on(v1.ReleaseTerminalRequest)(self.release)
        self.handlers.on(v1.WaitForTerminalExitRequest)(self.wait)
        self.handlers.on(v1.KillTerminalRequest)(self.kill)
        self.handlers.on(v1.TerminalOutputRequest)(self.output)
        self.declare = v1.ClientCapabilities(terminal=True)

    async def create(self, _):
        self.creating.set()
        # It does not give up when it is asked to: by then the command runs.
        task = asyncio.ensure_future(self.may_create.wait())
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                continue
        terminal = v1.TerminalId(f"t{len(self.story)}")
        self.open.add(terminal)
        self.story.append("create")
        return v1.CreateTerminalResponse(terminal)

    def release(self, request):
        self.open.remove(request.terminal_id)
        self.story.append("release")
        self.released.set()

    async def wait(self, _):
        await self.exited.wait()
        return v1.WaitForTerminalExitResponse(exit_code=0)

    def kill(self, _):
        self.story.append("kill")

    def output(self, _):
        self.story.append("output")
        status = v1.TerminalExitStatus(exit_code=0) if self.exited.is_set() else None
        return v1.TerminalOutputResponse("all green\n", truncated=False, exit_status=status)


@pytest.mark.requirement("terminal.released")
async def test_a_cancelled_turn_releases_its_terminal(serve):
    terminals = Terminals()

    async def work(turn):
        async with turn.client.terminal("make") as terminal:
            await turn.say(terminal.id)
            await terminal.wait()

    async with serve(agent_with(work), terminals.handlers, declare=terminals.declare) as editor:
        assert (await cancelled_prompt(editor)).stop_reason == "cancelled"
        assert terminals.story == ["create", "release"]


@pytest.mark.requirement("terminal.released")
async def test_a_terminal_that_is_still_being_created_is_released_as_well(serve):
    terminals = Terminals()
    terminals.may_create.clear()

    async def work(turn):
        async with turn.client.terminal("make"):
            pytest.fail("it was cancelled before")

    async with serve(agent_with(work), terminals.handlers, declare=terminals.declare) as editor:
        session = await editor.open()
        asking = asyncio.create_task(editor.prompt(session, "go"))
        await terminals.creating.wait()
        await editor.cancel(session)
        assert (await asking).stop_reason == "cancelled"
        terminals.may_create.set()
        await asyncio.wait_for(terminals.released.wait(), 30)
        assert not terminals.open


async def test_a_client_that_never_answers_a_release_does_not_hold_the_turn(serve, monkeypatch):
    monkeypatch.setattr(remote_client, "PATIENCE", 0.01)
    terminals = Terminals()

    @terminals.handlers.on(v1.ReleaseTerminalRequest)
    async def never(request):
        await asyncio.Event().wait()

    async def work(turn):
        async with turn.client.terminal("make"):
            pass

    async with serve(agent_with(work), terminals.handlers, declare=terminals.declare) as editor:
        assert (await editor.prompt(await editor.open(), "go")).stop_reason == "end_turn"


@pytest.mark.requirement("session.close.frees")
async def test_closing_a_session_cancels_its_turn_and_frees_what_it_holds(serve, caplog):
    caplog.set_level(logging.CRITICAL, "accord")
    freed = []
    agent = Agent("holds")

    @agent.on_session
    def opened(session):
        session.resources.callback(freed.append, session.id)

    @agent.on_prompt
    async def work(turn):
        await turn.say("working")
        await asyncio.Event().wait()

    async with serve(agent) as editor:
        session = await editor.open()
        asking = asyncio.create_task(editor.prompt(session, "go"))
        await editor.heard(v1.AgentMessageChunk)
        await editor.request(v1.CloseSessionRequest(session))
        assert (await asking).stop_reason == "cancelled"
        assert freed == [session]
        with pytest.raises(PeerError) as raised:
            await editor.prompt(session, "go")
        assert (raised.value.code, raised.value.data) == (-32002, {"sessionId": session})
        other = await editor.open()
    assert freed == [session, other], "the end of the link frees as well"


async def test_the_end_of_the_link_ends_its_turns(serve):
    ended = asyncio.Event()

    async def work(turn):
        await turn.say("working")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serve(agent_with(work)) as editor:
        asking = asyncio.create_task(editor.prompt(await editor.open(), "go"))
        await editor.heard(v1.AgentMessageChunk)
        asking.cancel()
        await asyncio.wait([asking])
    await asyncio.wait_for(ended.wait(), 30)
