"""Sessions in version 2: opened with options and commands, resumed with their state, closed with their work."""

from __future__ import annotations

import asyncio
from dataclasses import make_dataclass

import pytest

from accord import Agent, MemoryStore, RequestError, connect, v1, v2
from accord.schema import codec
from accord.session import SessionState
from accord.store import NOTHING

COMMAND = {"type": "command", "name": "review", "description": "Review", "input": {"type": "text", "hint": "what"}}
MODE = {
    "type": "select",
    "configId": "mode",
    "name": "Mode",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "ask"}, {"value": "code", "name": "code"}],
    "category": "mode",
}
ALOUD = {"type": "boolean", "configId": "aloud", "name": "Aloud", "currentValue": False}


def full(**options):
    """An agent with a command, a mode and a switch."""
    agent = Agent("full", **options)
    agent.command("review", "Review", hint="what")(lambda _: None)

    @agent.on_session
    async def offer(session):
        await session.modes.offer(["ask", "code"])
        await session.config.offer("aloud", "Aloud")

    return agent


async def test_a_new_session_comes_with_its_options_and_commands(speak):
    async with speak(full()) as client:
        answer = await client.request("session/new", {"cwd": "/project"})
        assert answer["availableCommands"] == [COMMAND]
        assert answer["configOptions"] == [MODE, ALOUD]
        assert "modes" not in answer
        await client.expect_silence()


async def test_a_fork_comes_with_its_options_and_commands(speak):
    async with speak(full()) as client:
        session_id = await client.new()
        answer = await client.request("session/fork", {"sessionId": session_id, "cwd": "/project"})
        assert answer["sessionId"] != session_id
        assert answer["availableCommands"] == [COMMAND]
        assert answer["configOptions"] == [MODE, ALOUD]


async def test_commands_that_come_later_are_told_by_an_update(speak):
    agent = full()

    @agent.on_prompt
    async def learn(turn):
        await turn.session.commands.remove("review")

    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new()))
        assert (await client.update("available_commands_update"))["availableCommands"] == []
        await client.state("idle", stopReason="end_turn")


@pytest.mark.parametrize("replays", [False, True])
async def test_resuming_tells_the_state_before_the_answer(speak, replays):
    async with speak(full()) as client:
        session_id = await client.new()
        replay = {"replayFrom": {"type": "start"}} if replays else {"replayFrom": None}
        request = client.call("session/resume", {"sessionId": session_id, "cwd": "/project", **replay})
        if replays:
            assert await client.update() == {"sessionUpdate": "replay_complete"}
        await client.state("idle")
        answer = await client.expect_result(request)
        assert answer == {"configOptions": [MODE, ALOUD], "availableCommands": [COMMAND]}
        await client.expect_silence()


@pytest.mark.parametrize("version", [1, 2])
async def test_our_client_knows_where_history_ends(version):
    agent = full()
    async with connect(agent, versions=(version,)) as remote:
        session = await remote.new_session("/project")
        await session.prompt("hello")
        await session.close()
        loaded = await remote.load(session.id, "/project")
        length = len(loaded.state)
        assert (length > 0, loaded.state.history_length) == (True, length)
        await loaded.prompt("more")
        assert (len(loaded.state) > length, loaded.state.history_length) == (True, length)
        await loaded.close()
        resumed = await remote.resume(session.id, "/project")
        assert resumed.state.history_length is None


async def test_a_replay_ends_once_before_the_state_and_the_answer_also_while_work_goes_on(speak):
    agent = full()
    go_on = asyncio.Event()

    @agent.on_prompt
    async def work(turn):
        await turn.say("working")
        await go_on.wait()
        await turn.say("done")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.until("agent_message_chunk")
        params = {"sessionId": session_id, "cwd": "/project", "replayFrom": {"type": "start"}}
        resuming = client.call("session/resume", params)
        replayed = [it["sessionUpdate"] for it in await client.until("replay_complete")]
        assert replayed == ["user_message", "agent_message", "replay_complete"]
        go_on.set()
        await client.state("running")
        await client.expect_result(resuming)
        live = [it["sessionUpdate"] for it in await client.until("state_update", state="idle")]
        assert "replay_complete" not in live


