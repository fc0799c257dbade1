"""A wrong value is refused by the call that it is given to, and the error names the argument and what it takes."""

from pathlib import Path

import pytest

import accord
from accord import v1

AGENT = accord.Agent("echo")
AGENT.on_prompt(lambda turn: turn.say(" ".join(type(block).__name__ for block in turn.prompt)))


@pytest.fixture
async def session(tmp_path):
    async with accord.connect(AGENT) as remote:
        yield await remote.new_session(tmp_path)


@pytest.fixture
async def remote():
    async with accord.connect(AGENT) as remote:
        yield remote


CLIENTS = {
    "a word for permissions": (
        lambda: accord.Client(permissions="all"),
        "permissions must be one of none, ask, edit, auto, got 'all'",
    ),
    "a number for files": (lambda: accord.Client(files=5), "Client(files=...) takes True, False or a Service, got int"),
    "a class of services": (lambda: accord.Client(files=accord.Files), "the class Files; write it with parentheses"),
    "True for forms": (lambda: accord.Client(elicitation=True), "Client(elicitation=...) takes a function"),
    "a function among services": (lambda: accord.Client(services=[print]), "Client(services=...) takes a Service"),
    "a word for the asking function": (lambda: accord.Permissions("all"), "Permissions(ask) takes a function"),
    "a path for a policy": (lambda: accord.Permissions(policy="a.toml"), "use PermissionPolicy.load(path)"),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_refuses_what_it_cannot_lend(name):
    make, words = CLIENTS[name]
    with pytest.raises((TypeError, ValueError)) as raised:
        make()
    assert words in str(raised.value)


TARGETS = {
    "nothing": (None, TypeError, "connect(target) takes a command, a URL or an Agent, got None"),
    "a number": (5, TypeError, "connect(target) takes a command, a URL or an Agent, got int 5"),
    "a path": (Path("agent.py"), TypeError, "write ['agent.py'] to run it"),
    "no words": ([], ValueError, "command must be a list of words, the program first, got []"),
    "numbers": ([1, 2], ValueError, "command must be a list of words, the program first, got [1, 2]"),
}


@pytest.mark.parametrize("name", TARGETS)
async def test_connect_refuses_what_is_no_agent(name):
    target, kind, words = TARGETS[name]
    with pytest.raises(kind) as raised:
        async with accord.connect(target):
            pass
    assert words in str(raised.value)


async def test_connect_refuses_what_is_no_client():
    with pytest.raises(TypeError, match=r"connect\(client\) takes a Client, got the class Client"):
        async with accord.connect(AGENT, accord.Client):
            pass


def test_a_plain_with_block_is_told_to_be_async():
    with pytest.raises(TypeError, match=r"write `async with accord\.connect"), accord.connect(AGENT):
        pass


async def test_awaiting_a_connection_teaches_the_block():
    with pytest.raises(TypeError, match=r"cannot be awaited; write `async with accord\.connect"):
        await accord.connect(AGENT)


async def test_a_connection_without_its_block_has_no_sessions():
    with pytest.raises(AttributeError, match="not connected yet, so it has no 'new_session'; write `async with"):
        await accord.connect(AGENT).new_session("/")


async def test_a_prompt_takes_a_list_of_texts_and_paths(session, tmp_path):
    (tmp_path / "y").write_text("hello")
    outcome = await session.prompt(["x", Path("y")], v1.TextContent("z"))
    assert outcome.text == "TextContent ResourceLink TextContent"


PROMPTS = {
    "nothing": ([], ValueError, "at least one text, path or block"),
    "a number": ([5], TypeError, "session.prompt() takes text or a content block, got int 5"),
    "bytes in a list": ([["x", b"y"]], TypeError, "got bytes b'y'; decode it first"),
    "a missing file": ([Path("no such file")], ValueError, "there is no such file or folder"),
    "a bad block": ([v1.TextContent(5)], TypeError, "got an invalid TextContent: expected `str`, got `int` at $.text"),
}


@pytest.mark.parametrize("name", PROMPTS)
async def test_a_prompt_refuses_what_cannot_be_sent(session, name):
    content, kind, words = PROMPTS[name]
    with pytest.raises(kind) as raised:
        session.prompt(*content)
    assert words in str(raised.value)
    assert not session.is_busy


async def test_a_session_needs_a_folder(remote, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cwd must be a folder, got the file"):
        await remote.new_session(tmp_path / "file")
    with pytest.raises(TypeError, match="cwd takes a path, as text or a Path, got int 5"):
        await remote.new_session(5)


async def test_the_lists_of_a_session_are_lists(remote):
    with pytest.raises(TypeError, match=r"additional_directories takes a list of paths, got str '/tmp'; write"):
        await remote.new_session("/", additional_directories="/tmp")
    with pytest.raises(
        TypeError, match=r"mcp_servers takes descriptions such as v1.McpServerStdio, or accord.tools\(...\), got dict"
    ):
        await remote.new_session("/", mcp_servers=[{"name": "files"}])


async def test_a_request_with_a_bad_field_is_refused_before_it_is_sent(remote):
    with pytest.raises(TypeError, match=r"remote.request\(\) got an invalid DeleteSessionRequest: expected `str`"):
        await remote.request(v1.DeleteSessionRequest(5))


def test_a_store_in_memory_needs_no_file():
    with pytest.raises(ValueError, match=r"use accord.MemoryStore\(\)"):
        accord.SqliteStore(":memory:")


async def test_an_agent_may_name_its_store_as_sqlite_names_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = accord.Agent("forgetful", store=":memory:")
    agent.on_prompt(lambda turn: turn.say(turn.text))
    async with accord.connect(agent) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.prompt("hi")).text == "hi"
        assert [info.session_id async for info in remote.sessions()] == [session.id]
    assert list(tmp_path.iterdir()) == []
