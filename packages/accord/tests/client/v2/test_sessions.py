"""Sessions, logins and restarts with an agent of version 2."""

from __future__ import annotations

import asyncio

import pytest

import accord
from accord.errors import ConversionError
from accord.schema import v1, v2
from tests.client.conftest import Scripted
from tests.client.v2.conftest import SESSIONS, shake_hands_v2, staged_v2
from tests.waiting import eventually

OPTION = {
    "configId": "m",
    "name": "Mode",
    "type": "select",
    "category": "mode",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}],
}
COMMAND = {"type": "command", "name": "review", "description": "Review", "input": {"type": "text", "hint": "what"}}


async def doing(work, stage, method):
    """Start this, and return it with the agent's request for it."""
    task = asyncio.ensure_future(work)
    return task, await stage.agent.expect(method)


async def test_a_new_session_has_the_options_and_commands_of_its_answer():
    async with staged_v2() as stage:
        session = await stage.session(configOptions=[OPTION], availableCommands=[COMMAND])
        assert (session.state.mode, [mode.name for mode in session.state.modes]) == ("ask", ["Ask", "Code"])
        [command] = session.state.commands
        assert (command.name, command.input) == ("review", v1.UnstructuredCommandInput("what"))


async def test_what_came_before_the_answer_is_not_overwritten_by_it():
    async with staged_v2() as stage:
        opening, new = await doing(stage.remote.new_session("/"), stage, "session/new")
        newer = {**OPTION, "currentValue": "code"}
        stage.update({"sessionUpdate": "config_option_update", "configOptions": [newer]})
        stage.agent.answer(new, {"sessionId": "s", "configOptions": [OPTION]})
        assert (await opening).state.mode == "code"


async def test_mcp_servers_are_sent_in_the_form_of_version_2():
    async with staged_v2() as stage:
        servers = [v1.McpServerStdio("fs", "/bin/true", ["-x"], [v1.EnvVariable("A", "b")])]
        opening, new = await doing(stage.remote.new_session("/", mcp_servers=servers), stage, "session/new")
        assert new["params"]["mcpServers"] == [
            {
                "type": "stdio",
                "name": "fs",
                "command": "/bin/true",
                "args": ["-x"],
                "env": [{"name": "A", "value": "b"}],
            }
        ]
        stage.agent.answer(new, {"sessionId": "s"})
        await opening
    async with staged_v2(sessions={"mcp": {}}) as stage:
        with pytest.raises(accord.CapabilityMissing, match=r"session\.mcp\.stdio"):
            await stage.remote.new_session("/", mcp_servers=servers)


async def test_loading_is_resuming_with_a_replay_from_the_start():
    async with staged_v2() as stage:
        loading, request = await doing(stage.remote.load("s", "/"), stage, "session/resume")
        assert request["params"]["replayFrom"] == {"type": "start"}
        stage.echo("u1", "Hi")
        stage.say("Hello")
        stage.update({"sessionUpdate": "session_info_update", "title": "Greeting"})
        stage.idle(None)
        stage.agent.answer(request, {"configOptions": [OPTION], "availableCommands": [COMMAND]})
        session = await loading
        assert [message.text for message in session.state.messages] == ["Hi", "Hello"]
        assert (session.state.title, session.state.mode, session.is_busy) == ("Greeting", "ask", False)
        assert [command.name for command in session.state.commands] == ["review"]
        reply = session.prompt("more")
        await stage.insertion("u2")
        stage.state("running")
        stage.say("yes", messageId="a2")
        stage.idle()
        assert (await reply).text == "yes"


@pytest.mark.parametrize("state", [None, "idle", "running", "requires_action"])
async def test_a_resumed_session_is_prompted_whatever_state_it_is_in(state):
    async with staged_v2() as stage:
        resuming, request = await doing(stage.remote.resume("s", "/"), stage, "session/resume")
        assert "replayFrom" not in request["params"]
        if state is not None:
            stage.state(state)
        stage.agent.answer(request, {})
        session = await resuming
        assert session.is_busy == (state not in (None, "idle"))
        reply = session.prompt("go on")
        prompt = await stage.agent.expect("session/prompt")
        if session.is_busy:
            stage.idle()
        stage.insert(prompt, "u2")
        stage.state("running")
        stage.idle("max_tokens")
        assert (await reply).stop_reason == "max_tokens"


