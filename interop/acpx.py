"""acpx, a command line client that nobody here wrote: where it comes from, and how it is started with an agent."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interop.real_agents import cache_folder, node_programs, npm

VERSION = "0.19.1"
SECONDS = 120
IDLE_SECONDS = "20"
"""How long it keeps a session's agent without work."""


@dataclass(frozen=True)
class Said:
    """What one command printed, and its exit code."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Acpx:
    """acpx with one agent, in one folder, at a home of its own."""

    agent: Sequence[str]
    folder: Path
    home: Path

    def __call__(self, *arguments: str) -> Said:
        """Run one command with the agent; raises Unavailable where acpx cannot be had."""
        return self.plain("--agent", shlex.join(self.agent), *arguments)

    def plain(self, *arguments: str) -> Said:
        """Run one command with the agents of its configuration."""
        done = subprocess.run(
            self._command(*arguments),
            cwd=self.folder,
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def configure(self, **agents: Sequence[str]) -> None:
        """Agents by name; the first is the one that it takes when none is named."""
        commands = {name: {"command": shlex.join(command)} for name, command in agents.items()}
        file = self.home / ".acpx" / "config.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"defaultAgent": next(iter(agents)), "agents": commands}))

    @contextmanager
    def following(self, *arguments: str) -> Generator[Iterator[dict[str, Any]]]:
        """A command that goes on until it is ended, and the lines of JSON that it prints meanwhile."""
        command = self._command("--agent", shlex.join(self.agent), "--format", "json", *arguments)
        with subprocess.Popen(
            command, cwd=self.folder, env=self._variables(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as program:
            assert program.stdout
            try:
                yield map(json.loads, program.stdout)
            finally:
                program.terminate()

    def _command(self, *arguments: str) -> list[str]:
        return [str(installed() / "acpx"), "--cwd", str(self.folder), "--ttl", IDLE_SECONDS, *arguments]

    def _variables(self) -> dict[str, str]:
        path = f"{node_programs()}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "HOME": str(self.home), "PATH": path}


def installed() -> Path:
    """The folder of its program."""
    folder = cache_folder() / f"acpx-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    npm(folder, f"acpx@{VERSION}")
    return folder / "node_modules" / ".bin"
