"""The coding agent in a hostile folder, with a model that does whatever the folder wants."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from interop.model.replies import Asked, ToolCall, Words
from interop.model.server import ModelServer

from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.stdio import Agent
from tests.attack.attackers.wire import NEW_SESSION, prompt
from tests.project.hostile_folder import HostileFolder

CALLS = 8
"""Calls of tools in one turn."""

BELOW_GIT = (".git/config", ".git/hooks/pre-commit", "hooks/pre-commit", ".GIT/config", "vendor/.git/config")
PATHS = ("notes.txt", "AGENTS.md", "CLAUDE.md", "environ.txt", "zero.txt", "pipe.png", "picture.png", "sparse.txt")
PATHS += ("own.txt", "loop", "../secret.txt", "up/secret.txt", "device.txt", "elsewhere/.git", *BELOW_GIT)
FOLDERS = (".", "..", "up", "loop", "d", "bare", "vendor", "elsewhere", "/proc/self", "CLAUDE.md")
PATTERNS = ("SECRET", "^(o+)+rdinary$", "(" * 2_000, "a?" * 200 + "a" * 200, "\0", "\ud800")


@attack
def hostile_folder_of_a_coding_agent(attacker: Attacker) -> None:
    """Its tools read, search and write where the folder leads them: nothing leaves, nothing runs, nothing waits."""
    chance = attacker.random

    def call() -> ToolCall:
        attacker.made()
        path, folder, pattern = chance.choice(PATHS), chance.choice(FOLDERS), chance.choice(PATTERNS)
        match chance.randrange(5):
            case 0:
                return ToolCall("search_files", {"pattern": pattern, "folder": folder})
            case 1:
                return ToolCall("list_files", {"folder": folder})
            case 2:
                return ToolCall("write_file", {"path": chance.choice(BELOW_GIT), "content": "[core]\n"})
            case 3:
                return ToolCall("edit_file", {"path": path, "old": "S", "new": "x", "all": True})
            case _:
                return ToolCall("read_file", {"path": path, "line": chance.choice((1, 10**9))})

    def reply(asked: Asked) -> Iterator[Words | ToolCall]:
        yield from [Words("Done.")] if asked.answered else [call() for _ in range(CALLS)]

    with tempfile.TemporaryDirectory(prefix="hostile-") as base, ModelServer(reply=reply) as model:
        hostile = HostileFolder(Path(base))
        before = kept(hostile)
        command = [sys.executable, "-m", "accord", "agent", "--api", "openai", "--base-url", f"{model.url}/v1"]
        command += ["--model", "fake", "--mode", chance.choice(("auto", "plan")), "--store", f"{base}/store.sqlite3"]
        keys = {"OPENAI_API_KEY": "x", "HOSTILE_TEST_KEY": "x", "XDG_STATE_HOME": base}
        agent = Agent(attacker, command, folder=hostile.path, **keys)
        number = 1
        while attacker.going:
            session = {**NEW_SESSION, "id": number, "params": {"cwd": str(hostile.path), "mcpServers": []}}
            agent.write(json.dumps(session).encode() + b"\n")
            opened = agent.answer(number)["result"]["sessionId"]
            agent.write(json.dumps(prompt(opened, "go", number + 1)).encode() + b"\n")
            if (ended := agent.answer(number + 1)).get("result", {}).get("stopReason") != "end_turn":
                attacker.wrong(f"a coding agent in a hostile folder ended its turn with {ended}")
            number += 2
        agent.has_to_be_well("tools in a hostile folder")
        agent.end()
        try:
            hostile.is_harmless(model.bodies)
        except AssertionError as error:
            attacker.wrong(str(error))
        if changed := [str(path) for path, content in kept(hostile).items() if before.get(path) != content]:
            attacker.wrong(f"a coding agent changed {', '.join(changed)}")


def kept(hostile: HostileFolder) -> dict[Path, bytes]:
    """What no tool may change: the secret beside the folder, and all below `.git`."""
    repositories = (hostile.path / ".git", hostile.path / "vendor" / ".git")
    files = [path for folder in repositories for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in (hostile.secret, *files)}
