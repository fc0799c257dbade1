"""The pages for users of other programs: every command and option that they name exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from accord_tools.cli.command_table import commands_for

PAGES = sorted((Path(__file__).parents[2] / "docs" / "coming-from").glob("*.md"))
WRITTEN = re.compile(r"^accord [^\n]+|`(accord [^`]+)`", re.MULTILINE)
"""A command of ours: a line of a block, or a span of code."""


def written() -> set[str]:
    return {it[0].strip("`") for page in PAGES for it in WRITTEN.finditer(page.read_text())}


def parts(command):
    """The names of a command before its options, and its long options before the agent's own."""
    own = command.partition(" -- ")[0].split()[1:]
    names = own[: 2 if own[0] in {"agents", "sessions"} else 1]
    return tuple(names), {it.partition("=")[0] for it in own if it.startswith("--")}


def options_of_commands():
    found = {}
    for command in written():
        names, options = parts(command)
        found.setdefault(names, set()).update(options)
    return [pytest.param(names, options, id=" ".join(names)) for names, options in sorted(found.items())]


def test_the_pages_name_commands():
    assert {"run", "chat", "sessions"} <= {parts(it)[0][0] for it in written()} <= set(commands_for())


@pytest.mark.parametrize(("names", "options"), options_of_commands())
def test_a_command_has_the_options_that_the_pages_name(names, options):
    command = [sys.executable, "-m", "accord", *names, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert options - set(re.findall(r"--[a-z-]+", done.stdout)) == set()
