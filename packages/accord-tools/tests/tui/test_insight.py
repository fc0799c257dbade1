"""MCP servers, the inspector, goals, comparing agents, and agents of the registry."""

import asyncio
import json
import urllib.request
import webbrowser

import msgspec

import accord
from accord import v1
from accord_tools.tui.block import SubagentBlock
from accord_tools.tui.chat_conversation import MOST_SUBAGENTS
from accord_tools.tui.connection import (
    AgentChoice,
    AgentConnection,
    ConnectionOptions,
    RegistryChoice,
    explained,
    registry_entries,
)
from tests.waiting import eventually


def echo(name="echo"):
    agent = accord.Agent(name)

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say(f"{name} heard {turn.text}")

    return agent


async def test_the_mcp_servers_are_listed_with_what_became_of_them(chat):
    servers = [
        v1.McpServerStdio("files", "serve-files", ["--all"], []),
        v1.McpServerHttp("far", "https://user:secret@example.org/mcp", []),
    ]
    neither = v1.McpCapabilities()
    agent = accord.Agent("local", capabilities=lambda it: msgspec.structs.replace(it, mcp_capabilities=neither))

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("yes")

    async with chat(agent, servers=servers, opens=False) as it:
        await eventually(lambda: it.front.connection.remote is not None)
        await it.send("/mcp ")
        await it.sees("files  stdio  serve-files --all", "given to the agent", "far  http", "not given: the agent")
        assert "secret" not in it.screen()