async def test_resuming_a_session_that_works_lets_its_work_go_on(speak):
    agent = full()
    go_on = asyncio.Event()

    @agent.on_prompt
    async def work(turn):
        await turn.say("working")
        await go_on.wait()
        await turn.say("done")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        assert await client.said() == "working"
        request = client.call("session/resume", {"sessionId": session_id, "cwd": "/project"})
        await client.state("running")
        await client.expect_result(request)
        for other in (
            {"cwd": "/other"},
            {"additionalDirectories": ["/more"]},
            {"mcpServers": [{"type": "stdio", "name": "s", "command": "/bin/s"}]},
        ):
            params = {"sessionId": session_id, "cwd": "/project", **other}
            await client.expect_error(client.call("session/resume", params), -32602)
        go_on.set()
        assert await client.said() == "done"
        await client.state("idle", stopReason="end_turn")


async def test_the_status_of_an_open_session_says_what_it_does(speak):
    agent = full(unstable=True)
    go_on = asyncio.Event()

    @agent.on_prompt
    async def work(turn):
        await go_on.wait()

    async with speak(agent) as client:
        session_id = await client.new()
        status = {"sessionId": session_id}
        assert await client.request("session/status", status) == {
            "status": "open",
            "state": {"state": "idle", "background": []},
        }
        await client.inserted(client.prompt(session_id))
        assert (await client.request("session/status", status))["state"] == {"state": "running", "background": []}
        go_on.set()
        await client.state("idle", stopReason="end_turn")
        await client.request("session/close", status)
        assert await client.request("session/status", status) == {"status": "saved"}


STEPS = 7
"""What `stepwise` does in a turn."""


def stepwise(store):
    """An agent whose turn takes a step for each item of its queue; a tool call stays open for three."""
    agent, steps = Agent("stepwise", store=store), asyncio.Queue()

    @agent.on_prompt
    async def work(turn):
        await steps.get()
        await turn.say("one ")
        await steps.get()
        async with turn.tool("Look", kind="read") as tool:
            await steps.get()
            await tool.text("first")
            await steps.get()
            await tool.text("second")
            await steps.get()
        await turn.think("hm")
        await steps.get()
        await turn.say("two ")
        await steps.get()
        await turn.say("three")

    return agent, steps


class Conversation:
    """What a client is told, folded."""

    def __init__(self, client):
        self.client = client
        self.state = SessionState()
        self.ends = []

    def add(self, message):
        update = message["params"]["update"]
        if "stopReason" in update:
            self.ends.append(update["stopReason"])
        self.state.add(codec.convert(update, v2.SessionUpdate))

    async def replayed(self, session_id):
        params = {"sessionId": session_id, "cwd": "/project", "replayFrom": {"type": "start"}}
        request = self.client.call("session/resume", params)
        while (message := await self.client.receive()).get("id") != request:
            self.add(message)
        assert "result" in message, message

    def told(self):
        state = self.state
        calls = [(it.title, it.status, it.content) for it in state.tool_calls.values()]
        return [(it.speaker, it.text) for it in state.messages], calls, self.ends


class SlowStore(MemoryStore):
    """A store whose commit is known many turns of the loop later, so that a replay meets writes under way."""

    def appending(self, session):  # noqa: ARG002
        return None

    async def write(self, session, updates=(), changes=NOTHING):
        await asyncio.sleep(0)
        await super().write(session, updates, changes)
        for _ in range(50):
            await asyncio.sleep(0)

    async def updates(self, session_id, *, owner="", after=0):
        async for page in super().updates(session_id, owner=owner, after=after):
            for entry in page:
                await asyncio.sleep(0)
                yield [entry]


@pytest.mark.parametrize("store", [MemoryStore, SlowStore])
@pytest.mark.parametrize("goes_on", ["after the replay", "during the replay"])
async def test_a_replay_at_any_step_of_a_turn_lets_it_go_on_and_loses_and_repeats_nothing(speak, store, goes_on):
    expected = (
        [("user", "hello"), ("agent", "one "), ("thought", "hm"), ("agent", "two three")],
        [("Look", "completed", [v1.Content.of("firstsecond")])],
        ["end_turn"],
    )
    for count in range(STEPS):
        agent, steps = stepwise(store())
        async with speak(agent) as client:
            session_id = await client.new()
            conversation = Conversation(client)
            request = client.prompt(session_id)
            conversation.add(await client.receive())
            await client.expect_result(request)
            for _ in range(count):
                steps.put_nowait(None)
                await asyncio.sleep(0)
            if goes_on == "during the replay":
                for _ in range(STEPS - count):
                    steps.put_nowait(None)
            await conversation.replayed(session_id)
            if goes_on == "after the replay":
                for _ in range(STEPS - count):
                    steps.put_nowait(None)
            while not conversation.ends:
                conversation.add(await client.receive())
            assert conversation.told() == expected, count


