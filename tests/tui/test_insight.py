"""What was allowed always, MCP servers, the inspector, goals, comparing agents, and agents of the registry."""

import asyncio
import json
import urllib.request
import webbrowser

import msgspec

import accord
from accord import v1
from accord.tui.connection import AgentChoice, ConnectionOptions
from accord.tui.registry_agents import RegistryChoice, registry_entries
from tests.waiting import eventually


def echo(name="echo"):
    agent = accord.Agent(name)

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say(f"{name} heard {turn.text}")

    return agent


def writing():
    agent = accord.Agent("writes")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for name in turn.text.split():
            await turn.client.write_text_file(turn.session.cwd / name, "text\n")
        await turn.say("written")

    return agent


async def test_what_was_allowed_always_is_listed_and_asked_about_again_when_it_is_revoked(chat):
    async with chat(writing()) as it:
        await it.send("a.txt")
        await it.sees("? write a.txt", "y Allow")
        await it.press("a")
        await it.sees("written")
        await it.send("/permissions ")
        await it.sees("write files of the session's folders", "until the session ends")
        await it.press("enter")
        await it.sees("You are asked again")
        await it.send("b.txt")
        await it.sees("? write b.txt", "y Allow")
        await it.press("n")


async def test_an_answer_that_holds_in_later_chats_can_be_forgotten(chat, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with chat(writing(), connection=ConnectionOptions(remembers=True)) as it:
        await it.send("a.txt")
        await it.sees("y Allow")
        await it.press("a")
        await it.sees("written")
        kept = it.front.connection.remembered
        assert len(list(kept)) == 1
        await it.send("/permissions ")
        await it.sees("allow edit", "In later chats, too")
        await it.press("down", "enter")
        await it.sees("Forgotten")
        assert list(kept) == []


async def test_without_an_always_the_list_says_what_it_would_hold(chat):
    async with chat(echo()) as it:
        await it.send("/permissions ")
        await it.sees("Nothing was allowed always")


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


async def test_the_goal_of_the_agent_is_on_the_screen(chat):
    agent = accord.Agent("aims")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        goal = {"version": 1, "objective": "All tests pass\x1b[2J", "status": "active"}
        update = v1.SessionInfoUpdate(meta={"goal": goal})
        await turn.client.notify(v1.SessionNotification(turn.session.id, update))

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("Goal All tests pass", "active")
        assert "\x1b" not in it.screen()


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

    monkeypatch.setattr("accord.tui.session_actions.install", names.append)
    async with chat(echo(), find_agent=find) as it:
        it.app.suspend = __import__("contextlib").nullcontext
        await it.press("ctrl+a")
        await it.sees("Agents of the registry", "Far Agent")
        await it.type("far")
        await it.press("enter")
        await eventually(lambda: len(it.app.conversations) == 2)
        assert names == ["far-agent", "far-agent"]
