"""acpx, a command line client that nobody here wrote: where it comes from, and how it is started with an agent."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
        """Run one command; raises Unavailable where acpx cannot be had."""
        program = installed() / "acpx"
        options = ("--agent", shlex.join(self.agent), "--cwd", str(self.folder), "--ttl", IDLE_SECONDS)
        variables = {**os.environ, "HOME": str(self.home), "PATH": f"{node_programs()}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            [str(program), *options, *arguments],
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)


def installed() -> Path:
    """The folder of its program."""
    folder = cache_folder() / f"acpx-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    npm(folder, f"acpx@{VERSION}")
    return folder / "node_modules" / ".bin"
