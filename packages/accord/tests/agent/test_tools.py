"""Tools: how a tool call is told from its announcement to its end."""

import asyncio

import pytest

from accord import Agent, Handlers, PeerError, v1
from accord.schema import codec
from tests.agent.both_kinds import ONLY_ASYNC, author_kind, of_kind  # noqa: F401 - a fixture


def agent_with(work):
    """An agent whose turns are this function."""
    agent = Agent("works")
    agent.on_prompt(of_kind(work))
    return agent


def statuses(editor):
    """How the tool calls were said to stand, one after the other."""
    updates = [it for it in editor.updates if isinstance(it, v1.ToolCall | v1.ToolCallProgress)]
    return [update.status for update in updates if update.status is not None]


def choosing(kind):
    """A client whose user chooses the option of this kind, and what it was asked."""
    handlers, asked = Handlers(), []

    @handlers.on(v1.RequestPermissionRequest)
    def choose(request):
        asked.append(request)
        return v1.RequestPermissionResponse.selected(next(it for it in request.options if it.kind == kind))

    return handlers, asked


@pytest.mark.requirement("tool.reported", "tool.start-reported", "tool.end-reported")
async def test_a_tool_call_is_pending_then_in_progress_then_completed(serve):
    async def work(turn):
        async with turn.tool("Add", kind="think", raw_input={"a": 1}, locations=["a.txt", ("/b.txt", 3)]) as tool:
            await tool.text("2")
            await tool.text("!")
            await tool.raw_output(2)

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        assert statuses(editor) == ["pending", "in_progress", "completed"]
        call = editor.of(v1.ToolCall)[0]
        assert (call.title, call.kind, call.raw_input) == ("Add", "think", {"a": 1})
        assert call.locations == [v1.ToolCallLocation("/project/a.txt"), v1.ToolCallLocation("/b.txt", 3)]
        progress = editor.of(v1.ToolCallProgress)
        assert [it.content for it in progress if it.content] == [[v1.Content.of("2!")]]
        assert [it.raw_output for it in progress if it.raw_output] == [2]


@ONLY_ASYNC
async def test_what_a_tool_says_of_itself_can_change(serve):
    async def work(turn):
        async with turn.tool("Look", id="from-the-model", name="grep") as tool:
            await tool.start()
            await tool.retitle("Look for x")
            await tool.locations("a.txt", v1.ToolCallLocation("/b.txt", 2))
            await tool.raw_input({"pattern": "x"})
            assert tool.status == "in_progress"
        assert tool.status == "completed"
        assert turn.session.tool_call(tool.id) is None, "it is finished"

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        call = editor.of(v1.ToolCall)[0]
        assert (call.tool_call_id, call.name) == ("from-the-model", "grep")
        changed = [it for it in editor.of(v1.ToolCallProgress) if it.title]
        places = [v1.ToolCallLocation("/project/a.txt"), v1.ToolCallLocation("/b.txt", 2)]
        assert [(it.title, it.locations, it.raw_input) for it in changed] == [("Look for x", places, {"pattern": "x"})]


async def test_what_was_allowed_for_always_can_be_forgotten(serve):
    async def work(turn):
        await turn.ask("Push")
        turn.session.permissions.forget()
        await turn.ask("Push")

    handlers, asked = choosing("allow_always")
    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        assert len(asked) == 2


@ONLY_ASYNC
async def test_a_tool_that_waits_is_in_progress_while_it_does(serve):
    may_end = asyncio.Event()

    async def work(turn):
        async with turn.tool("Wait"):
            await may_end.wait()

    async with serve(agent_with(work)) as editor:
        asking = asyncio.create_task(editor.prompt(await editor.open(), "go"))
        await editor.heard(lambda update: getattr(update, "status", None) == "in_progress")
        may_end.set()
        await asking


async def test_a_block_that_raises_marks_its_tool_failed(serve):
    async def work(turn):
        async with turn.tool("Break") as tool:
            await tool.text("so far")
            raise OSError("it broke")

    async with serve(agent_with(work)) as editor:
        with pytest.raises(PeerError):
            await editor.prompt(await editor.open(), "go")
        assert statuses(editor)[-1] == "failed"
        assert editor.of(v1.ToolCallProgress)[-1].content == [v1.Content.of("so far")]


async def test_a_tool_can_fail_and_say_why_without_an_exception(serve):
    async def work(turn):
        async with turn.tool("Search") as tool:
            await tool.fail("nothing found")
        await turn.say("Sorry.")

    async with serve(agent_with(work)) as editor:
        assert (await editor.prompt(await editor.open(), "go")).stop_reason == "end_turn"
        assert statuses(editor)[-1] == "failed"
        assert editor.of(v1.ToolCallProgress)[-1].content == [v1.Content.of("nothing found")]


