"""A client's files and terminals as tools of an MCP server, for agents of version 2."""

import asyncio
import sys

import pytest

import accord


@pytest.fixture
def caller():
    """An agent that calls the tool that the prompt names, with the words `name=value` after it."""
    agent = accord.Agent("caller")

    @agent.on_prompt
    async def call(turn):
        name, *words = turn.text.split(" ")
        mcp = turn.session.mcp
        if name == "list":
            return await turn.say(" ".join(sorted(tool.qualified_name for tool in await mcp.tools())))
        arguments = dict(word.split("=", 1) for word in words)
        try:
            result = await mcp.call(turn, name, arguments)
        except accord.McpServerError as error:
            await turn.say(f"error: {error.problem}")
        else:
            await turn.say(("failed: " if result.failed else "") + result.text)

    return agent


def lends(**services):
    return accord.Client(lend_as_mcp=True, **services)


@pytest.mark.parametrize(
    ("services", "tools"),
    [
        ({"files": True}, "editor/read_text_file editor/write_text_file"),
        ({"terminals": True}, "editor/run_command"),
        ({"files": accord.Files(write=False)}, "editor/read_text_file"),
        ({}, ""),
    ],
    ids=["files", "terminals", "reading", "nothing"],
)
async def test_the_tools_are_those_of_what_is_lent(caller, services, tools):
    async with accord.connect(caller, lends(**services), versions=(2,)) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("list")).text == tools


async def test_files_are_read_as_the_editor_has_them_and_written_where_the_session_is(caller, tmp_path):
    path = tmp_path.resolve() / "notes.txt"
    path.write_text("saved\n")
    files = accord.Files(unsaved={path: "unsaved\nsecond\n"})
    async with accord.connect(caller, lends(files=files), versions=(2,)) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.prompt(f"read_text_file path={path}")).text == "unsaved\nsecond\n"
        assert (await session.prompt("read_text_file path=notes.txt line=2")).text == "second\n"
        await session.prompt("write_text_file path=new.txt content=hello")
        assert (tmp_path / "new.txt").read_text() == "hello"
    assert [change.path.name for change in files.changes] == ["new.txt"]


async def test_no_tool_leads_out_of_the_session_s_folders(caller, tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside.txt"
    inside.mkdir()
    outside.write_text("secret")
    async with accord.connect(caller, lends(files=True, terminals=True), versions=(2,)) as remote:
        session = await remote.new_session(inside)
        for path in (outside, "../outside.txt"):
            said = (await session.prompt(f"read_text_file path={path}")).text
            assert said.startswith("failed: ")
            assert "secret" not in said
        await session.prompt("write_text_file path=../outside.txt content=changed")
        assert outside.read_text() == "secret"
        assert (await session.prompt("run_command command=pwd cwd=..")).text.startswith("failed: ")


async def test_a_command_runs_where_the_user_can_watch_it(caller, tmp_path):
    shown = []

    async def show(session, terminal):
        shown.extend([text async for text in terminal.follow()])

    client = lends(terminals=accord.Terminals(on_open=show))
    async with accord.connect(caller, client, versions=(2,)) as remote:
        session = await remote.new_session(tmp_path)
        said = (await session.prompt("run_command command=pwd")).text
        assert said == f"{tmp_path.resolve()}\n\n[exit code 0]"
        missing = (await session.prompt("run_command command=no-such-program-here")).text
        assert missing.startswith("failed: ")
        assert "command not found" in missing
    assert "".join(shown).startswith(str(tmp_path.resolve()))


async def test_a_cancelled_turn_ends_its_command(caller, tmp_path):
    opened = asyncio.Event()
    ended = asyncio.Event()

    async def show(session, terminal):
        opened.set()
        await terminal.wait()
        ended.set()

    client = lends(terminals=accord.Terminals(on_open=show))
    async with accord.connect(caller, client, versions=(2,)) as remote:
        session = await remote.new_session(tmp_path)
        reply = session.prompt("run_command command=yes>/dev/null")
        async with asyncio.timeout(60):
            await opened.wait()
            await reply.cancel()
            await ended.wait()


async def test_each_session_has_folders_of_its_own(caller, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name.txt").write_text(name)
    async with accord.connect(caller, lends(files=True), versions=(2,)) as remote:
        sessions = [await remote.new_session(tmp_path / name) for name in ("one", "two")]
        said = await asyncio.gather(*(session.prompt("read_text_file path=name.txt") for session in sessions))
        assert [outcome.text for outcome in said] == ["one", "two"]
        fork = await sessions[1].fork()
        await sessions[1].close()
        assert (await fork.prompt("read_text_file path=name.txt")).text == "two"


AGENT = """
import accord
from accord import v1

agent = accord.Agent("plain", capabilities=lambda _: v1.AgentCapabilities())


@agent.on_prompt
async def reply(turn):
    await turn.say((await turn.session.mcp.call(turn, "read_text_file", {"path": turn.text})).text)


agent.run()
"""


async def test_an_agent_without_acp_reaches_the_tools_over_the_bridge(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "notes.txt").write_text("hello")
    command = [sys.executable, str(tmp_path / "agent.py")]
    async with accord.connect(command, lends(files=True), versions=(2,)) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.prompt("notes.txt")).text == "hello"


async def test_agents_of_the_first_version_get_requests_and_no_server(caller, tmp_path):
    async with accord.connect(caller, lends(files=True), versions=(1,)) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.prompt("list")).text == ""
