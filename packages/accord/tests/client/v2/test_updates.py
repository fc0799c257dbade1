"""What readers of a Reply get for the updates of version 2."""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager

import pytest

import accord
from accord.schema import shared_updates as updates, v1, v2
from tests.client.v2.conftest import staged_v2
from tests.waiting import eventually


@asynccontextmanager
async def turn(**options):
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi", **options)
        await stage.insertion("u1")
        stage.state("running")
        yield stage, session, reply


def message(text, kind="agent_message", message_id="a1"):
    content = None if text is None else [{"type": "text", "text": part} for part in text]
    return {"sessionUpdate": kind, "messageId": message_id, "content": content}


async def texts(reply):
    return [text async for text in reply.iter_text()]


async def test_a_whole_message_is_read_like_one_that_came_in_pieces():
    async with turn() as (stage, session, reply):
        stage.update(message(["Hel", "lo"]))
        stage.idle()
        assert await texts(reply) == ["Hel", "lo"]
        assert session.state.messages[-1].text == "Hello"


async def test_a_whole_message_after_its_pieces_repeats_nothing():
    async with turn() as (stage, _, reply):
        stage.say("Hel")
        stage.say("lo")
        stage.update(message(["Hello"]))
        stage.update(message(["Hello, world"]))
        stage.idle()
        assert await texts(reply) == ["Hel", "lo", ", world"]
        assert (await reply).text == "Hello, world"


async def test_a_replaced_message_is_a_change_for_those_who_render_and_a_warning_for_readers(caplog):
    async with turn() as (stage, _, reply):
        stage.say("Helo")
        stage.update(message(["Hello"]))
        stage.say("!")
        stage.idle()
        changes = [change async for change in reply.changes() if change.speaker == "agent"]
        told = [(change.message_id, change.text, change.replaced) for change in changes]
        assert told == [("a1", "Helo", False), ("a1", "Hello", True), ("a1", "!", False)]
        assert (await reply).text == "Hello!"
    async with turn() as (stage, _, reply):
        stage.say("Helo")
        stage.update(message(["Hello"]))
        stage.idle()
        assert await texts(reply) == ["Helo"]
        assert "replaced a message" in caplog.text


@pytest.mark.parametrize("nothing", [None, []])
async def test_a_cleared_message_is_replaced_by_nothing_and_then_begins_again(nothing):
    async with turn() as (stage, _, reply):
        stage.say("old")
        stage.update(message(nothing))
        stage.update(message(["new"]))
        stage.idle()
        told = [(it.text, it.replaced) async for it in reply.changes() if it.speaker == "agent"]
        assert told == [("old", False), ("", True), ("new", False)]
        assert (await reply).text == "new"


async def test_messages_of_one_id_and_different_kinds_are_different_messages():
    async with turn() as (stage, session, reply):
        stage.update(message(["hm"], "agent_thought"))
        stage.update(message(["yes"]))
        stage.idle()
        assert await texts(reply) == ["yes"]
        assert [it.text for it in session.state.messages] == ["Hi", "hm", "yes"]