@ONLY_ASYNC
@pytest.mark.requirement("tool.waits-for-permission")
async def test_a_tool_that_asks_is_pending_until_the_user_allows_it(serve):
    decisions = []

    async def work(turn):
        async with turn.tool("Edit", kind="edit") as tool:
            await tool.diff("a.txt", "old", "new")
            decisions.append(await tool.ask())
            await turn.say("done" if decisions[-1].allowed else "not done")

    handlers, asked = choosing("allow_once")
    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        assert statuses(editor) == ["pending", "in_progress", "completed"]
        assert asked[0].tool_call.title == "Edit"
        assert asked[0].tool_call.content == [v1.Diff("/project/a.txt", "new", "old")]
        assert [option.kind for option in asked[0].options] == ["allow_once", "allow_always", "reject_once"]
        assert (decisions[0].allowed, decisions[0].remembered, decisions[0].option.kind) == (True, False, "allow_once")


@ONLY_ASYNC
async def test_a_refusal_marks_the_tool_failed_and_the_turn_goes_on(serve):
    async def work(turn):
        async with turn.tool("Edit") as tool:
            if not (await tool.ask()).allowed:
                await turn.say("As you wish.")

    handlers, _ = choosing("reject_once")
    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        assert statuses(editor) == ["pending", "failed"]
        assert editor.text == "As you wish."


@pytest.mark.parametrize(
    ("remember", "questions"), [("session", 2), ("agent", 1)], ids=["in the session", "in all sessions"]
)
async def test_always_is_remembered(serve, remember, questions):
    agent = Agent("asks", remember=remember)

    @agent.on_prompt
    async def work(turn):
        decision = await turn.ask("Push", kind="execute")
        await turn.say(f"{decision.allowed} {decision.remembered} ")

    handlers, asked = choosing("allow_always")
    async with serve(agent, handlers) as editor:
        for session in await editor.open(), await editor.open():
            await editor.prompt(session, "go")
            await editor.prompt(session, "go")
        assert len(asked) == questions
        assert editor.text.count("True True") == 4 - questions


async def test_always_holds_for_what_was_asked_about_and_nothing_else(serve):
    async def work(turn):
        await turn.ask("Edit a", kind="edit", about="editing")
        await turn.ask("Edit b", kind="edit", about="editing")
        await turn.ask("Edit b", kind="delete", about="editing")

    handlers, asked = choosing("allow_always")
    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        assert [(it.tool_call.title, it.tool_call.kind) for it in asked] == [("Edit a", "edit"), ("Edit b", "delete")]


@pytest.mark.parametrize(
    "outcome",
    [{"outcome": "cancelled"}, {"outcome": "selected", "optionId": "never offered"}, {"outcome": "postponed"}],
    ids=["cancelled", "an option never offered", "an unknown outcome"],
)
async def test_whatever_is_no_permission_is_a_refusal(serve, outcome):
    async def work(turn):
        await turn.say(str((await turn.ask("Push")).allowed))

    handlers = Handlers()
    handlers.on_request("session/request_permission")(lambda _: {"outcome": outcome})
    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.text == "False"


@pytest.mark.requirement("permission.ids-unique")
async def test_two_options_with_one_id_are_an_error_of_the_author(serve, caplog):
    async def work(turn):
        await turn.ask("Push", "allow_once", "allow_once")

    async with serve(agent_with(work)) as editor:
        with pytest.raises(PeerError):
            await editor.prompt(await editor.open(), "go")
    assert "options must differ" in caplog.text


@ONLY_ASYNC
async def test_streaming_into_a_tool_costs_bytes_in_proportion_to_its_output(serve):
    pieces = 2_000

    async def work(turn):
        async with turn.tool("Print") as tool:
            for number in range(pieces):
                await tool.text(f"{number:099}\n")
                await asyncio.sleep(0)
                tool._sent_at = 0  # as if time had passed: what bounds the bytes is not the clock

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        progress = editor.of(v1.ToolCallProgress)
        sent = sum(len(codec.encode(update)) for update in progress)
        assert sent < 6 * 100 * pieces
        assert len(progress) > 10, "it was shown while it grew"
        shown = "".join(f"{number:099}\n" for number in range(pieces))
        assert [it.content for it in progress if it.content][-1] == [v1.Content.of(shown)]


@ONLY_ASYNC
async def test_what_a_tool_takes_back_is_gone_at_once(serve):
    cleared = asyncio.Event()

    async def work(turn):
        async with turn.tool("Print") as tool:
            await tool.text("x" * 100_000)
            await tool._flush()
            await tool.clear()
            await tool.text("instead")
            await cleared.wait()

    async with serve(agent_with(work)) as editor:
        asking = asyncio.create_task(editor.prompt(await editor.open(), "go"))
        await editor.heard(lambda update: getattr(update, "content", None) == [v1.Content.of("instead")])
        cleared.set()
        await asking


