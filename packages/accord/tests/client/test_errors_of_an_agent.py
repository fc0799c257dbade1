"""What the user of a client learns when an agent's own code fails: in the answer, in notes, and on standard error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import accord
from accord.errors import MOST_CHARACTERS, MOST_LINES
from tests.client import failing_agent

COMMAND = [sys.executable, str(Path(failing_agent.__file__))]


def notes_of(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", []))


async def failed(remote: accord.RemoteAgent, prompt: str, folder: Path | str = "/") -> accord.PeerError:
    """The error that this prompt is answered with."""
    session = await remote.new_session(folder)
    with pytest.raises(accord.PeerError) as raised:
        await session.prompt(prompt)
    return raised.value


# Standard error


async def test_a_failed_turn_comes_with_the_traceback_that_the_agent_wrote() -> None:
    async with accord.connect(COMMAND) as remote:
        error = await failed(remote, "raise the cat is out")
    assert error.message == "Internal error"
    assert error.data is None
    assert "the last lines of the agent's standard error:" in notes_of(error)
    assert "Traceback" in notes_of(error)
    assert notes_of(error).endswith("\n  ValueError: the cat is out")
    assert error.stderr.endswith("ValueError: the cat is out")


async def test_the_log_of_a_failed_turn_says_how_the_client_would_learn_the_error() -> None:
    async with accord.connect(COMMAND) as remote:
        error = await failed(remote, "raise it")
    assert 'the peer was told only "Internal error" (Agent(debug=True) sends it the error)' in error.stderr


async def test_an_agent_that_debugs_tells_the_client_what_was_raised() -> None:
    async with accord.connect([*COMMAND, "debug"]) as remote:
        error = await failed(remote, "raise the cat is out")
    assert error.data == {"error": "ValueError: the cat is out"}
    assert "was told only" not in error.stderr


async def test_an_agent_that_ends_at_its_start_is_a_connection_closed_by_its_public_name() -> None:
    program = "import sys; print('no key was given', file=sys.stderr); sys.exit(4)"
    with pytest.raises(accord.ConnectionClosed) as raised:
        async with accord.connect([sys.executable, "-c", program]):
            pass
    error = raised.value
    assert type(error) is accord.ConnectionClosed
    assert str(error).endswith("ended before it answered (exit code 4): no key was given")
    assert (error.reason, error.exit_code, error.stderr) == ("died_at_start", 4, "no key was given\n")
    assert notes_of(error) == "the last lines of the agent's standard error:\n  no key was given"


async def test_each_line_of_standard_error_is_passed_on_as_it_is() -> None:
    lines: list[str] = []
    async with accord.connect(COMMAND, on_stderr=lines.append) as remote:
        session = await remote.new_session("/")
        await session.prompt("write 3")
        with pytest.raises(accord.ConnectionClosed):
            await session.prompt("die")
    assert lines == ["line 0", "line 1", "line 2", "one", "\x1b[31mtwo"]


async def test_the_tail_of_standard_error_has_what_came_before_the_answer() -> None:
    async with accord.connect(COMMAND) as remote:
        assert remote.stderr_tail() == []
        session = await remote.new_session("/")
        await session.prompt("write 100")
        assert remote.stderr_tail() == [f"line {number}" for number in range(80, 100)]
        assert remote.stderr_tail(lines=2) == ["line 98", "line 99"]
        assert remote.stderr_tail(lines=0) == []


async def test_asking_for_the_tail_inside_of_on_stderr_keeps_the_order_of_the_lines() -> None:
    lines: list[str] = []
    tails: list[list[str]] = []

    def on_stderr(line: str) -> None:
        lines.append(line)
        if line == "line 0":
            tails.append(remote.stderr_tail(1))

    async with accord.connect(COMMAND, on_stderr=on_stderr) as remote:
        session = await remote.new_session("/")
        await session.prompt("write 20000")
    assert lines == [f"line {number}" for number in range(20_000)]
    assert tails


async def test_the_end_of_an_agents_process_comes_with_its_last_lines_made_printable() -> None:
    async with accord.connect(COMMAND) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.ConnectionClosed) as raised:
            await session.prompt("die")
        assert raised.value.stderr == "one\n\x1b[31mtwo\n"
        assert notes_of(raised.value) == "the last lines of the agent's standard error:\n  one\n  ␛[31mtwo"
        assert remote.stderr_tail() == ["one", "\x1b[31mtwo"]


async def test_an_agent_that_cannot_start_comes_with_its_last_lines() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('first line\\nlast line')"]
    with pytest.raises(accord.ConnectionClosed, match="last line") as raised:
        async with accord.connect(command):
            pass
    assert notes_of(raised.value).endswith("\n  first line\n  last line")


async def test_what_an_error_carries_of_standard_error_is_bounded() -> None:
    async with accord.connect(COMMAND) as remote:
        session = await remote.new_session("/")
        await session.prompt("write 10000")
        error = await failed(remote, "raise " + "x" * 10_000)
    assert len(error.stderr) <= MOST_CHARACTERS
    assert len(error.stderr.split("\n")) <= MOST_LINES
    assert error.stderr.endswith("xxx")


async def test_an_agent_in_memory_has_no_standard_error_of_its_own() -> None:
    async with accord.connect(failing_agent.agent) as remote:
        error = await failed(remote, "raise it")
        assert remote.stderr_tail() == []
    assert (error.stderr, notes_of(error)) == ("", "")


# Errors in words


@pytest.mark.parametrize("way", ["read", "read-in-a-group"])
async def test_a_capability_that_the_client_lacks_is_said_in_words(way: str) -> None:
    async with accord.connect(failing_agent.agent) as remote:
        error = await failed(remote, f"{way} notes.txt")
    assert "needs the capability fs.read_text_file" in error.message
    assert error.code == -32603


@pytest.mark.parametrize("way", ["read", "read-in-a-group"])
async def test_a_clients_refusal_of_a_file_is_said_in_words(way: str, tmp_path: Path) -> None:
    client = accord.Client(files=True)
    async with accord.connect(failing_agent.agent, client) as remote:
        error = await failed(remote, f"{way} missing.txt", tmp_path)
    assert "fs/read_text_file" in error.message
    assert "missing.txt" in error.message
    assert error.code == -32603


async def test_a_refusal_by_the_agents_own_machine_is_said_in_words(tmp_path: Path) -> None:
    agent = accord.Agent("local", local=True)

    @agent.on_prompt
    async def read(turn: accord.Turn) -> None:
        await turn.client.read_text_file("missing.txt")

    async with accord.connect(agent) as remote:
        error = await failed(remote, "go", tmp_path)
    assert "missing.txt" in error.message


async def test_what_another_agent_answered_is_not_told_to_the_client() -> None:
    agent = accord.Agent("passing on")

    @agent.on_prompt
    async def ask_the_other(turn: accord.Turn) -> None:
        async with accord.connect(inner) as other:
            await (await other.new_session("/")).prompt("go")

    inner = accord.Agent("inner")

    @inner.on_prompt
    async def refuse(turn: accord.Turn) -> None:
        raise accord.RequestError(-32001, "the secret of the inner agent")

    async with accord.connect(agent) as remote:
        error = await failed(remote, "go")
    assert error.message == "Internal error"
    assert "secret" not in str(error)