async def test_what_is_said_of_a_tool_call_comes_as_it_was_said():
    async with turn() as (stage, session, reply):
        stage.update({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "Look", "kind": "read"})
        chunk = {"type": "content", "content": {"type": "text", "text": "found"}}
        stage.update({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t", "content": chunk})
        stage.update({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "title": None})
        stage.idle()
        began, piece, ended = [it async for it in reply if "ToolCall" in type(it).__name__]
        assert began == updates.ToolCallProgress("t", "Look", "read")
        assert piece == updates.ToolCallContentChunk("t", v1.Content.of("found"))
        assert ended == updates.ToolCallProgress("t", None, status="completed")
        assert session.state.tool_calls["t"].text == "found"


async def test_updates_that_version_1_lacks_come_as_they_are():
    async with turn() as (stage, session, reply):
        data = base64.b64encode("done €".encode()).decode()
        stage.update({"sessionUpdate": "terminal_update", "terminalId": "x", "command": "make"})
        stage.update({"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": data})
        stage.update({"sessionUpdate": "hologram", "depth": 3})
        stage.idle(background=[{"type": "terminal", "terminalId": "x"}])
        kinds = [type(it) async for it in reply][2:]
        assert kinds == [v2.TerminalUpdate, v2.TerminalOutputChunk, accord.Unknown, v2.SessionStateUpdate]
        assert session.state.terminals["x"].text == "done €"
        assert session.state.activity == "idle"
        assert session.state.background == [v2.BackgroundTerminal("x")]


async def test_options_commands_plans_and_titles_are_of_the_vocabulary():
    option = {"configId": "m", "name": "Mode", "type": "select", "category": "mode", "currentValue": "ask",
              "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]}  # fmt: skip
    command = {"type": "command", "name": "review", "description": "Review"}
    plan = {"type": "items", "planId": "p", "entries": [{"content": "one", "priority": "high", "status": "cancelled"}]}
    async with turn() as (stage, session, reply):
        stage.update({"sessionUpdate": "config_option_update", "configOptions": [option]})
        stage.update({"sessionUpdate": "available_commands_update", "availableCommands": [command]})
        stage.update({"sessionUpdate": "session_info_update", "title": "Holidays"})
        stage.update({"sessionUpdate": "usage_update", "used": 8, "size": 100})
        stage.update({"sessionUpdate": "plan_update", "plan": plan})
        stage.idle()
        kinds = [type(it) async for it in reply][2:-1]
        assert kinds[:4] == [
            updates.ConfigOptionUpdate,
            updates.AvailableCommandsUpdate,
            updates.SessionInfoUpdate,
            updates.UsageUpdate,
        ]
        state = session.state
        assert (state.mode, [mode.id for mode in state.modes], state.title) == ("ask", ["ask", "code"], "Holidays")
        assert ([it.name for it in state.commands], [it.content for it in state.plan]) == (["review"], ["one"])
        assert list(state.plans) == ["p"]


async def test_an_update_of_version_1_from_a_confused_agent_is_no_error():
    async with turn() as (stage, session, reply):
        stage.update({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look", "status": "completed"})
        stage.idle()
        assert [call.title for call in (await reply).tool_calls] == ["Look"]
        assert session.state.tool_calls["t"].status == "completed"


async def test_observers_of_a_session_get_what_readers_get():
    async with staged_v2() as stage:
        session = await stage.session()
        seen: list[object] = []
        stop = session.on_change(seen.append)
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.update(message(["a", "b"]))
        stage.idle()
        updates = [update async for update in reply]
        await eventually(lambda: [it for it in seen if it is not None] == updates)
        stop()
        count = len(seen)
        stage.say("more")
        await eventually(lambda: session.state.messages[-1].text.endswith("more"))
        assert len(seen) == count


async def test_updates_kept_as_json_are_read_in_the_classes_of_version_2():
    async with turn(wire=True) as (stage, _, reply):
        stage.say("a")
        stage.idle()
        assert v2.AgentMessageChunk.of("a", v1.MessageId("a1")) in [update async for update in reply]


# One thing at a time


async def test_a_tool_call_is_cancelled_where_the_agent_offers_it():
    async with turn() as (stage, session, _):
        stage.update(
            {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "Sleep", "capabilities": {"cancel": {}}}
        )
        await eventually(lambda: "t" in session.state.tool_calls)
        with pytest.raises(accord.CapabilityMissing):
            await session.cancel_tool_call("other")
        asked = stage.agent
        cancelling = asyncio.create_task(session.cancel_tool_call("t"))
        request = await asked.expect("tool_call/cancel")
        assert request["params"] == {"sessionId": "s", "toolCallId": "t"}
        asked.answer(request)
        await cancelling
        stage.update(
            {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "cancelled", "capabilities": None}
        )
        await eventually(lambda: session.state.tool_calls["t"].status == "cancelled")
        with pytest.raises(accord.CapabilityMissing):
            await session.cancel_tool_call("t")


async def test_a_terminal_is_cancelled_where_the_agent_offers_it():
    async with turn() as (stage, session, _):
        stage.update({"sessionUpdate": "terminal_update", "terminalId": "x", "capabilities": {"cancel": {}}})
        await eventually(lambda: "x" in session.state.terminals)
        cancelling = asyncio.create_task(session.cancel_terminal("x"))
        request = await stage.agent.expect("terminal/cancel")
        assert request["params"] == {"sessionId": "s", "terminalId": "x"}
        stage.agent.error(request, -32602, "it has ended")
        with pytest.raises(accord.PeerError, match="it has ended"):
            await cancelling
        with pytest.raises(accord.CapabilityMissing):
            await session.cancel_terminal("y")
