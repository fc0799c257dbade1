"""The question at a terminal whether a project's file is trusted, and nothing in that file acts on the terminal."""

from __future__ import annotations

import sys

import pytest

from tests.cli.pseudo_terminal import Terminal
from tests.cli.test_console import ACTS, EVIL

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")


@pytest.fixture
def terminal(user):
    made = []

    def start(*arguments):
        names = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
        made.append(Terminal(*arguments, cwd=user.folder, **{name: user.environment[name] for name in names}))
        return made[-1]

    yield start
    for it in made:
        it.process.kill()
        it.process.wait()


def test_a_yes_at_the_terminal_trusts_the_file(user, mine, terminal):
    user.set_project('[agents.mine]\ncommand = ["./mine.py:agent"]\nenv = { COLOUR = "red" }\nallow = "auto"\n')
    asking = terminal("run", "Hi", "-a", "mine")
    shown = asking.shows("Trust this file")
    assert "mine: COLOUR=red" in shown
    assert "mine.py:agent(mayuse:auto)" in "".join(shown.split())
    asking.types("y\r")
    assert "mine: Hi" in asking.to_the_end()
    assert user.said("run", "Again", "-a", "mine") == "mine: Again\n"


@pytest.mark.parametrize("answer", ["\r", "n\r", "yess\r", "\x04"])
def test_any_other_answer_does_not(user, mine, terminal, answer):
    user.set_project('[agents.mine]\ncommand = ["./mine.py:agent"]\n')
    asking = terminal("run", "Hi", "-a", "mine")
    asking.shows("Trust this file")
    asking.types(answer)
    assert "is not trusted" in asking.to_the_end()
    assert asking.process.returncode == 2
    assert "is not trusted" in user.refused("run", "Hi", "-a", "mine")


@pytest.mark.parametrize(
    "command", [["agents"], ["agents", "trust"], ["doctor"], ["run", "Hi", "-a", "evil"]], ids=" ".join
)
def test_nothing_in_a_project_s_file_acts_on_the_terminal(user, terminal, command):
    text = "".join(f"\\U{ord(character):08x}" for character in EVIL)
    user.set_project(f'[agents.evil]\ncommand = ["evil", "{text}"]\ndescription = "{text}"\nenv = {{ A = "{text}" }}\n')
    shown = terminal(*command)
    if command[0] == "run":
        shown.shows("Trust this file")
        shown.types("n\r")
    seen = shown.to_the_end()
    assert "evil" in seen
    assert not ACTS.search(seen)
