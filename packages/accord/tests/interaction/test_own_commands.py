"""Commands that run a module of Accord import nothing from the current folder, which may be a foreign project."""

import sys

import pytest

import accord
from accord.agent_file import python_command
from accord.testing import recorded_agent_command
from accord_tools.configuration.agent_settings import AgentSettings
from accord_tools.configuration.resolve_agent import python_file
from tests.waiting import DEADLINE

SHADOW = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\nraise ImportError('this is a shadow')\n"
AGENT = """
import accord
agent = accord.Agent("own")

@agent.on_prompt
async def answer(turn):
    await turn.say("Hi")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A current folder whose files have the names of modules that every program of ours imports."""
    folder = tmp_path / "project"
    folder.mkdir()
    for module in ("accord", "asyncio", "msgspec"):
        (folder / f"{module}.py").write_text(SHADOW)
    monkeypatch.chdir(folder)
    return folder


async def answer_of(command, **options):
    async with accord.connect(command, timeout=10 * DEADLINE, **options) as remote:
        session = await remote.new_session("/")
        return (await session.prompt("Hello")).text


async def test_a_python_file_imports_nothing_from_the_current_folder(project, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(AGENT)
    assert await answer_of(python_command([str(file)])) == "Hi"
    assert not (project / "imported").exists()


async def test_a_recorded_agent_imports_nothing_from_the_current_folder(project, tmp_path):
    file, recording = tmp_path / "own.py", tmp_path / "wire.jsonl"
    file.write_text(AGENT)
    assert await answer_of(python_command([str(file)]), trace=recording) == "Hi"
    assert await answer_of(recorded_agent_command(recording)) == "Hi"
    assert not (project / "imported").exists()


async def test_a_python_file_still_imports_modules_beside_it(project, tmp_path):
    (tmp_path / "words.py").write_text("GREETING = 'Hi'\n")
    file = tmp_path / "own.py"
    file.write_text("from words import GREETING\n" + AGENT.replace('"Hi"', "GREETING"))
    assert await answer_of(python_command([str(file)])) == "Hi"


def test_the_file_of_such_a_command_is_found_again(tmp_path):
    command = python_command(["agents/own.py:agent", "--fast"])
    assert command[0] == sys.executable
    assert str(python_file(AgentSettings(command=command, cwd=str(tmp_path)))) == f"{tmp_path}/agents/own.py"