@pytest.mark.parametrize("code", [None, -32002])
async def test_closing_and_deleting_what_is_not_there_succeeds(code):
    async with staged_v2() as stage:
        session = await stage.session()
        for work, method in ((session.close, "session/close"), (lambda: stage.remote.delete("old"), "session/delete")):
            task, request = await doing(work(), stage, method)
            if code is None:
                stage.agent.answer(request)
            else:
                stage.agent.error(request, code, "no such session")
            await task
        assert not session.is_open


async def test_sessions_are_listed_in_the_classes_of_version_1():
    async with staged_v2() as stage:

        async def listed() -> list[v1.SessionInfo]:
            return [info async for info in stage.remote.sessions("/w")]

        listing, request = await doing(listed(), stage, "session/list")
        stage.agent.answer(request, {"sessions": [{"sessionId": "a", "cwd": "/w"}], "nextCursor": ""})
        again = await stage.agent.expect("session/list")
        assert again["params"]["cursor"] == ""
        stage.agent.answer(again, {"sessions": [{"sessionId": "b", "cwd": "/w", "title": "B"}]})
        infos = await listing
        assert [type(info) for info in infos] == [v1.SessionInfo, v1.SessionInfo]
        assert [(info.session_id, info.title) for info in infos] == [("a", None), ("b", "B")]


async def test_a_mode_is_set_through_its_option():
    async with staged_v2() as stage:
        session = await stage.session(configOptions=[OPTION])
        setting, request = await doing(session.set_mode("code"), stage, "session/set_config_option")
        assert request["params"] == {"sessionId": "s", "configId": "m", "type": "id", "value": "code"}
        newer = {**OPTION, "currentValue": "code"}
        stage.update({"sessionUpdate": "config_option_update", "configOptions": [newer]})
        stage.agent.answer(request, {"configOptions": [newer]})
        await setting
        assert session.state.mode == "code"


async def test_an_agent_without_modes_says_so_before_anything_is_sent():
    async with staged_v2() as stage:
        session = await stage.session()
        with pytest.raises(ValueError, match="no mode"):
            await session.set_mode("code")
        await stage.agent.expect_silence()


async def test_a_session_is_forked():
    async with staged_v2() as stage:
        session = await stage.session()
        forking, request = await doing(session.fork(), stage, "session/fork")
        stage.agent.answer(request, {"sessionId": "copy", "configOptions": [OPTION]})
        copy = await forking
        assert (copy.id, copy.state.mode) == ("copy", "ask")


async def test_logging_in_and_out():
    methods = [{"type": "agent", "methodId": "web", "name": "Web"}, {"type": "_odd", "methodId": "o", "name": "Odd"}]
    async with staged_v2(methods=methods) as stage:
        login, request = await doing(stage.remote.login("web"), stage, "auth/login")
        assert request["params"] == {"methodId": "web"}
        stage.agent.answer(request)
        await login
        logout, request = await doing(stage.remote.logout(), stage, "auth/logout")
        stage.agent.answer(request)
        await logout
        with pytest.raises(accord.AccordError, match="unknown type"):
            await stage.remote.login("_odd")


async def test_an_agent_without_logins_is_not_asked_to_log_out():
    async with staged_v2() as stage:
        with pytest.raises(accord.CapabilityMissing):
            await stage.remote.logout()


async def test_requests_of_either_version_can_be_sent():
    async with staged_v2() as stage:
        asking, request = await doing(stage.remote.request(v1.ListSessionsRequest()), stage, "session/list")
        stage.agent.answer(request, {"sessions": []})
        assert await asking == v1.ListSessionsResponse([])
        asking, request = await doing(stage.remote.request(v2.ListSessionsRequest()), stage, "session/list")
        stage.agent.answer(request, {"sessions": []})
        assert await asking == v2.ListSessionsResponse([])
        with pytest.raises(ConversionError, match="config option"):
            await stage.remote.request(v1.SetSessionModeRequest(v1.SessionId("s"), v1.SessionModeId("m")))


async def test_updates_are_handled_in_the_words_of_version_1():
    seen: list[v1.SessionUpdate] = []
    client = accord.Client()

    @client.on(v1.SessionNotification)
    def heard(notification: v1.SessionNotification) -> None:
        seen.append(notification.update)

    async with staged_v2(client) as stage:
        session = await stage.session()
        stage.say("Hi")
        await eventually(lambda: bool(seen))
        assert seen == [v1.AgentMessageChunk.of("Hi", "a1")]
        assert session.state.messages[-1].text == "Hi"


