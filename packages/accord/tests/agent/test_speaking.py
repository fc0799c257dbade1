"""What a turn tells beside text and tools, and what goes along with a prompt and its answer."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from accord import Agent, CapabilityMissing, Handlers, PeerError, memory_pair, v1
from accord.testing import ScriptedPeer
from tests.agent.both_kinds import ONLY_ASYNC, author_kind, of_kind  # noqa: F401 - a fixture
from tests.waiting import DEADLINE

CALLS_FOR_EACH_PIECE = 7


def agent_with(work, **options):
    agent = Agent("speaks", **options)
    agent.on_prompt(of_kind(work))
    return agent


async def prompted(serve, work, *, declare=None, **options):
    """What a client has heard when this has worked on a prompt."""
    async with serve(agent_with(work, **options), declare=declare) as editor:
        answer = await editor.prompt(await editor.open(), "go")
        return editor, answer


IMAGE = v1.ImageContent.from_bytes(b"\x89PNG", "image/png")
SOUND = v1.AudioContent.from_bytes(b"RIFF", "audio/wav")
FILE = v1.EmbeddedResource.from_text("text", "file:///a.txt")


@pytest.mark.requirement("prompt.output-as-updates", "content.agent-binary-base64")
async def test_any_content_can_be_said_thought_and_said_as_the_user(serve):
    async def work(turn):
        for content in "text", IMAGE, SOUND, FILE:
            await turn.say(content)
        await turn.think(IMAGE)
        await turn.say_as_user("me")

    editor, _ = await prompted(serve, work)
    text = v1.TextContent("text")
    assert [chunk.content for chunk in editor.of(v1.AgentMessageChunk)] == [text, IMAGE, SOUND, FILE]
    assert [chunk.content for chunk in editor.of(v1.AgentThoughtChunk)] == [IMAGE]
    assert [chunk.content.text for chunk in editor.of(v1.UserMessageChunk)] == ["me"]


@pytest.mark.requirement("message.id.changes", "message.id.sent")
async def test_a_message_can_be_ended_by_hand(serve):
    async def work(turn):
        await turn.say("one")
        turn.end_message()
        await turn.say("two")

    editor, _ = await prompted(serve, work)
    one, two = (chunk.message_id for chunk in editor.of(v1.AgentMessageChunk))
    assert one != two


@pytest.mark.requirement("plan.reported", "plan.progress-reported", "plan.sent-whole", "plan.operations.falls-back")
async def test_a_plan_is_told_whole_each_time(serve):
    async def work(turn):
        plan = await turn.plan("Read", v1.PlanEntry.of("Write", priority="high"))
        async with plan.step("Read"):
            pass
        await plan.start(1)
        await plan.done(1)
        await plan.add("Test")

    editor, _ = await prompted(serve, work)
    told = [[(entry.content, entry.status) for entry in plan.entries] for plan in editor.of(v1.Plan)]
    assert told == [
        [("Read", "pending"), ("Write", "pending")],
        [("Read", "in_progress"), ("Write", "pending")],
        [("Read", "completed"), ("Write", "pending")],
        [("Read", "completed"), ("Write", "in_progress")],
        [("Read", "completed"), ("Write", "completed")],
        [("Read", "completed"), ("Write", "completed"), ("Test", "pending")],
    ]


async def test_a_step_that_is_not_in_the_plan_is_an_error_of_the_author(serve, caplog):
    async def work(turn):
        await (await turn.plan("Read")).done("Write")

    with pytest.raises(PeerError):
        await prompted(serve, work)
    assert "step 'Write' is not in the plan" in caplog.text


@pytest.mark.requirement("usage.sizes-always", "usage.cost-complete")
async def test_usage_is_told_with_a_cost_that_has_its_currency(serve):
    async def work(turn):
        await turn.usage(10, 100)
        await turn.usage(20, 100, 0.5)
        await turn.usage(30, 100, v1.Cost(1, "EUR"))

    editor, _ = await prompted(serve, work)
    assert editor.of(v1.UsageUpdate) == [
        v1.UsageUpdate(10, 100),
        v1.UsageUpdate(20, 100, v1.Cost(0.5, "USD")),
        v1.UsageUpdate(30, 100, v1.Cost(1, "EUR")),
    ]


@pytest.mark.requirement("usage.not-without-size")
async def test_usage_is_not_told_while_nobody_knows_the_size_of_the_context(serve):
    told = []

    async def work(turn):
        told.extend([await turn.usage(10, None), await turn.usage(10, 0), await turn.usage(10, 100)])

    editor, _ = await prompted(serve, work)
    assert told == [False, False, True]
    assert editor.updates == [v1.UsageUpdate(10, 100)]


@pytest.mark.requirement("plan.operations.only-when-advertised")
async def test_plans_with_an_id_are_for_clients_that_declared_them(serve):
    markdown = v1.PlanUpdate(v1.PlanMarkdown(v1.PlanId("p"), "1. Read"))

    async def work(turn):
        for update in (markdown, v1.PlanRemoved(v1.PlanId("p"))):
            try:
                await turn.send(update)
            except CapabilityMissing as missing:
                await turn.say(missing.capability)

    editor, _ = await prompted(serve, work)
    assert editor.text == "planplan"
    assert len(editor.updates) == 2
    editor, _ = await prompted(serve, work, declare=v1.ClientCapabilities(plan=v1.PlanCapabilities()))
    assert editor.updates == [markdown, v1.PlanRemoved(v1.PlanId("p"))]


@ONLY_ASYNC
@pytest.mark.requirement("capabilities.agent-takes-none")
async def test_a_client_that_declares_nothing_at_all_is_served(scripted):
    async def work(turn):
        await turn.plan("Look")
        async with turn.tool("Look") as tool:
            await tool.text("there is nothing")
        await turn.say(str(turn.client.can_read_files))

    async with scripted(agent_with(work), initialize=False) as client:
        await client.request("initialize", {"protocolVersion": 1})
        session = (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]
        client.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
        said = []
        while "result" not in (message := await client.receive()):
            said.append(message["params"]["update"]["sessionUpdate"])
        assert message["result"] == {"stopReason": "end_turn"}
        assert said == ["plan", "tool_call", "tool_call_update", "tool_call_update", "agent_message_chunk"]


NOTICES = v1.ClientCapabilities(session=v1.ClientSessionCapabilities(notices=v1.NoticeCapabilities()))


@pytest.mark.parametrize("declare", [None, NOTICES], ids=["not declared", "declared"])
async def test_a_notice_is_for_clients_that_show_notices(serve, declare):
    shown = []

    async def work(turn):
        shown.append(await turn.notice("Slow", "The model is busy", severity="warning"))

    editor, _ = await prompted(serve, work, declare=declare)
    assert shown == [declare is not None]
    assert editor.of(v1.Notice) == [v1.Notice("warning", "Slow", "The model is busy")] * len(editor.updates)


@pytest.mark.requirement("usage.turn.totals-complete")
@pytest.mark.parametrize("unstable", [True, False], ids=["proposals too", "stable only"])
async def test_an_answer_tells_its_tokens_where_proposals_are_let_out(serve, unstable):
    async def work(turn):
        turn.tokens(30, 12, thought=2)

    _, answer = await prompted(serve, work, unstable=unstable)
    assert answer.usage == (v1.Usage(42, 30, 12, 2) if unstable else None)


async def test_meta_travels_with_the_prompt_and_its_answer(serve):
    async def work(turn):
        turn.answer_meta["told"] = turn.meta["asked"]

    async with serve(agent_with(work)) as editor:
        session = await editor.open()
        prompt = v1.PromptRequest(session, [v1.TextContent("go")], meta={"asked": 1})
        assert (await editor.request(prompt)).meta == {"told": 1}


async def test_what_is_asked_in_a_turn_carries_the_prompt_s_trace(serve):
    handlers, asked = Handlers(), []

    @handlers.on(v1.RequestPermissionRequest)
    def allow(request):
        asked.append(request.meta)
        return v1.RequestPermissionResponse.selected(request.options[0])

    async def work(turn):
        await turn.ask("Push")

    async with serve(agent_with(work), handlers) as editor:
        trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
        await editor.request(v1.PromptRequest(await editor.open(), [v1.TextContent("go")], meta=trace))
        assert asked == [trace]


async def test_the_session_of_a_turn_knows_its_folders_and_its_client(serve):
    seen = []

    async def work(turn):
        seen.append((turn.cwd, turn.session.cwd, turn.session.roots, turn.session.agent, turn.session.meta))

    async with serve(agent_with(work)) as editor:
        opened = v1.NewSessionRequest("/project", [], ["/lib"], meta={"asked": 1})
        session = (await editor.request(opened)).session_id
        await editor.prompt(session, "go")
        cwd, same, roots, agent, meta = seen[0]
        assert (str(cwd), cwd, agent, meta) == ("/project", same, "speaks", {"asked": 1})
        assert roots.folders[0] == Path("/project")
        assert "/lib/a.txt" in roots
        assert "/etc/passwd" not in roots


@pytest.mark.requirement("session.info.fixed-fields-absent")
async def test_what_a_session_says_before_the_client_knows_it_comes_behind_the_answer(scripted):
    agent = Agent("early")
    agent.on_prompt(lambda _: None)

    @agent.on_session
    async def opened(session):
        await session.set_title("A title")

    async with scripted(agent) as client:
        opening = client.call("session/new", {"cwd": "/project", "mcpServers": []})
        session = (await client.expect_result(opening))["sessionId"]
        told = (await client.expect("session/update"))["params"]
        assert told == {"sessionId": session, "update": {"sessionUpdate": "session_info_update", "title": "A title"}}


async def test_a_session_can_speak_between_turns(serve):
    sessions = []
    agent = agent_with(lambda _: None)

    @agent.on_session
    async def opened(session):
        sessions.append(session)

    async with serve(agent) as editor:
        await editor.open()
        await sessions[0].send(v1.AgentMessageChunk.of("By the way"))
        await editor.heard(v1.AgentMessageChunk)
        await sessions[0].set_title("Talk")
        await editor.heard(v1.SessionInfoUpdate)
        assert sessions[0].title == "Talk"


async def test_a_session_that_its_author_refuses_is_not_there(serve):
    agent = agent_with(lambda _: None)

    @agent.on_session
    def opened(session):
        raise LookupError("no such project")

    async with serve(agent) as editor:
        with pytest.raises(PeerError) as raised:
            await editor.open()
        assert raised.value.code == -32603


@pytest.mark.requirement("prompt.context-kept")
async def test_what_the_history_holds_is_what_was_said(serve):
    histories = []

    async def work(turn):
        await turn.say(f"You said {turn.text}")
        async with turn.tool("Look"):
            pass
        histories.append(await turn.session.history())

    async with serve(agent_with(work)) as editor:
        session = await editor.open()
        await editor.prompt(session, "one")
        await editor.prompt(session, "two")
        said = [(message.speaker, message.text) for message in histories[-1].messages]
        assert said == [("user", "one"), ("agent", "You said one"), ("user", "two"), ("agent", "You said two")]
        assert [call.status for call in histories[-1].tool_calls.values()] == ["completed", "completed"]


async def test_an_agent_that_answers_no_prompts_is_not_served():
    with pytest.raises(TypeError, match="on_prompt"):
        await Agent("mute").serve(None)


@pytest.mark.parametrize("prompt_while_working", ["que", ""])
def test_a_word_that_means_nothing_is_refused(prompt_while_working):
    with pytest.raises(ValueError, match="queue, reject, cancel_first"):
        Agent("typo", prompt_while_working=prompt_while_working)


@ONLY_ASYNC
async def test_saying_something_makes_few_calls(serve):
    """Counted, not timed: what each piece of a stream costs."""
    calls = Counter()

    def count(frame, event, _):
        if event == "call" and "/accord/" in frame.f_code.co_filename:
            calls[frame.f_code.co_qualname] += 1

    async def work(turn):
        await turn.say("x")
        sys.setprofile(count)
        try:
            for _ in range(100):
                await turn.say("x")
        finally:
            sys.setprofile(None)

    await prompted(serve, work)
    assert calls.total() <= 100 * CALLS_FOR_EACH_PIECE, calls


async def test_a_prompt_may_come_in_the_same_instant_as_the_answer_that_opens_its_session():
    """The update is not kept for later, when the prompt is answered already."""

    async def work(turn):
        await turn.say("here")

    here, there = memory_pair()
    loop, send, receivers = asyncio.get_running_loop(), there.send, []

    def start(receiver, started=there.start):
        receivers.append(receiver)
        return started(receiver)

    def answered_by_a_client_that_is_quicker_than_we_are(frames):
        send(frames)
        for frame in frames:
            if b'"result":{"sessionId"' in frame:
                session = json.loads(frame)["result"]["sessionId"]
                params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
                prompt = {"jsonrpc": "2.0", "id": "prompt", "method": "session/prompt", "params": params}
                loop.call_soon(receivers[0].received, [json.dumps(prompt).encode()])

    there.start, there.send = start, answered_by_a_client_that_is_quicker_than_we_are
    serving = asyncio.create_task(agent_with(work).serve(there))
    async with ScriptedPeer(here, deadline=DEADLINE) as client:
        await client.request("initialize", {"protocolVersion": 1})
        await client.request("session/new", {"cwd": "/project", "mcpServers": []})
        assert (await client.expect("session/update"))["params"]["update"]["content"]["text"] == "here"
        assert await client.expect_result("prompt") == {"stopReason": "end_turn"}
    await asyncio.wait_for(serving, DEADLINE)