async def test_the_inspector_shows_the_session_while_it_goes_on(chat, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    async with chat(echo()) as it:
        await it.send("/inspect ")
        await it.sees("The inspector", "http://127.0.0.1")
        await eventually(lambda: opened)
        page = await asyncio.to_thread(urllib.request.urlopen, opened[0].partition("#")[0])
        with page:
            assert page.status == 200
        trace = it.front.connection.watchers[0]
        before = trace.size
        await it.send("more")
        await it.sees("echo heard more")
        await eventually(lambda: trace.size > before)
        await it.send("/inspect ")
        await eventually(lambda: len(opened) == 2)
        assert opened[0] == opened[1]


async def test_an_error_shows_no_secret_of_a_url():
    connection = AgentConnection(AgentChoice("far", lambda _: ""), ConnectionOptions())
    connection.stderr.append("no answer of https://ada:secret@example.org/acp?token=hidden")
    for error in (accord.AccordError("cannot reach https://ada:secret@example.org"), accord.PeerError("m", 1, "it")):
        title, about = explained(error, connection)
        assert "secret" not in title + about
        assert "https://***@example.org/acp?token=***" in about


async def test_the_goal_of_the_agent_is_on_the_screen(chat):
    agent = accord.Agent("aims")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        goal = {"version": 1, "objective": "All tests pass\x1b[2J", "status": "active"}
        update = v1.SessionInfoUpdate(meta={"goal": goal})
        await turn.client.notify(v1.SessionNotification(turn.session.id, update))

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("Goal All tests pass", "(active)")
        assert "\x1b" not in it.screen()


async def test_the_goal_of_the_agent_is_set_paused_and_cleared(chat):
    agent, asked = accord.Agent("aims"), []

    @agent.on(v1.InitializeRequest)
    def answer(request: v1.InitializeRequest) -> v1.InitializeResponse:
        return v1.InitializeResponse(1, meta={"goal": {"version": 1, "actions": ["set", "clear"]}})

    @agent.on_request("_session/goal")
    async def control(params, context):
        asked.append(params["action"])
        goal = {"objective": params.get("objective"), "status": "active"} if params["action"] == "set" else None
        update = v1.SessionInfoUpdate(meta={"goal": goal})
        await context.peer.notify(v1.SessionNotification(params["sessionId"], update))
        return {}

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("ok")

    async with chat(agent) as it:
        await it.send("/goal ")
        await it.sees("No goal", "The agent offers: set, clear.")
        await it.send("/goal all tests pass")
        await it.sees("Goal all tests pass (active)")
        await it.send("/goal pause")
        await it.sees("cannot pause a goal; it offers set, clear")
        await it.send("/goal clear")
        await it.sees_no("Goal all tests pass (active)")
    assert asked == ["set", "clear"]


async def test_an_agent_without_goals_is_not_asked_for_one(chat):
    async with chat(echo()) as it:
        await it.send("/goal all tests pass")
        await it.sees("knows no goals")


async def test_a_prompt_is_sent_to_two_agents(chat):
    other = AgentChoice("other", lambda _: echo("other"))
    async with chat(echo(), agents=[other]) as it:
        await it.send("/compare which is better?")
        await it.sees("Compare with", "other")
        await it.press("enter")
        await it.sees("other heard which is better?")
        await it.press("alt+1")
        await it.sees("echo heard which is better?")


async def test_agents_of_the_registry_are_in_the_list_of_agents(chat, tmp_path, monkeypatch):
    index = tmp_path / "registry.json"
    entry = {
        "id": "far-agent",
        "name": "Far Agent",
        "version": "1.0.0",
        "description": "Works far away",
        "distribution": {"npx": {"package": "far-agent@1.0.0"}},
    }
    index.write_text(json.dumps({"version": "1.0.0", "agents": [entry]}))
    monkeypatch.setenv("ACCORD_REGISTRY", str(index))
    found = await registry_entries([])
    assert [it.value for it in found] == [RegistryChoice("far-agent", False)]
    names = []

    def find(name):
        names.append(name)
        return AgentChoice(name, lambda _: echo(name))

    monkeypatch.setattr("accord_tools.tui.session_actions.install", names.append)
    async with chat(echo(), find_agent=find) as it:
        it.app.suspend = __import__("contextlib").nullcontext
        await it.press("ctrl+a")
        await it.sees("Agents of the registry", "Far Agent")
        await it.type("far")
        await it.press("enter")
        await eventually(lambda: len(it.app.conversations) == 2)
        assert names == ["far-agent", "far-agent"]


async def test_a_subagent_is_shown_with_its_words_its_work_and_its_end(chat):
    agent = accord.Agent("delegates")
    go_on = asyncio.Event()

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        async def say(session_id: str, kind: str, **members: object) -> None:
            update = {"sessionUpdate": kind, **members}
            await turn.context.peer.notify_raw("session/update", {"sessionId": session_id, "update": update})

        async def text(words: str) -> None:
            await say("sub", "agent_message_chunk", content={"type": "text", "text": words})

        main = turn.session.id
        await say(main, "subagent_spawned", subagentSessionId="sub", name="explorer", task="Find the parser")
        await text("".join(f"line {number}\n" for number in range(40)))
        await say("sub", "tool_call", toolCallId="r", title="Read parser.py", status="in_progress")
        await go_on.wait()
        await say("sub", "tool_call_update", toolCallId="r", status="completed")
        await text("It is in parser.py.")
        await say(main, "subagent_state_update", subagentSessionId="sub", state="failed")
        await turn.say("Done.")

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("● subagent explorer: Find the parser", "line 39", "Read parser.py", "lines before")
        assert "line 12" not in it.screen()
        go_on.set()
        await it.sees("✗ subagent explorer: Find the parser", "It is in parser.py.", "Done.")
        assert "Read parser.py" not in it.screen()
        await it.idle()


async def test_a_conversation_draws_endless_subagents_and_keeps_few(chat):
    agent = accord.Agent("delegates")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for number in range(MOST_SUBAGENTS + 3):
            update = {"sessionUpdate": "subagent_spawned", "subagentSessionId": f"sub{number}", "name": f"n{number}"}
            await turn.context.peer.notify_raw("session/update", {"sessionId": turn.session.id, "update": update})

    async with chat(agent) as it:
        await it.send("go")
        await it.idle()
        await it.sees(f"subagent n{MOST_SUBAGENTS + 2}")
        blocks = [note.block for note in it.front.notes if isinstance(note.block, SubagentBlock)]
        assert [block._subagent is None for block in blocks] == [True] * 3 + [False] * MOST_SUBAGENTS
        assert blocks[0].copied().startswith("subagent n0")
