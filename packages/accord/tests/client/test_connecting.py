"""From a command, a URL or an Agent to a RemoteAgent; logins, sessions, and agents that die."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import accord
from accord import v1
from accord.schema import codec
from accord.testing import ScriptedPeer, script_command
from tests.client.conftest import shake_hands, staged


def echo(store: Path | None = None) -> accord.Agent:
    agent = accord.Agent("echo", version="1", store=store)

    @agent.on_prompt
    async def say(turn: accord.Turn) -> None:
        await turn.say(turn.text)

    return agent


async def test_an_agent_in_memory_needs_no_process() -> None:
    async with accord.connect(echo()) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("Hi")).text == "Hi"
        assert remote.info == v1.Implementation("echo", "1")
        assert remote.name == "echo"


async def test_an_agent_in_memory_without_a_prompt_handler_is_refused_at_once() -> None:
    with pytest.raises(accord.ConnectionClosed, match=r"mute cannot serve: no function answers prompts"):
        async with accord.connect(accord.Agent("mute"), timeout=1000.0):
            pass


async def test_an_agent_in_memory_whose_store_cannot_be_opened_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("this is not a database, whatever its name says")
    with pytest.raises(accord.ConnectionClosed, match="echo cannot serve: ") as raised:
        async with accord.connect(echo(tmp_path / "store.db"), timeout=1000.0):
            pass
    assert isinstance(raised.value.__cause__, accord.StoreError)


@pytest.mark.parametrize("command", [[sys.executable, "-m", "accord", "demo"], f'"{sys.executable}" -m accord demo'])
async def test_a_command_is_a_list_or_a_string_that_no_shell_runs(command: Any) -> None:
    async with accord.connect(command) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("Hi")).stop_reason == "end_turn"


async def test_a_command_that_does_not_exist_is_one_clear_error() -> None:
    with pytest.raises(accord.ConnectionClosed, match="command not found"):
        async with accord.connect(["no-such-agent-anywhere"]):
            pass


async def test_its_environment_is_ours_changed_or_only_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_TEST_SECRET", "s")
    program = 'import os, sys; sys.exit(f\'{os.environ.get("ACCORD_TEST_SECRET")} {os.environ.get("MORE")}\')'
    command = [sys.executable, "-S", "-c", program]
    with pytest.raises(accord.ConnectionClosed, match="s 1"):
        async with accord.connect(command, env={"MORE": "1"}):
            pass
    with pytest.raises(accord.ConnectionClosed, match="None None"):
        async with accord.connect(command, inherit=["PATH", "LD_LIBRARY_PATH"]):
            pass


async def test_the_trace_holds_both_directions(tmp_path: Path) -> None:
    async with accord.connect(echo(), trace=tmp_path / "wire.jsonl") as remote:
        await remote.new_session("/")
    text = (tmp_path / "wire.jsonl").read_text()
    assert '"dir":"out","frame":{"jsonrpc":"2.0","id":1,"method":"initialize"' in text
    assert '"sessionId"' in text


# Sessions


@pytest.mark.requirement("session.list.last-page")
async def test_sessions_are_listed_page_by_page() -> None:
    async with staged(capabilities={"sessionCapabilities": {"list": {}}}) as stage:

        async def play() -> None:
            first = await stage.agent.expect("session/list")
            stage.agent.answer(first, {"sessions": [{"sessionId": "1", "cwd": "/"}], "nextCursor": "more"})
            second = await stage.agent.expect("session/list")
            assert second["params"]["cursor"] == "more"
            stage.agent.answer(second, {"sessions": [{"sessionId": "2", "cwd": "/"}]})

        playing = asyncio.create_task(play())
        assert [info.session_id async for info in stage.remote.sessions()] == ["1", "2"]
        await playing


async def test_loading_folds_the_past_before_it_returns() -> None:
    async with staged(capabilities={"loadSession": True}) as stage:
        loading = asyncio.create_task(stage.remote.load("s", "/"))
        load = await stage.agent.expect("session/load")
        content = {"type": "text", "text": "Do it"}
        stage.update({"sessionUpdate": "user_message_chunk", "content": content})
        stage.say("Done.")
        stage.agent.answer(load)
        session = await loading
        assert [(it.speaker, it.text) for it in session.state.messages] == [("user", "Do it"), ("agent", "Done.")]


async def test_what_the_agent_never_declared_is_not_sent() -> None:
    async with staged() as stage:
        session = await stage.session()
        for attempt in (
            stage.remote.load("x", "/"),
            stage.remote.resume("x", "/"),
            session.fork(),
            stage.remote.logout(),
        ):
            with pytest.raises(accord.CapabilityMissing):
                await attempt
        with pytest.raises(accord.CapabilityMissing):
            await stage.remote.new_session("/", additional_directories=["/tmp"])
        await stage.agent.expect_silence()


async def test_capabilities_are_questions() -> None:
    capabilities = {"loadSession": True, "promptCapabilities": {"image": True}, "sessionCapabilities": {"fork": {}}}
    async with staged(capabilities=capabilities) as stage:
        offers = stage.remote.capabilities
        assert (offers.prompt.image, offers.prompt.audio) == (True, False)
        assert (offers.sessions.load, offers.sessions.fork, offers.sessions.resume) == (True, True, False)
        assert not offers.mcp.http


@pytest.mark.requirement("config.boolean.set-with-type")
async def test_modes_and_config_options_are_set_and_folded() -> None:
    async with staged() as stage:
        opening = asyncio.create_task(stage.remote.new_session("/"))
        option = {"type": "boolean", "id": "fast", "name": "Fast", "currentValue": False}
        modes = {
            "currentModeId": "ask",
            "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
        }
        new = await stage.agent.expect("session/new")
        stage.agent.answer(new, {"sessionId": "s", "modes": modes, "configOptions": [option]})
        session = await opening
        assert session.state.mode == "ask"
        setting = asyncio.create_task(session.set_mode("code"))
        stage.agent.answer(await stage.agent.expect("session/set_mode"))
        await setting
        assert session.state.mode == "code"
        setting = asyncio.create_task(session.set_config("fast", True))
        request = await stage.agent.expect("session/set_config_option")
        assert request["params"] == {"sessionId": "s", "configId": "fast", "value": True, "type": "boolean"}
        stage.agent.answer(request, {"configOptions": [{**option, "currentValue": True}]})
        await setting
        fast = session.state.option("fast")
        assert fast is not None
        assert fast.current_value is True


@pytest.mark.parametrize(("embeds", "kind"), [(True, "resource"), (False, "resource_link")])
async def test_files_go_along_as_what_the_agent_takes(tmp_path: Path, embeds: bool, kind: str) -> None:
    (tmp_path / "a b.txt").write_text("text")
    (tmp_path / "c.txt").write_text("more")
    async with staged(capabilities={"promptCapabilities": {"embeddedContext": embeds}}) as stage:
        session = await stage.session(cwd=str(tmp_path))
        session.prompt('See @"a b.txt", me@c.txt and @nothing.', Path("c.txt"), mentions=True)
        sent = (await stage.agent.expect("session/prompt"))["params"]["prompt"]
        assert [block["type"] for block in sent] == ["text", kind, kind]
        uris = [block["resource"]["uri"] if embeds else block["uri"] for block in sent[1:]]
        assert uris == [(tmp_path / "a b.txt").as_uri(), (tmp_path / "c.txt").as_uri()]


@pytest.mark.requirement("content.text-is-markdown")
async def test_a_session_reads_as_markdown() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("Fix it")
        prompt = await stage.agent.expect("session/prompt")
        diff = {"type": "diff", "path": "/a", "oldText": "x\n", "newText": "y\n"}
        call = {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "title": "Edit *a*",
            "kind": "edit",
            "status": "completed",
        }
        stage.update({**call, "content": [diff]})
        stage.say("Fixed.")
        stage.end(prompt)
        await reply
        assert session.markdown() == (
            "> **You:** Fix it\n\n- **Edit \\*a\\*** (edit, done)\n\n"
            "  ```diff\n  --- /a\n  +++ /a\n  @@ -1 +1 @@\n  -x\n  +y\n  ```\n\nFixed.\n"
        )


# Logins


async def wants_a_key(peer: ScriptedPeer) -> None:
    """An agent that wants a variable and then `authenticate`."""
    import os

    hello = await peer.expect("initialize")
    method = {"type": "env_var", "id": "key", "name": "API key", "vars": [{"name": "ACCORD_TEST_KEY"}]}
    peer.answer(hello, {"protocolVersion": 1, "authMethods": [method]})
    if os.environ.get("ACCORD_TEST_KEY") == "k":
        asked = await peer.expect("authenticate")
        assert asked["params"] == {"methodId": "key"}
        peer.answer(asked)
    await peer.expect_end()


async def wants_a_terminal(peer: ScriptedPeer) -> None:
    """An agent whose login is a command at a terminal."""
    hello = await peer.expect("initialize")
    assert hello["params"]["clientCapabilities"]["auth"]["terminal"] is True
    assert hello["params"]["clientCapabilities"]["_meta"]["terminal-auth"] is True
    older = {"id": "old", "name": "Log in", "_meta": {"terminal-auth": {"command": sys.executable, "args": ["-c", ""]}}}
    failing = {
        "id": "no",
        "name": "No",
        "_meta": {"terminal-auth": {"command": sys.executable, "args": ["-c", "exit(4)"]}},
    }
    peer.answer(hello, {"protocolVersion": 1, "authMethods": [older, failing]})
    await peer.expect_end()


@pytest.mark.requirement("auth.environment.set-at-start")
async def test_logging_in_with_variables_starts_the_agent_anew_with_them() -> None:
    async with accord.connect(script_command(wants_a_key)) as remote:
        with pytest.raises(accord.AccordError, match="ACCORD_TEST_KEY"):
            await remote.login()
        await remote.login(env={"ACCORD_TEST_KEY": "k"})


async def test_a_terminal_login_is_run_and_never_authenticated() -> None:
    async with accord.connect(script_command(wants_a_terminal)) as remote:
        await remote.login("old")
        with pytest.raises(accord.AccordError, match="exit code 4"):
            await remote.login("no")
        with pytest.raises(accord.AccordError, match="old, no"):
            await remote.login()


OWN_LOGIN = """
import json, os, sys
if "--login" in sys.argv:
    words = [*sys.argv[1:], os.environ["USUAL"], os.environ["EXTRA"]]
    words.append(str(os.path.samefile(os.getcwd(), os.path.dirname(sys.argv[0]))))
    open(os.environ["NOTED"], "w").write(" ".join(words))
    sys.exit(0)