async def test_a_restarted_agent_is_asked_for_the_same_version_and_goes_on():
    events: list[accord.Restarted] = []
    restart = accord.Restart(first_pause=0.0, on_event=events.append)
    async with staged_v2(restart=restart) as stage:
        session = await stage.session()
        failing = session.prompt("Hi")
        await stage.insertion("u1")
        stage.say("half")
        await failing.inserted
        await stage.agent.close()
        with pytest.raises(accord.ConnectionClosed):
            await failing
        late = session.prompt("again")
        stage.agent = await stage.target.agents.get()
        hello = await shake_hands_v2(stage.agent)
        assert hello.keys() == {"protocolVersion", "info", "capabilities"}
        request = await stage.agent.expect("session/resume")
        assert "replayFrom" not in request["params"], "what was said so far is here"
        stage.idle(None)
        stage.agent.answer(request, {})
        await stage.insertion("u2")
        stage.state("running")
        stage.say("whole", messageId="a2")
        stage.idle()
        assert (await late).text == "whole"
        assert [message.text for message in session.state.messages] == ["Hi", "half", "again", "whole"]
        assert [event.agent_is_back for event in events] == [True]


async def test_a_message_that_a_restart_replays_is_read_again_from_its_beginning():
    """The agent does not resume without a replay, so the session is loaded: what was read before is forgotten."""
    restart = accord.Restart(first_pause=0.0)
    async with staged_v2(restart=restart) as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.state("running")
        stage.say("half")
        stage.idle()
        assert (await reply).text == "half"
        read = asyncio.ensure_future(anext(aiter(session.updates())))
        await stage.agent.close()
        stage.agent = await stage.target.agents.get()
        await shake_hands_v2(stage.agent)
        stage.agent.error(await stage.agent.expect("session/resume"), -32601, "no resume without a replay")
        request = await stage.agent.expect("session/resume")
        assert request["params"]["replayFrom"] == {"type": "start"}
        content = [{"type": "text", "text": "half"}]
        stage.update({"sessionUpdate": "agent_message", "messageId": "a1", "content": content})
        stage.agent.answer(request, {})
        update = await read
        assert isinstance(update, accord.v1.AgentMessageChunk)
        assert update.content.text == "half"


SKILL = {"type": "skill", "name": "pdf", "description": "Reads PDFs", "path": "/skills/pdf/SKILL.md"}


async def test_skills_stand_among_the_commands_with_their_path():
    async with staged_v2(accord.Client(skills=True)) as stage:
        session = await stage.session(availableCommands=[COMMAND, SKILL])
        command, skill = session.state.commands
        assert (command.name, skill) == ("review", v2.Skill("pdf", "Reads PDFs", "/skills/pdf/SKILL.md"))
        assert session.state.snapshot().commands == (command, skill)
        updates = session.updates()
        stage.update({"sessionUpdate": "available_commands_update", "availableCommands": [SKILL]})
        await anext(updates)
        assert session.state.commands == [skill]


async def test_a_client_says_that_it_takes_skills_only_if_it_does():
    for client, declared in ((accord.Client(skills=True), {"commands": {"skill": {}}}), (accord.Client(), None)):
        target = Scripted()

        async def agent_of(target):
            agent = await target.agents.get()
            return agent, await shake_hands_v2(agent)

        playing = asyncio.create_task(agent_of(target))
        async with accord.connect(target, client, versions=(2,)):
            agent, hello = await playing
            assert hello["capabilities"].get("session") == declared
            await agent.close()


async def test_a_skill_is_named_in_a_prompt_for_an_agent_that_takes_skills():
    async with staged_v2(sessions={**SESSIONS, "prompt": {"skill": {}}}) as stage:
        session = await stage.session(availableCommands=[SKILL])
        session.prompt(v1.SkillReference("pdf"), "Read a.pdf")
        prompt = (await stage.agent.expect("session/prompt"))["params"]["prompt"]
        assert prompt == [{"type": "skill", "name": "pdf"}, {"type": "text", "text": "Read a.pdf"}]
    async with staged_v2() as stage:
        session = await stage.session()
        with pytest.raises(accord.CapabilityMissing):
            session.prompt(v1.SkillReference("pdf"))
