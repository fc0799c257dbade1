"""Tool calls, plans and other updates in version 2: each becomes what that version has for it, and no more is sent."""

from __future__ import annotations

import asyncio

import pytest

from accord import Agent, CapabilityMissing, connect, updates, v1, v2
from accord.errors import ConversionError


def of(function):
    agent = Agent("worker", unstable=True)
    agent.on_prompt(function)
    return agent


async def updates_of(client, session_id=None):
    """Send a prompt; all updates of its turn."""
    await client.inserted(client.prompt(session_id or await client.new()))
    return (await client.until("state_update", state="idle"))[:-1]


def texts(update):
    """The texts of a tool call's content."""
    return [item["content"]["text"] for item in update["content"]]


async def test_a_tool_call_lives_from_pending_to_completed(speak):
    async def work(turn):
        async with turn.tool(
            "Edit a.py", kind="edit", name="edit", locations=["a.py"], raw_input={"path": "a.py"}
        ) as tool:
            await tool.diff("a.py", "old\n", "new\n")

    async with speak(of(work)) as client:
        first, *rest = await updates_of(client)
        assert {name: first[name] for name in ("title", "kind", "status", "name", "rawInput", "locations")} == {
            "title": "Edit a.py",
            "kind": "edit",
            "status": "pending",
            "name": "edit",
            "rawInput": {"path": "a.py"},
            "locations": [{"path": "/project/a.py"}],
        }
        assert {it["sessionUpdate"] for it in (first, *rest)} <= {"tool_call_update", "tool_call_content_chunk"}
        [diff] = [item for it in rest for item in it.get("content", [])]
        assert diff["changes"] == [{"operation": "modify", "path": "/project/a.py", "fileType": "text"}]
        assert diff["patch"]["text"].endswith("-old\n+new\n")
        assert rest[-1]["status"] == "completed"


async def test_added_content_is_sent_alone(speak):
    async def work(turn):
        async with turn.tool("Read", kind="read") as tool:
            for text in ("one", "two", "three"):
                await tool.content(text)
                await tool.start()

    async with speak(of(work)) as client:
        seen = await updates_of(client)
        [first] = [it for it in seen if isinstance(it.get("content"), list)]
        assert texts(first) == ["one"]
        chunks = [it for it in seen if it["sessionUpdate"] == "tool_call_content_chunk"]
        assert [it["content"]["content"]["text"] for it in chunks] == ["two", "three"]


async def test_text_that_grows_stays_one_item(speak):
    async def work(turn):
        async with turn.tool("Run", kind="execute") as tool:
            await tool.text("one ")
            await tool.start()
            await tool.text("two")

    async with speak(of(work)) as client:
        seen = await updates_of(client)
        assert [texts(it) for it in seen if "content" in it] == [["one "], ["one two"]]


async def test_content_that_is_taken_back_is_cleared(speak):
    async def work(turn):
        async with turn.tool("Think", kind="think") as tool:
            await tool.text("wrong")
            await tool.start()
            await tool.clear()

    async with speak(of(work)) as client:
        seen = await updates_of(client)
        assert [it["content"] for it in seen if "content" in it][-1] == []