async def test_text_around_other_content_keeps_its_place(serve):
    async def work(turn):
        async with turn.tool("Mix") as tool:
            await tool.text("a")
            await tool.text("b")
            await tool.content(v1.ImageContent("aGk=", "image/png"), "c")
            await tool.text("d")

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        image = v1.Content(v1.ImageContent("aGk=", "image/png"))
        content = [it.content for it in editor.of(v1.ToolCallProgress) if it.content][-1]
        assert content == [v1.Content.of("ab"), image, v1.Content.of("c"), v1.Content.of("d")]


@pytest.mark.requirement("tool.id-unique", "message.id.changes", "message.id.shared")
async def test_ids_are_made_and_a_tool_call_divides_messages(serve):
    async def work(turn):
        await turn.think("hm")
        await turn.say("a")
        await turn.say("b")
        async with turn.tool("One"):
            pass
        await turn.say("c")
        async with turn.tool("Two"):
            pass

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        a, b, c = (chunk.message_id for chunk in editor.of(v1.AgentMessageChunk))
        thought = editor.of(v1.AgentThoughtChunk)[0].message_id
        assert a == b
        assert len({thought, a, c}) == 3
        assert len({call.tool_call_id for call in editor.of(v1.ToolCall)}) == 2


@pytest.mark.requirement("paths.agent-sends-absolute")
async def test_every_path_that_a_tool_call_names_is_absolute(serve):
    async def work(turn):
        async with turn.tool("Edit", locations=["a.txt", v1.ToolCallLocation("b.txt", 1)]) as tool:
            await tool.diff("a.txt", None, "new")
            await tool.content(v1.Diff("sub/b.txt", "new", "old"))
            await tool.ask()
        own = v1.ToolCall(v1.ToolCallId("own"), "Mine", content=[v1.Diff("c.txt", "c")])
        await turn.send(own)
        await turn.send(v1.ToolCallProgress(own.tool_call_id, locations=[v1.ToolCallLocation("/etc/d.txt")]))

    handlers, asked = choosing("allow_once")
    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
    calls = [*editor.of(v1.ToolCall), *editor.of(v1.ToolCallProgress), *(request.tool_call for request in asked)]
    named = {it.path for call in calls for it in (*(call.locations or ()), *(call.content or ()))}
    assert named == {"/project/a.txt", "/project/b.txt", "/project/sub/b.txt", "/project/c.txt", "/etc/d.txt"}


@pytest.mark.requirement("lines.agent-counts-from-one")
async def test_lines_begin_with_one(serve, caplog):
    agent = Agent("counts")

    @agent.on_prompt
    async def work(turn):
        if turn.text == "read":
            await turn.client.read_text_file("a.txt", line=0)
        place = ("a.txt", 0) if turn.text == "pair" else v1.ToolCallLocation("/a.txt", int(turn.text))
        async with turn.tool("Look", locations=[place]):
            pass

    async with serve(agent, declare=v1.ClientCapabilities(v1.FileSystemCapabilities(read_text_file=True))) as editor:
        session = await editor.open()
        for wrong in ("read", "pair", "0"):
            with pytest.raises(PeerError):
                await editor.prompt(session, wrong)
        assert caplog.text.count("line must be at least 1") >= 3
        assert editor.updates == []
        await editor.prompt(session, "1")
        assert editor.of(v1.ToolCall)[0].locations == [v1.ToolCallLocation("/a.txt", 1)]


@pytest.mark.requirement("tool.diff.new-file")
async def test_a_file_that_was_empty_has_an_old_text_and_a_new_one_has_none(scripted):
    async def work(turn):
        async with turn.tool("Edit") as tool:
            await tool.diff("empty.txt", "", "text")
            await tool.diff("new.txt", None, "text")
            await tool.diff("gone.txt", "text", None)

    async with scripted(agent_with(work)) as client:
        session = (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]
        client.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
        diffs = {}
        while "result" not in (message := await client.receive()):
            diffs |= {diff["path"]: diff for diff in message["params"]["update"].get("content") or ()}
        assert diffs["/project/empty.txt"]["oldText"] == ""
        assert diffs["/project/new.txt"].get("oldText") is None
        assert "deleted" not in diffs["/project/empty.txt"]
        gone = {"type": "diff", "path": "/project/gone.txt", "newText": "", "oldText": "text", "deleted": True}
        assert diffs["/project/gone.txt"] == gone
