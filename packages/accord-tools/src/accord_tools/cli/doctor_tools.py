"""The programs with which agents of the registry are installed: whether they are there, and new enough."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from accord.transports.launch import program_file
from accord_tools.cli.doctor import Finding

PATIENCE = 20.0
"""Seconds for a program to say its version."""


class Tool(NamedTuple):
    """A program, what it is for, the oldest version that serves, and how to get it."""

    program: str
    purpose: str
    oldest: tuple[int, ...]
    get: str


NODE = "install Node.js 22 or newer, which has npm, from nodejs.org or your system's packages"
TOOLS = (
    Tool("node", "agents that are packages of npm run with it, and many ask for 22", (22,), NODE),
    Tool("npm", "installs agents that are packages of npm", (9,), NODE),
    Tool("uv", "installs agents that are packages of PyPI; without it, pip does, except for --require-hash", (0, 5),
         "pip install uv"),
)  # fmt: skip


def tools() -> Iterator[Finding]:
    """One finding for each program."""
    for tool in TOOLS:
        place = program_file(tool.program)
        if place is None:
            yield Finding(tool.program, "missing", f"not on PATH: {tool.purpose}", tool.get)
            continue
        said = _said(place)
        found = re.search(r"\d+(?:\.\d+)+", said)
        if found is None:
            yield Finding(tool.program, "missing", f"{place} does not say its version: {said[:200]}", tool.get)
            continue
        detail = f"{found[0]} at {place}"
        if tuple(int(part) for part in found[0].split(".")) < tool.oldest:
            wanted = ".".join(map(str, tool.oldest))
            yield Finding(tool.program, "missing", f"{detail}, older than {wanted}: {tool.purpose}", tool.get)
        else:
            yield Finding(tool.program, "ok", detail)


def _said(place: str) -> str:
    """What a program prints when it is asked for its version, or why it cannot be asked."""
    try:
        done = subprocess.run(
            [place, "--version"], capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.strip() or done.stderr.strip()