async def test_content_that_the_client_knows_from_a_question_is_not_sent_twice(speak):
    async def work(turn):
        async with turn.tool("Run", kind="execute") as tool:
            await tool.content("first")
            await tool.ask()
            await tool.content("second")

    async with speak(of(work)) as client:
        await client.inserted(client.prompt(await client.new()))
        seen = [await client.update()]
        while (message := await client.receive()).get("method") == "session/update":
            seen.append(message["params"]["update"])
        client.answer(message, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        seen += await client.until("state_update", state="idle")
        chunks = [it["content"]["content"]["text"] for it in seen if it["sessionUpdate"] == "tool_call_content_chunk"]
        whole = [texts(it) for it in seen if isinstance(it.get("content"), list)]
        assert (whole, chunks) == ([["first"]], ["second"])


async def test_a_tool_call_that_fails_says_so(speak):
    async def work(turn):
        async with turn.tool("Try") as tool:
            await tool.fail("no luck")

    async with speak(of(work)) as client:
        assert [it["status"] for it in await updates_of(client) if "status" in it][-1] == "failed"


async def test_a_plan_has_an_id(speak):
    async def work(turn):
        plan = await turn.plan("Read", "Write")
        async with plan.step("Read"):
            pass

    async with speak(of(work)) as client:
        seen = await updates_of(client)
        assert {(it["sessionUpdate"], it["plan"]["type"], it["plan"]["planId"]) for it in seen} == {
            ("plan_update", "items", "main")
        }
        assert [[entry["status"] for entry in it["plan"]["entries"]] for it in seen] == [
            ["pending", "pending"],
            ["in_progress", "pending"],
            ["completed", "pending"],
        ]


async def test_usage_notices_and_titles_are_as_in_version_1(speak):
    async def work(turn):
        assert await turn.notice("Careful")
        await turn.usage(8, 200_000)
        await turn.session.set_title("Greeting")

    async with speak(of(work)) as client:
        notice, usage, info = await updates_of(client)
        assert (notice["sessionUpdate"], notice["title"]) == ("notice", "Careful")
        assert usage == {"sessionUpdate": "usage_update", "used": 8, "size": 200_000}
        assert info == {"sessionUpdate": "session_info_update", "title": "Greeting"}


async def test_a_change_of_the_mode_is_told_once_as_an_option(speak):
    agent = Agent("moody")

    @agent.on_session
    async def offer(session):
        await session.modes.offer(["ask", "code"])

    @agent.on_prompt
    async def change(turn):
        await turn.session.modes.set("code")

    async with speak(agent) as client:
        [told] = await updates_of(client)
        assert told["sessionUpdate"] == "config_option_update"
        assert [it["currentValue"] for it in told["configOptions"]] == ["code"]


async def test_updates_of_either_version_may_be_sent_by_hand(speak):
    async def work(turn):
        await turn.send(v2.AgentMessage.of(v2.MessageId("m"), "whole"))
        await turn.send(v1.Plan.of("Read"))
        await turn.send(v1.AgentMessageChunk.of("a"))
        await turn.send(v1.AgentMessageChunk.of("b"))
        await turn.send(v1.AgentThoughtChunk.of("c"))

    async with speak(of(work)) as client:
        whole, plan, *chunks = await updates_of(client)
        assert (whole["sessionUpdate"], plan["sessionUpdate"]) == ("agent_message", "plan_update")
        assert [it["content"]["text"] for it in chunks] == ["a", "b", "c"]
        a, b, c = (it["messageId"] for it in chunks)
        assert a == b != c


async def test_content_of_every_kind_can_be_said(speak):
    async def work(turn):
        await turn.say(v1.ImageContent("aGk=", "image/png"))
        await turn.say(v1.TextContent("note", v1.Annotations(audience=["user"])))
        await turn.say_as_user("as you")

    async with speak(of(work)) as client:
        image, text, user = await updates_of(client)
        assert image["content"] == {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        assert text["content"]["annotations"] == {"audience": ["user"]}
        assert user["sessionUpdate"] == "user_message_chunk"


async def test_files_and_terminals_of_the_client_are_missing(speak):
    missing = []

    async def work(turn):
        client = turn.client
        assert (client.can_read_files, client.can_write_files, client.can_run_commands) == (False, False, False)
        for attempt in (
            client.read_text_file("a"),
            client.write_text_file("a", "b"),
            client.run("true"),
            client.request(v1.KillTerminalRequest(turn.session.id, v1.TerminalId("t"))),
        ):
            with pytest.raises(CapabilityMissing):
                await attempt
            missing.append(attempt)

    async with speak(of(work)) as client:
        assert await updates_of(client) == []
    assert len(missing) == 4


async def test_services_of_the_agent_s_machine_stand_in(speak, tmp_path):
    agent = Agent("local", local=True)
    (tmp_path / "a.txt").write_text("here\n")

    @agent.on_prompt
    async def read(turn):
        await turn.say(await turn.client.read_text_file("a.txt"))

    async with speak(agent) as client:
        [said] = await updates_of(client, await client.new(cwd=str(tmp_path)))
        assert said["content"]["text"] == "here\n"


# What can be cancelled by itself, and what runs beside turns


async def test_a_cancellable_tool_call_is_offered_cancelled_alone_and_withdrawn(speak):
    async def work(turn):
        async with turn.tool("Wait", cancellable=True) as tool:
            await asyncio.Event().wait()
        await turn.say(f"cancelled: {tool.is_cancelled}")

    async with speak(of(work)) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        offered = (await client.until("tool_call_update", capabilities={"cancel": {}}))[-1]
        await client.until("tool_call_update", status="in_progress")
        params = {"sessionId": session_id, "toolCallId": offered["toolCallId"]}
        assert await client.request("tool_call/cancel", params) == {}
        assert (await client.update("tool_call_update"))["status"] == "cancelled"
        assert (await client.update("tool_call_update"))["capabilities"] is None
        assert await client.said() == "cancelled: True"
        await client.state("idle", stopReason="end_turn")
        await client.expect_error(client.call("tool_call/cancel", params), -32602)


@pytest.mark.parametrize(("method", "name"), [("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")])
async def test_what_cannot_be_cancelled_is_refused(speak, method, name):
    async with speak(of(lambda _: None)) as client:
        session_id = await client.new()
        await client.expect_error(client.call(method, {"sessionId": session_id, name: "x"}), -32602)


async def test_background_work_is_listed_in_every_state_and_outlives_a_cancel(speak):
    begun, done = asyncio.Event(), asyncio.Event()

    async def watch(turn):
        async with turn.tool("Watch", background=True):
            begun.set()
            await done.wait()

    async def work(turn):
        if turn.text == "watch":
            turn.session.start(watch(turn))
            await begun.wait()
        else:
            await asyncio.Event().wait()

    async with speak(of(work)) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id, "watch"), "watch")
        tool_call_id = (await client.update("tool_call_update"))["toolCallId"]
        running = [{"type": "tool_call", "toolCallId": tool_call_id}]
        await client.state("running", background=running)
        seen = [await client.update(), await client.update()]  # both come at once, in either order
        assert {it.get("status") for it in seen} == {"in_progress", None}
        assert {
            "sessionUpdate": "state_update",
            "state": "idle",
            "stopReason": "end_turn",
            "background": running,
        } in seen
        request = client.prompt(session_id, "wait")
        await client.update("user_message")
        await client.expect_result(request)
        await client.state("running", background=running)
        client.cancel(session_id)
        await client.state("idle", stopReason="cancelled", background=running)
        done.set()
        assert (await client.update("tool_call_update"))["status"] == "completed"
        await client.state("idle", background=[])


