"""A user of their own: a home with settings and state, a folder of a project, and `accord` run there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.pseudo_terminal import start_terminals
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401

MINE = """
import accord

agent = accord.Agent("mine", version="3.1", title="My agent")
other = accord.Agent("other")


@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    await turn.say(f"mine: {turn.text}")


@other.on_prompt
async def other_reply(turn: accord.Turn) -> None:
    await turn.say(f"other: {turn.text}")
"""


class User:
    """A user with a home, a current folder, and the command `accord`."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.folder = folder / "project"
        self.folder.mkdir(parents=True)
        self.settings = self.home / "config" / "accord" / "agents.toml"
        self.project_settings = self.folder / ".accord" / "agents.toml"
        self.environment = {
            **os.environ,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "COLUMNS": "100",
        }

    def accord(self, *arguments: str, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "accord", *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=cwd or self.folder,
            env=self.environment,
            **options,
        )

    def said(self, *arguments: str, **options: Any) -> str:
        """What a command that ends well prints."""
        done = self.accord(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: str, **options: Any) -> str:
        """The error of a command that is wrong usage."""
        done = self.accord(*arguments, **options)
        assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stderr

    def set(self, text: str) -> None:
        """Write the user's file."""
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        self.settings.write_text(text)

    def set_project(self, text: str) -> None:
        """Write the project's file."""
        self.project_settings.parent.mkdir(parents=True, exist_ok=True)
        self.project_settings.write_text(text)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.fixture
def mine(user: User) -> Path:
    """A Python file with two agents, in the user's folder."""
    return user.write("mine.py", MINE)


@pytest.fixture
def terminal(tmp_path: Path):
    """Starts `accord` at pseudo-terminals, in the test's folder."""
    with start_terminals(tmp_path) as start:
        yield start