hello = json.loads(sys.stdin.readline())
method = {"type": "terminal", "id": "t", "name": "T", "args": ["--login"], "env": {"EXTRA": "more"}}
print(json.dumps({"jsonrpc": "2.0", "id": hello["id"], "result": {"protocolVersion": 1, "authMethods": [method]}}))
sys.stdout.flush()
sys.stdin.read()
"""


@pytest.mark.requirement("auth.terminal.same-program", "auth.terminal.adds-to-setup")
async def test_a_terminal_login_is_the_agent_s_own_program_with_more_arguments_and_variables(tmp_path: Path) -> None:
    program, noted = tmp_path / "agent.py", tmp_path / "noted"
    program.write_text(OWN_LOGIN)
    env = {"USUAL": "usual", "NOTED": str(noted)}
    async with accord.connect([sys.executable, str(program), "--acp"], env=env, cwd=tmp_path) as remote:
        await remote.login()
    assert noted.read_text() == "--acp --login usual more True"


@pytest.mark.requirement("auth.environment.defaults")
def test_a_variable_is_secret_and_needed_unless_it_says_otherwise() -> None:
    said = (
        b'{"type":"env_var","id":"k","name":"K","vars":[{"name":"A_1"},{"name":"B_1","secret":false,"optional":true}]}'
    )
    method = codec.decode(said, v1.AuthMethod)
    assert isinstance(method, v1.AuthMethodEnvVar)
    assert [(it.secret, it.optional) for it in method.vars] == [(True, False), (False, True)]
    assert [it.name for it in method.missing({})] == ["A_1"]
    assert method.missing({"A_1": "x"}) == []


# Agents that die


async def test_a_dead_agent_is_started_anew_and_its_session_goes_on() -> None:
    events: asyncio.Queue[accord.Restarted] = asyncio.Queue()
    policy = accord.Restart(first_pause=0.0, on_event=events.put_nowait)
    capabilities = {"sessionCapabilities": {"resume": {}}}
    async with staged(capabilities=capabilities, restart=policy) as stage:
        session = await stage.session()
        reply = session.prompt("a")
        await stage.agent.expect("session/prompt")
        await stage.agent.close()
        with pytest.raises(accord.ConnectionClosed):
            await reply
        second = await stage.target.agents.get()
        await shake_hands(second, capabilities)
        resume = await second.expect("session/resume")
        assert resume["params"]["sessionId"] == "s"
        second.answer(resume)
        event = await events.get()
        assert (event.agent_is_back, event.resumed, event.lost) == (True, [session], [])
        again = session.prompt("b")
        second.answer(await second.expect("session/prompt"), {"stopReason": "end_turn"})
        assert (await again).stop_reason == "end_turn"
        await second.close()


async def test_a_session_that_cannot_be_taken_up_is_lost_and_said_to_be() -> None:
    events: asyncio.Queue[accord.Restarted] = asyncio.Queue()
    async with staged(restart=accord.Restart(first_pause=0.0, on_event=events.put_nowait)) as stage:
        session = await stage.session()
        await stage.agent.close()
        second = await stage.target.agents.get()
        await shake_hands(second)
        event = await events.get()
        assert (event.agent_is_back, event.resumed, event.lost) == (True, [], [session])
        assert not session.is_open
        await second.close()


async def test_an_agent_that_ignores_a_cancel_is_ended_and_taken_up_again() -> None:
    capabilities = {"loadSession": True}
    async with staged(capabilities=capabilities) as stage:
        session = await stage.session()
        reply = session.prompt("a")
        await stage.agent.expect("session/prompt")
        cancelling = asyncio.create_task(reply.cancel(within=0.01))
        await stage.agent.expect("session/cancel")
        await stage.agent.expect_end()
        second = await stage.target.agents.get()
        await shake_hands(second, capabilities)
        second.answer(await second.expect("session/load"))
        assert (await cancelling).stop_reason == "cancelled"
        assert session.is_open
        await second.close()
