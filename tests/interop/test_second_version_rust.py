"""The Rust SDK in version 2, both ways: our client with its agent, and its two clients with our agents."""

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from benchmarks.build import Unavailable
from interop.peers import RUST_V2, had

import accord
from interop import agents

pytestmark = [pytest.mark.rust, pytest.mark.timeout(1800)]

AGENTS = Path(agents.__file__).parent


@pytest.fixture
def programs():
    """The folder of the SDK's programs."""
    try:
        return had(RUST_V2).folder / "bin"
    except Unavailable as missing:
        pytest.skip(str(missing))


@asynccontextmanager
async def connected(programs, versions=(2, 1)):
    async with accord.connect([str(programs / "simple_agent_v2")], versions=versions) as remote:
        yield remote


async def ran(*command, cwd):
    """What a program of the SDK has written to its output and to its standard error."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*map(str, command), cwd=cwd, stdout=pipe, stderr=pipe)
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode(), errors.decode()


# Our client with its agent


@pytest.mark.parametrize("versions", [(2, 1), (2,)])
async def test_a_chunk_that_a_whole_message_repeats_is_shown_once(programs, versions):
    async with connected(programs, versions) as remote:
        assert (remote.version, remote.name) == (2, "simple-agent-v2")
        session = await remote.new_session("/")
        reply = session.prompt("one")
        assert "".join([text async for text in reply.iter_text()]) == "Echo: one"
        outcome = await reply
        assert (outcome.text, outcome.stop_reason) == ("Echo: one", "end_turn")
        assert [message.text for message in session.state.messages] == ["one", "Echo: one"]


async def test_an_agent_of_version_2_alone_refuses_a_client_of_version_1(programs):
    with pytest.raises(accord.PeerError):
        async with connected(programs, (1,)):
            pass


async def test_prompts_that_come_meanwhile_are_held_in_their_order(programs):
    async with connected(programs) as remote:
        session = await remote.new_session("/")
        replies = [session.prompt(f"number {number}") for number in range(20)]
        assert [(await reply).text for reply in replies] == [f"Echo: number {number}" for number in range(20)]
        assert [message.text for message in session.state.messages][::2] == [f"number {number}" for number in range(20)]
        await session.idle()


async def test_a_prompt_that_is_cancelled_ends_and_the_next_one_works(programs):
    async with connected(programs) as remote:
        session = await remote.new_session("/")
        first, held = session.prompt("first"), session.prompt("held")
        assert (await held.cancel()).stop_reason in ("cancelled", "end_turn")
        assert (await first).stop_reason == "end_turn"
        await session.cancel()
        assert (await session.prompt("next")).text == "Echo: next"


async def test_a_prompt_with_content_that_is_not_offered_fails_and_the_session_lives(programs):
    async with connected(programs) as remote:
        session = await remote.new_session("/")
        image = accord.v1.ImageContent("aGk=", "image/png")
        with pytest.raises((accord.PeerError, accord.CapabilityMissing)):
            await session.prompt("look", image)
        assert (await session.prompt("go")).text == "Echo: go"


async def test_sessions_are_listed_closed_and_resumed_with_and_without_their_past(programs):
    async with connected(programs) as remote:
        session = await remote.new_session("/")
        await session.prompt("one")
        assert [info.session_id async for info in remote.sessions("/")] == [session.id]
        await session.close()
        await session.close()
        again = await remote.load(session.id, "/")
        assert [message.text for message in again.state.messages] == ["one", "Echo: one"]
        assert again.state.title == "Echo agent session"
        await again.close()
        resumed = await remote.resume(session.id, "/")
        assert resumed.state.messages == []
        assert (await resumed.prompt("two")).text == "Echo: two"
        with pytest.raises(accord.PeerError):
            await remote.resume("unknown", "/")


# Its clients with our agents


@pytest.mark.parametrize(
    ("prompt", "text", "state"),
    [
        ("Hi", "Hello there.", "EndTurn"),
        ("/ask", "no", "EndTurn"),
        ("/fail", "", "Error"),
        ("/run", "", "EndTurn"),
    ],
)
async def test_a_client_that_ignores_all_before_running_gets_all_of_a_turn(programs, tmp_path, prompt, text, state):
    command = f"{sys.executable} {AGENTS / 'both_versions.py'}"
    output, errors = await ran(programs / "v2_one_shot_client", "--command", command, prompt, cwd=tmp_path)
    assert output == f"{text}\n"
    assert "Session is idle: Some(" in errors
    assert state in errors.partition("Session is idle: ")[2]


async def test_a_client_that_resumes_a_session_more_than_once_gets_the_same_past(programs, tmp_path):
    store = tmp_path / "sessions"
    command = [sys.executable, str(AGENTS / "lasting_agent.py"), str(store)]
    async with accord.connect(command) as remote:
        session = await remote.new_session(tmp_path)
        await session.prompt("one")
        await session.prompt("two")
    output, _ = await ran(
        programs / "v2_session_coordination", "--command", " ".join(command), "--session-id", session.id, cwd=tmp_path
    )
    shared, setup, fresh = output.splitlines()
    assert shared.startswith("Shared replay: ")
    assert shared.removeprefix("Shared replay: ") == fresh.removeprefix("Fresh replay after close: ")
    assert int(shared.split()[2]) >= len(session.state.timeline)
    assert "code" in setup, "the modes are a config option of the answer"
