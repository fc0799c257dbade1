"""`accord` without a command: what is on this machine, and what to type next."""

from __future__ import annotations

import subprocess
import sys

import pytest

from accord_tools.registry.well_known import WELL_KNOWN
from tests.cli.pseudo_terminal import ACCORD


@pytest.fixture
def alone(user):
    """A user without keys, and without programs of the registry."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        user.environment.pop(name, None)
    user.environment["PATH"] = str(user.folder / "bin")
    return user


def section(text: str, title: str) -> list[str]:
    """The rows below a title."""
    return text.partition(f"\n{title}")[2].partition("\n\n")[0].splitlines()[1:]


def test_a_newcomer_sees_the_demo_the_registry_and_what_to_type(alone):
    said = alone.said()
    assert said.splitlines()[0].endswith("no key in ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY")
    here = section(said, "Agents on this machine")
    assert [row.split()[0] for row in here] == ["demo", "accord"]
    assert "needs a key: accord agent login" in here[1]
    listed = [row.split()[0] for row in section(said, "Agents to install")]
    assert listed == [agent.id for agent in WELL_KNOWN[: len(listed)]]
    assert "accord chat -- accord demo" in said
    assert "Last sessions" not in said


def test_the_coding_agent_comes_first_with_a_key_whose_value_is_not_shown(alone):
    alone.environment["OPENAI_API_KEY"] = "a-secret"
    said = alone.said()
    assert said.splitlines()[0].endswith("keys: OPENAI_API_KEY")
    assert "a-secret" not in said
    assert section(said, "Agents on this machine")[0].startswith("  accord agent  ")
    assert "accord chat -- accord agent" in said


def test_named_agents_and_programs_on_the_path_come_before_the_demo(alone):
    program = alone.folder / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    alone.set('default = "mine"\n[agents.other]\ncommand = "other"\n[agents.mine]\ncommand = "mine --acp"\n')
    said = alone.said()
    here = section(said, "Agents on this machine")
    assert [row.split()[0] for row in here] == ["mine", "other", "opencode", "demo", "accord"]
    assert here[0].endswith("mine --acp (default)")
    assert here[2].endswith("on PATH")
    assert "accord chat -a mine" in said
    assert "opencode" not in "".join(section(said, "Agents to install"))


def test_the_last_sessions_are_listed_the_latest_first(alone, mine):
    for name in ("mine.py:agent", "mine.py:other"):
        alone.said("run", "Hi", "--", name)
    rows = section(alone.said(), "Last sessions")
    assert len(rows) == 2
    assert all(row.endswith("project") for row in rows)


def test_a_terminal_of_80_columns_and_24_rows_shows_all_of_it(terminal):
    home = terminal(OPENAI_API_KEY="a-secret")
    shown = home.to_the_end()
    assert len(shown.splitlines()) < 24
    assert max(map(len, shown.splitlines())) <= 80
    assert home.process.returncode == 0


def test_the_home_screen_starts_nothing_and_loads_no_schema():
    script = (
        "import sys, subprocess; from accord_tools.cli import main\n"
        "sys.addaudithook(lambda event, _: event in ('subprocess.Popen', 'socket.connect') and sys.exit(event))\n"
        "code = main([]); print(code, *{'accord.schema.v1', 'textual', 'ssl'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].split()[0] == "0", done.stderr
    assert "accord.schema.v1" not in done.stdout.splitlines()[-1]
    assert "textual" not in done.stdout.splitlines()[-1]


def test_a_command_line_that_is_piped_has_no_colours(alone):
    done = subprocess.run(ACCORD, check=False, capture_output=True, text=True, env=alone.environment)
    assert "\x1b" not in done.stdout
