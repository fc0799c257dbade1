"""Scopes of systemd, for a server that systemd did not delegate a control group to.

`systemd-run --scope` moves itself into a new scope and becomes the agent, so standard streams and the exit code are the
agent's own.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from accord.confinement.confining import Confined, Confinement
from accord.confinement.limits import ProcessLimits
from accord.transports.launch import program_file

_BOOTED = Path("/run/systemd/system")
"""A folder that exists where systemd has started the machine."""


def unusable() -> str:
    """Why no scope can be made here; empty if one can."""
    if sys.platform != "linux":
        return "and systemd runs only there"
    if not _BOOTED.is_dir() or program_file("systemd-run") is None:
        return "and systemd does not run here"
    if not _is_root() and not Path(os.environ.get("XDG_RUNTIME_DIR", "/nowhere"), "systemd").is_dir():
        return "and this user has no systemd of their own (XDG_RUNTIME_DIR)"
    return ""


def _is_root() -> bool:
    if sys.platform == "win32":
        return False
    return os.geteuid() == 0


def properties(limits: ProcessLimits) -> list[str]:
    """The limits as properties of a scope.

    >>> properties(ProcessLimits(memory="1M", cpus=1.5, tasks=9))
    ['MemoryMax=1048576', 'MemorySwapMax=0', 'CPUQuota=150%', 'TasksMax=9']
    """
    found: list[str] = []
    if limits.memory is not None:
        found += [f"MemoryMax={limits.memory}", "MemorySwapMax=0"]
    if limits.cpus is not None:
        found.append(f"CPUQuota={max(1, round(limits.cpus * 100))}%")
    if limits.tasks is not None:
        found.append(f"TasksMax={limits.tasks}")
    return found


def command_in_scope(unit: str, limits: ProcessLimits, command: Sequence[str], *, is_root: bool) -> list[str]:
    """The command that starts another one in a scope of this name.

    >>> " ".join(command_in_scope("a.scope", ProcessLimits(tasks=9), ["my-agent", "--acp"], is_root=False))
    'systemd-run --user --scope --quiet --unit a.scope -p TasksMax=9 -- my-agent --acp'
    """
    options = [word for value in properties(limits) for word in ("-p", value)]
    manager = [] if is_root else ["--user"]
    return ["systemd-run", *manager, "--scope", "--quiet", "--unit", unit, *options, "--", *command]


class Scopes(Confinement):
    """A scope of systemd for each agent."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._made = 0

    def confine(self, command: Sequence[str], env: Mapping[str, str | None]) -> Confined:  # noqa: ARG002  (for containers)
        self._made += 1
        return _InScope(f"accord-{os.getpid()}-{self._made}.scope", self._limits, command)

    def sweep(self) -> None:
        """Nothing: the agents of a server that has ended are ended by their guard, and systemd removes empty scopes."""


class _InScope(Confined):
    def __init__(self, unit: str, limits: ProcessLimits, command: Sequence[str]) -> None:
        self._unit = unit
        self._limits = limits
        is_root = _is_root()
        self._manager = [] if is_root else ["--user"]
        self.command = command_in_scope(unit, limits, command, is_root=is_root)

    async def limit_hit(self) -> str:
        if self._limits.memory is None or await self._ask("show", "--property=Result", "--value") != "oom-kill":
            return ""
        return f"the agent ran out of memory: it may use {self._limits.memory_words}"

    async def close(self) -> None:
        await self._ask("kill", "--signal=SIGKILL")
        await self._ask("reset-failed")

    async def _ask(self, *words: str) -> str:
        asking = await asyncio.create_subprocess_exec(
            "systemctl",
            *self._manager,
            *words,
            self._unit,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        answer, _ = await asking.communicate()
        return answer.decode("utf-8", "replace").strip()
