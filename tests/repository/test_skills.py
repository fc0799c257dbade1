"""The skills that an installation holds work when they are followed literally."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import accord

SKILLS = Path(accord.__file__).parent / "skills"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"`(accord check [^`]+|accord run [^`]+|accord trace [^`]+|python -m [^`]+)`")


def run(command, folder):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "XDG_CONFIG_HOME": str(folder / "config")}
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
    )


def skill(name):
    return (SKILLS / name / "SKILL.md").read_text()


@pytest.mark.parametrize("name", sorted(it.name for it in SKILLS.iterdir() if it.is_dir()))
def test_a_skill_says_what_it_is_for(name):
    assert skill(name).startswith(f"---\nname: {name}\ndescription: ")


def test_the_skill_to_write_an_agent_makes_one_that_works(tmp_path):
    text = skill("write-an-agent")
    (tmp_path / "my_agent.py").write_text(BLOCK.findall(text)[0])
    done = run(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0], tmp_path)
    assert "Done." in done.stdout, done.stderr
    assert (tmp_path / "notes.txt").read_text() == "HELLO\n"


def test_the_skill_to_write_a_client_makes_one_that_works(tmp_path):
    (tmp_path / "my_client.py").write_text(BLOCK.findall(skill("write-a-client"))[0])
    done = run("python my_client.py", tmp_path)
    assert done.stdout.endswith("\nend_turn\n"), done.stderr


def test_the_skill_to_check_an_agent_names_commands_that_work(tmp_path):
    (tmp_path / "my_agent.py").write_text(BLOCK.findall(skill("write-an-agent"))[0])
    (tmp_path / "notes.txt").write_text("hello\n")
    text = skill("check-an-agent")
    commands = [it for it in COMMANDS.findall(text) if "ID" not in shlex.split(it) and "known.toml" not in it]
    quick = [it for it in commands if not it.startswith("accord check agent -- ")]
    assert len(quick) == 5
    for command in quick:
        done = run(command, tmp_path)
        assert done.returncode in (0, 1), (command, done.stdout, done.stderr)
        assert "error:" not in done.stderr, (command, done.stderr)


def test_the_skill_to_move_runs_a_program_of_the_sdk(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "coming-from" / "official-sdk.md"
    (tmp_path / "my_agent.py").write_text(BLOCK.findall(page.read_text())[1])
    compare = next(it for it in COMMANDS.findall(skill("move-from-the-official-sdk")) if it.startswith("accord check"))
    done = run(compare, tmp_path)
    assert done.returncode in (0, 1), (done.stdout, done.stderr)
