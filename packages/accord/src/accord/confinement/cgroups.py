"""Control groups of version 2: finds the group that is delegated to this server, and makes one below it for each agent.

A group with limits below it may hold no processes. So systemd has to put the server into a group of its own
(`DelegateSubgroup=server`): the agents' groups are made beside it. `ACCORD_CGROUP` names another group to use.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from accord.confinement.confining import Confined, Confinement
from accord.confinement.group import Group
from accord.confinement.limits import ProcessLimits
from accord.errors import AccordError

VARIABLE = "ACCORD_CGROUP"
"""The variable that names the group below which agents' groups are made, by its folder."""

_NAME = re.compile(r"accord-(\d+)-(\d+)")
"""The name of an agent's group: the server's process, and a number."""

_CPU_PERIOD = 100_000
"""Microseconds in which the kernel counts processor time."""


def needed(limits: ProcessLimits) -> dict[str, str]:
    """The controllers that keep these limits, each with the option that asks for it.

    >>> needed(ProcessLimits(memory="2G", tasks=9))
    {'memory': 'memory', 'pids': 'tasks'}
    """
    wanted: dict[str, Any] = {"memory": limits.memory, "cpus": limits.cpus, "tasks": limits.tasks}
    return {_CONTROLLERS[name]: name for name, limit in wanted.items() if limit is not None}


_CONTROLLERS = {"memory": "memory", "cpus": "cpu", "tasks": "pids"}


def settings(limits: ProcessLimits) -> dict[str, str]:
    """What is written to the files of an agent's group.

    `memory.high` stays unset: it would slow an agent down until it seems to hang, and never end it.

    >>> settings(ProcessLimits(memory="1M", cpus=1.5))
    {'memory.max': '1048576', 'memory.swap.max': '0', 'memory.oom.group': '1', 'cpu.max': '150000 100000'}
    """
    files: dict[str, str] = {}
    if limits.memory is not None:
        files |= {"memory.max": str(limits.memory), "memory.swap.max": "0", "memory.oom.group": "1"}
    if limits.cpus is not None:
        files["cpu.max"] = f"{max(1_000, round(limits.cpus * _CPU_PERIOD))} {_CPU_PERIOD}"
    if limits.tasks is not None:
        files["pids.max"] = str(limits.tasks)
    return files


def unusable(limits: ProcessLimits) -> str:
    """Why control groups cannot keep these limits here; empty if they can."""
    if sys.platform != "linux":
        return "only Linux has control groups"
    try:
        prepare(limits)
    except AccordError as error:
        return str(error)
    return ""


def prepare(limits: ProcessLimits) -> Path:
    """The group below which agents' groups are made, ready for these limits. Raises AccordError with the reason."""
    base = _base()
    wanted = needed(limits)
    try:
        offered = (base / "cgroup.controllers").read_text().split()
    except OSError:
        raise AccordError(f"{base} is not a control group of version 2") from None
    if missing := sorted(set(wanted) - set(offered)):
        raise AccordError(f"the control group {base} lacks the controllers {', '.join(missing)}")
    try:
        (base / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
        trial = base / f"accord-{os.getpid()}-0"
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        raise AccordError(f"the control group {base} is not delegated to this server ({error.strerror})") from None
    return base


def _base() -> Path:
    if given := os.environ.get(VARIABLE):
        return Path(given)
    root = mounted(Path("/proc/self/mountinfo").read_text())
    if root is None:
        raise AccordError("the kernel's control groups of version 2 are not mounted")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::/"):
            own = line.removeprefix("0::/")
            if not own:
                raise AccordError("no control group is delegated to this server: it is in the root")
            return root / Path(own).parent
    raise AccordError("this process is in no control group of version 2")


def mounted(mountinfo: str) -> Path | None:
    """Where the file system of version 2 is.

    >>> mounted("30 23 0:26 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw").as_posix()
    '/sys/fs/cgroup'
    """
    for line in mountinfo.splitlines():
        place, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            return Path(place.split()[4])
    return None


class ControlGroups(Confinement):
    """A control group for each agent. `unusable` has said that it can be made."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._base = prepare(limits)
        self._made = 0

    def confine(self, command: Sequence[str], env: Mapping[str, str | None]) -> Confined:  # noqa: ARG002  (for containers)
        self._made += 1
        group = Group(self._base / f"accord-{os.getpid()}-{self._made}")
        group.make(settings(self._limits))
        return _InGroup(group, command, self._limits)

    def sweep(self) -> None:
        for group in self._left_behind():
            group.remove_now()

    def _left_behind(self) -> Iterator[Group]:
        """The groups of processes that have ended, and of one that had our number: this one has made none yet."""
        for folder in self._base.iterdir():
            found = _NAME.fullmatch(folder.name)
            if found is not None and (int(found[1]) == os.getpid() or not Path(f"/proc/{found[1]}").exists()):
                yield Group(folder)


class _InGroup(Confined):
    def __init__(self, group: Group, command: Sequence[str], limits: ProcessLimits) -> None:
        self._group = group
        self._limits = limits
        # The shell moves itself before it becomes the agent, so nothing of the agent runs outside of the group.
        self.command = ["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', str(group.members), *command]

    async def limit_hit(self) -> str:
        if self._limits.memory is not None and self._group.ran_out_of_memory():
            return f"the agent ran out of memory: it may use {self._limits.memory_words}"
        if self._limits.tasks is not None and self._group.was_refused_a_process():
            return f"the agent could not start a process: it may have {self._limits.tasks} processes and threads"
        return ""

    async def close(self) -> None:
        await self._group.remove()