async def test_resuming_without_a_replay_tells_the_title(speak):
    agent = full()

    @agent.on_prompt
    async def name(turn):
        await turn.session.set_title("Greeting")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        assert (await client.update("session_info_update"))["title"] == "Greeting"
        await client.state("idle", stopReason="end_turn")
        request = client.call("session/resume", {"sessionId": session_id, "cwd": "/project"})
        assert (await client.update("session_info_update"))["title"] == "Greeting"
        await client.state("idle")
        await client.expect_result(request)


@pytest.mark.parametrize("replay_from", [{"type": "message", "messageId": "m"}, {"type": 1}, "start"])
async def test_another_start_of_a_replay_is_refused(speak, replay_from):
    async with speak(full()) as client:
        session_id = await client.new()
        params = {"sessionId": session_id, "cwd": "/project", "replayFrom": replay_from}
        await client.expect_error(client.call("session/resume", params), -32602)


async def test_resuming_in_another_folder_is_refused(speak):
    async with speak(full()) as client:
        session_id = await client.new()
        await client.expect_error(client.call("session/resume", {"sessionId": session_id, "cwd": "/other"}), -32602)


@pytest.mark.parametrize("method", ["session/resume", "session/fork"])
async def test_an_unknown_session_is_named_by_the_error(speak, method):
    async with speak(full()) as client:
        error = await client.expect_error(client.call(method, {"sessionId": "nowhere", "cwd": "/project"}), -32002)
        assert error["data"] == {"sessionId": "nowhere"}


async def test_sessions_are_listed_and_deleted(speak):
    async with speak(full()) as client:
        session_id = await client.new()
        [listed] = (await client.request("session/list", {}))["sessions"]
        assert (listed["sessionId"], listed["cwd"]) == (session_id, "/project")
        assert await client.request("session/delete", {"sessionId": session_id}) == {}
        assert (await client.request("session/list", {}))["sessions"] == []
        assert await client.request("session/delete", {"sessionId": session_id}) == {}


async def test_closing_a_session_that_is_not_open_succeeds(speak):
    async with speak(full()) as client:
        assert await client.request("session/close", {"sessionId": "nowhere"}) == {}
        session_id = await client.new()
        assert await client.request("session/close", {"sessionId": session_id}) == {}
        assert await client.request("session/close", {"sessionId": session_id}) == {}


async def test_closing_ends_the_work_tells_it_and_then_answers(speak):
    agent = Agent("busy")

    @agent.on_prompt
    async def work(turn):
        await turn.say("working")
        await asyncio.Event().wait()

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.said()
        held = client.prompt(session_id, "later")
        closing = client.call("session/close", {"sessionId": session_id})
        messages = [await client.receive() for _ in range(3)]
        answers = {it["id"]: it for it in messages if "id" in it}
        [idle] = [it["params"]["update"] for it in messages if "method" in it]
        assert idle == {"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"}
        assert answers[held]["error"]["code"] == -32800
        assert answers[closing]["result"] == {}
        assert messages.index(answers[closing]) > [it.get("method") for it in messages].index("session/update")
        await client.expect_silence()


# MCP servers


def stdio(name, **members):
    return {"type": "stdio", "name": name, "command": "/bin/true", **members}


@pytest.mark.parametrize(
    ("servers", "data"),
    [
        ([stdio("fs"), stdio("fs")], {"name": "fs"}),
        ([{"type": "sse", "name": "old", "url": "http://127.0.0.1"}], {"type": "sse", "path": "$.mcpServers"}),
        ([{"type": "_mine", "name": "odd"}], {"type": "_mine", "path": "$.mcpServers"}),
    ],
)
async def test_servers_that_cannot_be_used_are_refused(speak, servers, data):
    async with speak(full()) as client:
        error = await client.expect_error(
            client.call("session/new", {"cwd": "/project", "mcpServers": servers}), -32602
        )
        assert error["data"] == data


async def test_the_author_finds_the_servers_as_in_version_1(speak):
    given = []
    agent = Agent("curious")
    agent.on_prompt(lambda _: None)
    agent.on_session(lambda session: given.extend(session.mcp_servers))
    async with speak(agent) as client:
        await client.new(mcpServers=[stdio("fs", args=["-x"]), {"type": "http", "name": "web", "url": "http://h"}])
    assert [(type(it).__name__, it.name) for it in given] == [("McpServerStdio", "fs"), ("McpServerHttp", "web")]


# Options


async def test_a_change_is_told_before_it_is_answered(speak):
    async with speak(full()) as client:
        session_id = await client.new()
        request = client.call(
            "session/set_config_option",
            {"sessionId": session_id, "configId": "mode", "type": "id", "value": "code"},
        )
        told = await client.update("config_option_update")
        answer = await client.expect_result(request)
        assert answer == {"configOptions": told["configOptions"]}
        assert [it["currentValue"] for it in answer["configOptions"]] == ["code", False]
        await client.expect_silence()


