"""What a client never does without being asked to, or without the agent having said that it can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import accord
from accord import v1
from tests.client.conftest import Scripted, Stage, shake_hands, staged

IMAGE = v1.ImageContent.from_bytes(b"\x89PNG", "image/png")
AUDIO = v1.AudioContent.from_bytes(b"RIFF", "audio/wav")
FILE = v1.EmbeddedResource.from_text("text", "file:///a.txt")
STDIO = v1.McpServerStdio("stdio", "/bin/cat", [], [])
HTTP = v1.McpServerHttp("http", "https://example.com/mcp", [])
SSE = v1.McpServerSse("sse", "https://example.com/sse", [])

EVERYTHING = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        name: {} for name in ("list", "resume", "close", "delete", "fork", "additionalDirectories")
    },
    "auth": {"logout": {}},
    "providers": {},
}
NULLS = {
    "loadSession": None,
    "promptCapabilities": {"image": None, "audio": None},
    "mcpCapabilities": {"http": None, "sse": None},
    "sessionCapabilities": dict.fromkeys(("list", "resume", "close", "delete", "fork", "additionalDirectories")),
    "auth": {"logout": None},
    "providers": None,
}


async def listed(remote: accord.RemoteAgent) -> None:
    async for _ in remote.sessions():
        pass


async def sent(session: accord.RemoteSession, block: v1.ContentBlock) -> None:
    session.prompt(block)


ASKS: dict[str, Callable[[accord.RemoteAgent, accord.RemoteSession], Any]] = {
    "session/load": lambda remote, _: remote.load("x", "/"),
    "session/resume": lambda remote, _: remote.resume("x", "/"),
    "session/list": lambda remote, _: listed(remote),
    "session/delete": lambda remote, _: remote.delete("x"),
    "session/fork": lambda _, session: session.fork(),
    "logout": lambda remote, _: remote.logout(),
    "providers/list": lambda remote, _: remote.providers(),
    "providers/set": lambda remote, _: remote.set_provider("main", accord.Endpoint("openai", "https://example.com")),
    "providers/disable": lambda remote, _: remote.disable_provider("main"),
    "more folders": lambda remote, _: remote.new_session("/", additional_directories=["/tmp"]),
    "a server over HTTP": lambda remote, _: remote.new_session("/", mcp_servers=[STDIO, HTTP]),
    "a server over SSE": lambda remote, _: remote.new_session("/", mcp_servers=[SSE]),
    "an image": lambda _, session: sent(session, IMAGE),
    "audio": lambda _, session: sent(session, AUDIO),
    "an embedded file": lambda _, session: sent(session, FILE),
}


@pytest.mark.requirement(
    "capabilities.client-omitted-is-unsupported",
    "capabilities.null-is-unsupported",
    "session.load.only-when-advertised",
    "session.resume.only-when-advertised",
    "session.list.only-when-advertised",
    "session.delete.only-when-advertised",
    "session.fork.only-when-advertised",
    "session.close.only-when-advertised",
    "session.roots.only-when-advertised",
    "auth.logout.only-when-advertised",
    "providers.only-when-advertised",
    "mcp.http-only-when-advertised",
    "mcp.sse-only-when-advertised",
    "prompt.content.only-advertised",
)
@pytest.mark.parametrize("declared", [{}, NULLS], ids=["left out", "null"])
@pytest.mark.parametrize("what", ASKS)
async def test_what_an_agent_did_not_declare_is_not_sent(what: str, declared: dict[str, Any]) -> None:
    async with staged(capabilities=declared) as stage:
        session = await stage.session()
        with pytest.raises(accord.CapabilityMissing):
            await ASKS[what](stage.remote, session)
        await session.close()
        await stage.agent.expect_silence()


@pytest.mark.requirement("capabilities.client-any-combination")
async def test_what_an_agent_declared_is_sent() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        session = await stage.session()
        for what, ask in ASKS.items():
            asking = asyncio.ensure_future(ask(stage.remote, session))
            assert "id" in await stage.agent.receive(), what
            asking.cancel()
            await asyncio.wait([asking])
            if not what.startswith(("an ", "audio")):
                await stage.agent.expect("$/cancel_request")
        closing = asyncio.create_task(session.close())
        stage.agent.answer(await stage.agent.expect("session/close"), {})
        await closing


@pytest.mark.requirement("providers.after-initialize", "prompt.session-first")
async def test_nothing_is_asked_before_the_handshake() -> None:
    target = Scripted()

    async def ask() -> list[v1.ProviderInfo]:
        async with accord.connect(target) as remote:
            return await remote.providers()

    asking = asyncio.create_task(ask())
    agent = await target.agents.get()
    await agent.open()
    hello = await agent.expect("initialize")
    await agent.expect_silence()
    agent.answer(hello, {"protocolVersion": 1, "agentCapabilities": {"providers": {}}})
    agent.answer(await agent.expect("providers/list"), {"providers": []})
    assert await asking == []
    async with staged() as stage:
        opening = asyncio.create_task(stage.remote.new_session("/"))
        call = await stage.agent.expect("session/new")
        await stage.agent.expect_silence()
        stage.agent.answer(call, {"sessionId": "s"})
        (await opening).prompt("Hi")
        assert (await stage.agent.expect("session/prompt"))["params"]["sessionId"] == "s"


# What opening a session says


async def opened(stage: Stage, opening: Any, result: Any = None) -> dict[str, Any]:
    """The params of the request that opens a session, which is answered."""
    asking = asyncio.ensure_future(opening)
    call = await stage.agent.receive()
    stage.agent.answer(call, result)
    await asking
    return call["params"]


@pytest.mark.requirement(
    "session.new.states-cwd-and-servers",
    "session.load.states-cwd-and-servers",
    "session.resume.states-cwd-and-servers",
    "session.roots.only-granted",
    "session.load.empty-answers-accepted",
)
async def test_opening_a_session_names_its_folder_and_servers_and_no_folder_that_nobody_named() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        new = await opened(stage, stage.remote.new_session("/"), {"sessionId": "s"})
        assert new == {"cwd": "/", "mcpServers": []}
        for session_id, result in (("null", None), ("object", {})):
            load = await opened(stage, stage.remote.load(session_id, "/", mcp_servers=[STDIO]), result)
            server = {"name": "stdio", "command": "/bin/cat", "args": [], "env": []}
            assert load == {"sessionId": session_id, "cwd": "/", "mcpServers": [server]}
        resume = await opened(stage, stage.remote.resume("r", "/", mcp_servers=[HTTP]), {})
        assert (resume["sessionId"], resume["cwd"]) == ("r", "/")
        assert [server["url"] for server in resume["mcpServers"]] == ["https://example.com/mcp"]


@pytest.mark.requirement("paths.client-sends-absolute", "session.roots.no-duplicates", "session.roots.nothing-inferred")
async def test_folders_go_out_absolute_and_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project").mkdir()
    here, more = str(tmp_path / "project"), ["lib", tmp_path / "lib", "project", "/docs", "lib"]
    wanted = [str(tmp_path / "lib"), "/docs"]
    async with staged(capabilities=EVERYTHING) as stage:
        new = await opened(stage, stage.remote.new_session("project", additional_directories=more), {"sessionId": "s"})
        load = await opened(stage, stage.remote.load("l", "project", additional_directories=more), {})
        resume = await opened(stage, stage.remote.resume("r", Path("project"), additional_directories=more), {})
        for params in (new, load, resume):
            assert (params["cwd"], params["additionalDirectories"]) == (here, wanted)
        roots = stage.remote.open_sessions[v1.SessionId("s")].roots
        assert (str(tmp_path / "lib" / "a") in roots, str(tmp_path / "other" / "a") in roots) == (True, False)
        listing = asyncio.create_task(listed(stage.remote))
        call = await stage.agent.expect("session/list")
        assert call["params"]["cwd"] == here if "cwd" in call["params"] else True
        stage.agent.answer(call, {"sessions": []})
        await listing


@pytest.mark.requirement("session.roots.resent")
@pytest.mark.parametrize("method", ["resume", "load"])
async def test_a_session_that_is_taken_up_again_names_all_its_folders_again(method: str) -> None:
    declared = {
        "loadSession": method == "load",
        "sessionCapabilities": {"additionalDirectories": {}, **({"resume": {}} if method == "resume" else {})},
    }
    async with staged(capabilities=declared, restart=accord.Restart(first_pause=0.0)) as stage:
        await opened(stage, stage.remote.new_session("/", additional_directories=["/lib", "/docs"]), {"sessionId": "s"})
        await stage.agent.close()
        second = await stage.target.agents.get()
        await shake_hands(second, declared)
        again = await second.expect(f"session/{method}")
        assert again["params"]["additionalDirectories"] == ["/lib", "/docs"]
        second.answer(again, {})
        await second.close()


@pytest.mark.requirement("mcp.command-absolute")
async def test_a_server_s_program_is_named_by_its_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    on_its_path = v1.McpServerStdio("a", "tool", [], [v1.EnvVariable("PATH", str(tmp_path))])
    in_the_folder = v1.McpServerStdio("b", "./tool", [], [])
    async with staged() as stage:
        opening = stage.remote.new_session(tmp_path, mcp_servers=[on_its_path, in_the_folder, STDIO])
        new = await opened(stage, opening, {"sessionId": "s"})
        assert [server["command"] for server in new["mcpServers"]] == [str(tmp_path / "tool")] * 2 + ["/bin/cat"]
        with pytest.raises(accord.ConfigurationError, match="no-such-tool"):
            await stage.remote.new_session("/", mcp_servers=[v1.McpServerStdio("c", "no-such-tool", [], [])])
        await stage.agent.expect_silence()


# What can be chosen


def option(option_id: str, values: list[str], category: str | None = None, **more: Any) -> dict[str, Any]:
    options = [{"value": value, "name": value} for value in values]
    return {
        "type": "select", "id": option_id, "name": option_id, "currentValue": values[0], "options": options,
        "category": category, **more,
    }  # fmt: skip


MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}


async def session_with(stage: Stage, **said: Any) -> accord.RemoteSession:
    await opened(stage, stage.remote.new_session("/"), {"sessionId": "s", **said})
    return stage.remote.open_sessions[v1.SessionId("s")]


@pytest.mark.requirement("mode.set.offered-only", "config.modes-fallback")
async def test_only_a_mode_that_is_offered_is_set() -> None:
    async with staged() as stage:
        session = await session_with(stage, modes=MODES, configOptions=[option("model", ["s", "l"], "model")])
        with pytest.raises(ValueError, match="no mode 'fly'; it has ask, code"):
            await session.set_mode("fly")
        setting = asyncio.create_task(session.set_mode("code"))
        call = await stage.agent.expect("session/set_mode")
        assert call["params"] == {"sessionId": "s", "modeId": "code"}
        stage.agent.answer(call, {})
        await setting
        assert session.state.mode == "code"


@pytest.mark.requirement("config.modes-ignored")
async def test_where_a_config_option_is_the_mode_the_older_modes_are_left_alone() -> None:
    modes = option("how", ["plan", "act"], "mode")
    async with staged() as stage:
        session = await session_with(stage, modes=MODES, configOptions=[modes])
        assert [mode.id for mode in session.state.modes] == ["plan", "act"]
        stage.update({"sessionUpdate": "current_mode_update", "currentModeId": "code"})
        setting = asyncio.create_task(session.set_mode("act"))
        call = await stage.agent.expect("session/set_config_option")
        assert (call["params"]["configId"], call["params"]["value"]) == ("how", "act")
        assert session.state.mode == "plan"
        stage.agent.answer(call, {"configOptions": [{**modes, "currentValue": "act"}]})
        await setting
        assert session.state.mode == "act"


MODELS = {
    "currentModelId": "small",
    "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "large", "name": "Large"}],
}


async def test_only_a_model_that_is_offered_is_set() -> None:
    async with staged() as stage:
        session = await session_with(stage, models=MODELS)
        assert session.state.models == [v1.ModelInfo("small", "Small"), v1.ModelInfo("large", "Large")]
        with pytest.raises(ValueError, match="no model 'huge'; it has small, large"):
            await session.set_model("huge")
        setting = asyncio.create_task(session.set_model("large"))
        call = await stage.agent.expect("session/set_model")
        assert call["params"] == {"sessionId": "s", "modelId": "large"}
        assert session.state.model == "small", "it changes when the agent has answered"
        stage.agent.answer(call, {})
        await setting
        assert session.state.snapshot().model == "large"


async def test_where_a_config_option_is_the_model_the_older_models_are_left_alone() -> None:
    models = option("which", ["fast", "deep"], "model")
    async with staged() as stage:
        session = await session_with(stage, models=MODELS, configOptions=[models])
        assert [it.model_id for it in session.state.models] == ["fast", "deep"]
        setting = asyncio.create_task(session.set_model("deep"))
        call = await stage.agent.expect("session/set_config_option")
        assert (call["params"]["configId"], call["params"]["value"]) == ("which", "deep")
        stage.agent.answer(call, {"configOptions": [{**models, "currentValue": "deep"}]})
        await setting
        assert session.state.model == "deep"


@pytest.mark.parametrize("opening", ["load", "resume", "fork"])
async def test_models_are_read_in_each_answer_that_opens_a_session(opening: str) -> None:
    capabilities = {"loadSession": True, "sessionCapabilities": {"resume": {}, "fork": {}}}
    async with staged(capabilities=capabilities) as stage:
        if opening == "fork":
            first = await session_with(stage)
            opening_call, said = first.fork(), {"sessionId": "copy", "models": MODELS}
        else:
            opening_call, said = getattr(stage.remote, opening)("copy", "/"), {"models": MODELS}
        await opened(stage, opening_call, said)
        session = stage.remote.open_sessions[v1.SessionId("copy")]
        assert (session.state.model, len(session.state.models)) == ("small", 2)


@pytest.mark.requirement(
    "config.set.offered-only",
    "config.unknown-type-ignored",
    "config.category.unknown-accepted",
    "config.order.kept",
    "config.replaced-whole",
)
async def test_only_a_value_that_is_listed_is_set() -> None:
    grouped = option("grouped", ["x"]) | {
        "options": [{"group": "g", "name": "G", "options": [{"value": "x", "name": "X"}, {"value": "y", "name": "Y"}]}]
    }
    options = [
        option("z", ["1", "2"], "no-such-category"),
        {"type": "dial", "id": "dial", "name": "Dial", "currentValue": 3},
        grouped,
        {"type": "boolean", "id": "fast", "name": "Fast", "currentValue": False},
    ]
    async with staged() as stage:
        session = await session_with(stage, configOptions=options)
        assert [it.config_id for it in session.state.config] == ["z", "grouped", "fast"], "in the agent's order"
        assert [it.tag for it in session.state.unknown_config] == ["dial"]
        for name, value in (("z", "3"), ("z", True), ("dial", "4"), ("none", "1"), ("grouped", "z"), ("fast", "yes")):
            with pytest.raises(ValueError, match=name):
                await session.set_config(name, value)
        setting = asyncio.create_task(session.set_config("grouped", "y"))
        call = await stage.agent.expect("session/set_config_option")
        assert (call["params"]["configId"], call["params"]["value"]) == ("grouped", "y")
        stage.agent.answer(call, {"configOptions": [option("only", ["1"])]})
        await setting
        assert [it.config_id for it in session.state.config] == ["only"]
        assert not session.state.unknown_config


# Logging in and out


@pytest.mark.requirement("auth.authenticate.offered-method", "auth.method.untyped-is-agent")
async def test_only_a_way_in_that_the_agent_listed_is_gone() -> None:
    async with staged(methods=[{"id": "web", "name": "In the browser"}]) as stage:
        with pytest.raises(accord.AccordError, match="no login method 'paper'"):
            await stage.remote.login("paper")
        await stage.agent.expect_silence()
        logging_in = asyncio.create_task(stage.remote.login())
        call = await stage.agent.expect("authenticate")
        assert call["params"] == {"methodId": "web"}
        stage.agent.answer(call, {})
        await logging_in


@pytest.mark.requirement("auth.logout.sessions-may-fail")
async def test_a_session_outlives_the_logout_that_its_next_prompt_fails_for() -> None:
    async with staged(capabilities=EVERYTHING, methods=[{"id": "web", "name": "In the browser"}]) as stage:
        session = await stage.session()
        leaving = asyncio.create_task(stage.remote.logout())
        stage.agent.answer(await stage.agent.expect("logout"), {})
        await leaving
        refused = session.prompt("Hi")
        stage.agent.error(await stage.agent.expect("session/prompt"), -32000, "Authentication required")
        with pytest.raises(accord.PeerError) as caught:
            await refused
        assert caught.value.code == -32000
        again = session.prompt("Hi again")
        stage.end(await stage.agent.expect("session/prompt"))
        assert (await again).stop_reason == "end_turn"


# The handshake


@pytest.mark.requirement(
    "initialize.client-states-version",
    "initialize.client-states-capabilities",
    "initialize.client-states-info",
    "capabilities.client-states-files-and-terminal",
)
@pytest.mark.parametrize("lends", [True, False])
async def test_the_first_message_says_who_speaks_which_version_and_what_is_lent(lends: bool) -> None:
    seen: list[dict[str, Any]] = []
    client = accord.Client("editor", version="1.2", files=lends, terminals=lends)
    async with staged(client, seen=seen):
        [hello] = seen
    assert hello["protocolVersion"] == 1
    assert hello["clientInfo"] == {"name": "editor", "version": "1.2"}
    declared = hello["clientCapabilities"]
    assert declared.get("fs", {}) == ({"readTextFile": True, "writeTextFile": True} if lends else {})
    assert declared.get("terminal", False) is lends


@pytest.mark.requirement("initialize.version.client-leaves")
async def test_an_agent_that_speaks_another_version_is_left() -> None:
    target = Scripted()

    async def play() -> None:
        agent = await target.agents.get()
        await agent.open()
        agent.answer(await agent.expect("initialize"), {"protocolVersion": 2})
        await agent.expect_end()

    playing = asyncio.create_task(play())
    with pytest.raises(accord.ProtocolError, match="version 2"):
        async with accord.connect(target):
            pass
    await playing


# What is said


@pytest.mark.requirement("commands.sent-as-prompt", "content.client-binary-base64")
async def test_commands_and_images_are_parts_of_an_ordinary_prompt() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        session = await stage.session()
        session.prompt("/web ACP", IMAGE, v1.EmbeddedResource.from_bytes(b"\0\1", "file:///b"))
        text, image, blob = (await stage.agent.expect("session/prompt"))["params"]["prompt"]
        assert text == {"type": "text", "text": "/web ACP"}
        assert (image["data"], blob["resource"]["blob"]) == ("iVBORw==", "AAE=")


@pytest.mark.requirement("session.list.roots-taken-as-given", "session.list.last-page", "session.list.cursor-opaque")
async def test_lists_are_taken_as_they_are() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        found: list[v1.SessionInfo] = []

        async def collect() -> None:
            found.extend([info async for info in stage.remote.sessions()])

        collecting = asyncio.create_task(collect())
        page = {"sessions": [{"sessionId": "1", "cwd": "/", "additionalDirectories": ["b", "/b", "b"]}]}
        stage.agent.answer(await stage.agent.expect("session/list"), {**page, "nextCursor": " odd=/\u00fc "})
        more = await stage.agent.expect("session/list")
        assert more["params"]["cursor"] == " odd=/\u00fc "
        stage.agent.answer(more, {"sessions": [{"sessionId": "2", "cwd": "/"}]})
        await collecting
        assert [(info.session_id, info.additional_directories) for info in found] == [
            ("1", ["b", "/b", "b"]),
            ("2", []),
        ]


@pytest.mark.requirement("usage.turn.null-is-absent")
async def test_a_null_count_of_tokens_is_none() -> None:
    async with staged() as stage:
        reply = (await stage.session()).prompt("Hi")
        usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2, "thoughtTokens": None, "cachedReadTokens": None}
        stage.agent.answer(await stage.agent.expect("session/prompt"), {"stopReason": "end_turn", "usage": usage})
        spent = (await reply).usage
        assert spent is not None
        assert (spent.total_tokens, spent.thought_tokens, spent.cached_read_tokens) == (3, None, None)


@pytest.mark.requirement("prompt.refusal.shown")
async def test_a_refused_prompt_is_shown_as_no_part_of_the_conversation() -> None:
    async with staged() as stage:
        session = await stage.session()
        for text, reason in (("one", "end_turn"), ("two", "refusal"), ("three", "end_turn")):
            reply = session.prompt(text)
            prompt = await stage.agent.expect("session/prompt")
            stage.update({"sessionUpdate": "tool_call", "toolCallId": text, "title": text})
            stage.say(f"{text}!")
            stage.end(prompt, reason)
            await reply
        assert [entry.refused for entry in session.state.timeline] == [False] * 3 + [True] * 3 + [False] * 3
        assert session.markdown().count("refused; the agent continues without this") == 1
