"""Every command of `accord`, started in a hostile folder: nothing of it runs, leaks, blocks or is read without end."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from accord_tools.cli.command_table import commands_for, commands_of, parser_of
from tests.project.hostile_folder import HostileFolder, hostile
from tests.waiting import DEADLINE

if TYPE_CHECKING:
    import argparse

    from tests.cli.conftest import User

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")

__all__ = ["hostile"]

MENTIONS = "Look at @notes.txt @zero.txt @pipe.png @sparse.txt @up/secret.txt"
COMMANDS = {
    "agent": "agent --api openai --base-url http://127.0.0.1:9/v1 --model none",
    "agents add": "agents add mine -- ./program",
    "agents build": "agents build .",
    "agents check": "agents check .",
    "agents default": "agents default demo",
    "agents export": "agents export zed demo",
    "agents forget": "agents forget mine",
    "agents import": "agents import zed",
    "agents info": "agents info listed",
    "agents install": "agents install --locked --yes",
    "agents list": "agents list",
    "agents lock": "agents lock",
    "agents new": "agents new mine",
    "agents remove": "agents remove mine --yes",
    "agents search": "agents search x",
    "agents trust": "agents trust",
    "agents update": "agents update",
    "agents verify": "agents verify listed",
    "agents which": "agents which mine",
    "bridge": "bridge http://127.0.0.1:9/acp",
    "chat": "chat --plain --worktree",
    "check agent": "check agent --profile smoke -- missing-program",
    "check client": "check client -- missing-program",
    "check explain": "check explain T-1",
    "check list": "check list",
    "check pages": "check pages pages",
    "check trace": "check trace notes.txt",
    "completion": "completion bash",
    "conduct": "conduct 'accord demo'",
    "demo": "demo",
    "dev": f"dev mine.py {shlex.quote(MENTIONS)}",
    "doctor": "doctor",
    "help": "help",
    "hosts": "hosts hosts.sqlite3",
    "info": "info",
    "inspect": "inspect",
    "login": "login --list",
    "new agent": "new agent mine",
    "permissions": "permissions",
    "replay": "replay --as client",
    "run": f"run --allow none {shlex.quote(MENTIONS)}",
    "schema": "schema",
    "serve": "serve --port 0",
    "sessions delete": "sessions delete x",
    "sessions export": "sessions export x",
    "sessions fork": "sessions fork x",
    "sessions list": "sessions list",
    "sessions show": "sessions show x",
    "trace export": "trace export",
    "trace grep": "trace grep SECRET",
    "trace import": "trace import -o new.jsonl notes.txt",
    "trace list": "trace list",
    "trace show": "trace show",
    "trace stats": "trace stats",
}
UNTIL_CTRL_C = ("inspect", "serve", "dev")


def names(parser: argparse.ArgumentParser, before: str = "") -> set[str]:
    """The commands of this parser; one that has commands itself is named by these."""
    found: set[str] = set()
    for name, of_name in commands_of(parser).items():
        found |= names(of_name, f"{before}{name} ") or {before + name}
    return found


def test_every_command_is_started_below():
    assert set(COMMANDS) == names(parser_of(commands_for()))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_in_a_hostile_folder_does_no_harm(hostile: HostileFolder, user: User, name: str):
    add_a_registry(hostile)
    (hostile.path / "mine.py").write_text("import accord\n\naccord.Agent('mine').run()\n")
    environment = user.environment | {"ACCORD_REGISTRY": str(hostile.path), "HOSTILE_TEST_KEY": "HOSTILE_TEST_KEY"}
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", *shlex.split(COMMANDS[name])],
        cwd=hostile.path, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        said = b""
        if name in UNTIL_CTRL_C:
            assert process.stdout is not None
            said = process.stdout.readline()
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
    text = (said + output + errors).decode()
    assert "Traceback" not in text
    assert not re.search("unrecognized|unknown option|are required|invalid choice", text), text
    assert hostile.is_harmless(text)
    assert hostile.secret.read_text().count("TOP-SECRET-OUTSIDE") == 3


def add_a_registry(hostile: HostileFolder) -> None:
    """Sources of a registry, and a lock file, as a stranger would send them for review."""
    for name in ("linked", "piped", "sparse", "icons"):
        (hostile.path / name).mkdir()
    (hostile.path / "linked" / "agent.json").symlink_to(hostile.secret)
    os.mkfifo(hostile.path / "piped" / "agent.json")
    (hostile.path / "icons" / "agent.json").write_text("{}")
    (hostile.path / "icons" / "icon.svg").symlink_to("/dev/zero")
    with (hostile.path / "sparse" / "agent.json").open("wb") as file:
        file.truncate(10 * 1024**3)
    (hostile.path / ".accord" / "agents.lock").symlink_to("../sparse.txt")
