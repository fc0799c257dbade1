"""Agents of other frameworks, each in an environment of its own, with a model that follows a script."""

import os
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from benchmarks.build import Unavailable
from interop.frameworks import PACKAGES, python_with

import accord
from accord import v1
from tests import SOURCES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
MODELS = Path(__file__).parent / "models"


@pytest.fixture(params=sorted(PACKAGES))
def framework(request, tmp_path):
    """`async with framework() as session`: a session with that framework's example."""
    try:
        python = python_with(request.param)
    except Unavailable as missing:
        pytest.skip(str(missing))

    @asynccontextmanager
    async def start(*, allow=True, session_id=None):
        command = [python, MODELS / f"scripted_{request.param}.py", ROOT / "examples" / "frameworks"]
        env = {"PYTHONPATH": os.pathsep.join(SOURCES), "STORE": str(tmp_path / ".sessions.db")}
        client = accord.Client(files=True, permissions=lambda _: allow)
        async with accord.connect([str(part) for part in command], client, env=env) as remote:
            if session_id is None:
                yield await remote.new_session(tmp_path)
            else:
                yield await remote.resume(session_id, tmp_path)

    return start


async def test_text_thoughts_and_usage_stream(framework):
    async with framework() as session:
        reply = session.prompt("hello")
        updates = [update async for update in reply]
        assert (await reply).text == "You said hello"
        assert len([update for update in updates if isinstance(update, v1.AgentMessageChunk)]) >= 3
        thoughts = [update.content.text for update in updates if isinstance(update, v1.AgentThoughtChunk)]
        assert "".join(thoughts) == "Hm."
        assert session.state.usage.used > 0


async def test_a_tool_asks_shows_its_diff_and_writes(framework, tmp_path):
    async with framework() as session:
        outcome = await session.prompt("write")
        [call] = outcome.tool_calls
        assert (call.kind, call.status) == ("edit", "completed")
        assert call.content == [v1.Diff(str(tmp_path / "a.txt"), "new")]
        assert outcome.text == "The tool said: Written."
        assert (tmp_path / "a.txt").read_text() == "new"


async def test_a_refusal_reaches_the_model(framework, tmp_path):
    async with framework(allow=False) as session:
        outcome = await session.prompt("write")
        assert [call.status for call in outcome.tool_calls] == ["failed"]
        assert outcome.text == "The tool said: The user does not allow this."
        assert not (tmp_path / "a.txt").exists()


async def test_a_cancel_ends_the_turn_and_the_next_is_clean(framework):
    async with framework() as session:
        reply = session.prompt("wait")
        async for _ in reply.iter_text():
            break
        assert (await reply.cancel()).stop_reason == "cancelled"
        assert (await session.prompt("hello")).text.endswith("hello")


async def test_a_session_is_resumed_with_all_that_the_model_knew(framework):
    async with framework() as session:
        await session.prompt("one")
        known = session.id
    async with framework(session_id=known) as session:
        assert (await session.prompt("two")).text == "You said one/two"