async def test_a_switch_takes_a_boolean(speak):
    async with speak(full()) as client:
        session_id = await client.new()
        params = {"sessionId": session_id, "configId": "aloud", "type": "boolean", "value": True}
        request = client.call("session/set_config_option", params)
        await client.update("config_option_update")
        options = (await client.expect_result(request))["configOptions"]
        assert [it["currentValue"] for it in options] == ["ask", True]


@pytest.mark.parametrize(
    "params",
    [
        {"configId": "mode", "type": "id", "value": "fly"},
        {"configId": "none", "type": "id", "value": "code"},
        {"configId": "mode", "type": "boolean", "value": True},
        {"configId": "mode", "type": "range", "value": 3},
        {"configId": "mode", "value": "code"},
    ],
)
async def test_a_wrong_value_is_refused_and_nothing_changes(speak, params):
    async with speak(full()) as client:
        session_id = await client.new()
        await client.expect_error(client.call("session/set_config_option", {"sessionId": session_id, **params}), -32602)
        await client.expect_silence()


async def test_the_author_may_refuse_a_value(speak):
    agent = full()

    @agent.on_config
    def refuse(session, option_id, value):
        raise RequestError.invalid_params("not now")

    async with speak(agent) as client:
        session_id = await client.new()
        params = {"sessionId": session_id, "configId": "mode", "type": "id", "value": "code"}
        await client.expect_error(client.call("session/set_config_option", params), -32602)
        await client.expect_silence()


# Logging in


def guarded():
    agent = Agent("guarded")
    agent.on_prompt(lambda _: None)
    agent.login("account", "Account")(lambda: None)
    agent.terminal_login("shell", "Shell", args=["--login"], env={"A": "b"})(lambda: False)
    agent.environment_login("key", "Key", ["ACCORD_TEST_KEY_THAT_IS_NOT_SET"])
    return agent


@pytest.mark.parametrize("terminal", [False, True])
async def test_logins_are_told_by_their_type(speak, terminal):
    capabilities = {"auth": {"terminal": {}}} if terminal else {}
    shell = {
        "type": "terminal",
        "methodId": "shell",
        "name": "Shell",
        "args": ["--login"],
        "env": [{"name": "A", "value": "b"}],
    }
    async with speak(guarded(), capabilities=capabilities) as client:
        told = client.hello_answer["authMethods"]
        assert told == [{"type": "agent", "methodId": "account", "name": "Account"}, *([shell] if terminal else [])]


async def test_a_user_logs_in_and_out(speak):
    async with speak(guarded()) as client:
        await client.expect_error(client.call("session/new", {"cwd": "/project"}), -32000)
        assert await client.request("auth/login", {"methodId": "account"}) == {}
        await client.new()
        assert await client.request("auth/logout", {}) == {}
        await client.expect_error(client.call("session/new", {"cwd": "/project"}), -32000)


@pytest.mark.parametrize("method_id", ["shell", "none"])
async def test_a_login_that_cannot_be_requested_is_refused(speak, method_id):
    async with speak(guarded(), capabilities={"auth": {"terminal": {}}}) as client:
        await client.expect_error(client.call("auth/login", {"methodId": method_id}), -32602)


async def test_an_agent_without_logins_does_not_know_them(speak):
    async with speak(full()) as client:
        assert "authMethods" not in client.hello_answer
        await client.expect_error(client.call("auth/login", {"methodId": "account"}), -32601)


async def test_a_login_may_ask_the_user(speak):
    agent = Agent("asks")
    agent.on_prompt(lambda _: None)

    @agent.login("key", "Key")
    async def log_in(login):
        return await login.elicit("Your name?", make_dataclass("Who", [("name", str)]))

    async with speak(agent, capabilities={"elicitation": {"form": {}}}) as client:
        request = client.call("auth/login", {"methodId": "key"})
        question = await client.expect("elicitation/create")
        assert question["params"]["requestId"] == request
        client.answer(question, {"action": "accept", "content": {"name": "Ada"}})
        assert await client.expect_result(request) == {}


async def test_a_fork_at_a_cursor_that_the_agent_does_not_know_is_refused(speak):
    async with speak(full()) as client:
        session_id = await client.new()
        params = {"sessionId": session_id, "cwd": "/project", "cursorId": "nowhere"}
        error = await client.expect_error(client.call("session/fork", params))
        assert (error["code"], error["data"]["path"]) == (-32602, "$.cursorId")
