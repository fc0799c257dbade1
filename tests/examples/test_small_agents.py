"""The examples for a first look do what their first lines say."""

import subprocess
import sys
from pathlib import Path

import pytest
from interop.model.replies import ToolCall, Words
from interop.model.server import ModelServer

from accord import v1

EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_the_echo_says_what_it_hears(running):
    async with running("echo_agent.py") as session:
        assert (await session.prompt("anybody there?")).text == "You said: anybody there?"


async def test_the_echo_is_ten_lines():
    lines = (EXAMPLES / "echo_agent.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 10


async def test_the_careful_editor_shows_its_change_and_makes_it_when_allowed(running, tmp_path):
    (tmp_path / "notes.txt").write_text("colour by colour\n")
    async with running("careful_editor.py") as session:
        outcome = await session.prompt("notes.txt: colour -> color")
        assert outcome.text == "I replaced 2 of them."
        [call] = outcome.tool_calls
        assert call.content == [v1.Diff(str(tmp_path / "notes.txt"), "color by color\n", "colour by colour\n")]
        assert (tmp_path / "notes.txt").read_text() == "color by color\n"


async def test_the_careful_editor_leaves_it_when_it_is_refused(running, tmp_path):
    (tmp_path / "notes.txt").write_text("colour\n")
    async with running("careful_editor.py", allow=False) as session:
        outcome = await session.prompt("notes.txt: colour -> color")
        assert outcome.text == "I left it as it was."
        assert [call.status for call in outcome.tool_calls] == ["failed"]
        assert (tmp_path / "notes.txt").read_text() == "colour\n"
        assert "Tell me what to replace" in (await session.prompt("hello")).text


def test_the_tour_shows_a_plan_a_diff_and_a_command_without_colours_in_a_pipe():
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "tour.py")], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "\033" not in done.stdout
    for shown in ("[x] Look at what is there", "+ You allowed it.", "accord-demo.md", "[end_turn]"):
        assert shown in done.stdout


def test_the_tour_shows_an_agent_that_is_named():
    command = [sys.executable, str(EXAMPLES / "tour.py"), "hi", "--", sys.executable, str(EXAMPLES / "echo_agent.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.splitlines()[:2] == ["> hi", "You said: hi"]


async def test_the_agent_with_a_model_writes_what_the_user_allows(running, tmp_path):
    async with running("model_agent.py") as session:
        assert (await session.prompt("buy milk")).text == "I write it down. The tool says: Written."
    assert (tmp_path / "notes.txt").read_text() == "buy milk\n"


async def test_the_agent_with_a_model_tells_the_model_what_the_user_refused(running, tmp_path):
    async with running("model_agent.py", allow=False) as session:
        assert "refused" in (await session.prompt("buy milk")).text
    assert not (tmp_path / "notes.txt").exists()


async def test_the_agent_with_a_model_asks_a_real_api_where_there_is_a_key(running, tmp_path):
    pytest.importorskip("openai")

    def reply(asked):
        yield Words("Noted.") if asked.answered else ToolCall("write_notes", {"text": "milk\n"})

    with ModelServer(reply=reply) as model:
        env = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{model.url}/v1"}
        async with running("model_agent.py", env=env) as session:
            assert (await session.prompt("buy milk")).text == "Noted."
    assert (tmp_path / "notes.txt").read_text() == "milk\n"