async def test_a_question_of_background_work_changes_no_state_and_survives_a_cancel(speak):
    begun = asyncio.Event()

    async def watch(turn):
        async with turn.tool("Watch", background=True) as tool:
            begun.set()
            await tool.text("allowed" if await tool.ask() else "refused")

    async def work(turn):
        if turn.text == "watch":
            turn.session.start(watch(turn))
            await begun.wait()
        else:
            await asyncio.Event().wait()

    async with speak(of(work)) as client:
        session_id = await client.new()
        client.prompt(session_id, "watch")
        question, seen = None, []
        while question is None or seen[-1].get("state") != "idle":
            message = await client.receive()
            if message.get("method") == "session/request_permission":
                question = message
            elif "method" in message:
                seen.append(message["params"]["update"])
        assert "requires_action" not in [it.get("state") for it in seen]
        client.prompt(session_id, "wait")
        await client.update("user_message")
        await client.receive()
        running = await client.update("state_update")
        assert running["state"] == "running"
        client.cancel(session_id)
        idle = await client.update("state_update")
        assert (idle["state"], idle["stopReason"]) == ("idle", "cancelled")
        await client.expect_silence()
        client.answer(question, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        seen = await client.until("state_update", background=[])
        assert [texts(it) for it in seen if it.get("content")] == [["allowed"]]


async def test_closing_ends_background_work_and_tells_it(speak):
    begun = asyncio.Event()

    async def watch(turn):
        async with turn.tool("Watch", background=True):
            begun.set()
            await asyncio.Event().wait()

    async def work(turn):
        turn.session.start(watch(turn))
        await begun.wait()

    async with speak(of(work)) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.until("tool_call_update", status="in_progress")
        closing = client.call("session/close", {"sessionId": session_id})
        seen = []
        while "id" not in (message := await client.receive()):
            seen.append(message["params"]["update"])
        assert message == {"jsonrpc": "2.0", "id": closing, "result": {}}
        assert seen[-2]["status"] == "cancelled"
        assert (seen[-1]["state"], seen[-1]["background"]) == ("idle", [])
        await client.expect_silence()


async def test_in_version_1_updates_of_version_2_are_converted(serve):
    async def work(turn):
        await turn.send(v2.AgentMessage.of(v2.MessageId("m"), "one ", "two"))
        await turn.session.send(v2.PlanUpdate.of(v2.PlanId("main"), "Read"))
        with pytest.raises(ConversionError, match="version 1"):
            await turn.send(v2.SessionStateUpdate("running"))

    async with serve(of(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.text == "one two"
        assert [entry.content for entry in editor.of(v1.Plan)[0].entries] == ["Read"]


async def test_a_tool_call_is_paused_and_goes_on(speak):
    agent = Agent("pauser")

    @agent.on_prompt
    async def work(turn):
        async with turn.tool("Wait for a slot") as tool:
            await tool.start()
            await tool.pause()
            await tool.start()

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        updates = await client.until("state_update", state="idle")
        statuses = [it["status"] for it in updates if it["sessionUpdate"] == "tool_call_update" and "status" in it]
        assert statuses == ["pending", "in_progress", "paused", "in_progress", "completed"]


async def test_a_client_of_version_1_sees_a_paused_tool_call_in_progress():
    agent, paused = Agent("pauser"), asyncio.Event()

    @agent.on_prompt
    async def work(turn):
        async with turn.tool("Wait for a slot") as tool:
            await tool.pause()
            await turn.say(tool.status)
            await paused.wait()

    async with connect(agent) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("go")
        async for update in reply:
            if isinstance(update, updates.AgentMessageChunk):
                assert [call.status for call in session.state.tool_calls.values()] == ["in_progress"]
                paused.set()
        outcome = await reply
        assert outcome.text == "paused"
        assert [call.status for call in outcome.tool_calls] == ["completed"]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_lists_what_runs_beside_its_turns(version):
    agent, listed, begun, go_on = Agent("watcher"), [], asyncio.Event(), asyncio.Event()

    async def watch(turn):
        async with turn.tool("Watch", background=True):
            begun.set()
            await go_on.wait()

    @agent.on_prompt
    async def work(turn):
        listed.append(turn.session.background)
        watching = turn.session.start(watch(turn))
        await begun.wait()
        listed.append(turn.session.background)
        go_on.set()
        await watching
        listed.append(turn.session.background)

    async with connect(agent, versions=(version,)) as remote:
        session = await remote.new_session("/")
        [call] = (await session.prompt("go")).tool_calls
        assert listed == [(), (v2.BackgroundToolCall(call.id),), ()]
