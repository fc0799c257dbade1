"""Control groups: one with limits for each agent, made by this server or by systemd; and the choice of a mechanism.

A group that sets limits for groups below it may hold no processes. So systemd has to put the server into a group of its
own (`DelegateSubgroup=server`): the agents' groups are made beside it. `ACCORD_CGROUP` names another group to use.

A server without a delegated group asks systemd for a scope. `systemd-run --scope` moves itself into a new scope and
becomes the agent, so standard streams and the exit code are the agent's own.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from accord.confinement.container import Container, Containers
from accord.confinement.process_limits import Confined, Confinement, ProcessLimits, answer_of
from accord.errors import AccordError
from accord.transports.launch import program_file

PATIENCE = 5.0
"""Seconds within which killed processes disappear; only a process that waits for a broken disk takes longer."""


class ControlGroup:
    """A control group, by its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.members = folder / "cgroup.procs"
        """The file with the ids of its processes; a process joins by writing 0."""

    def make(self, settings: Mapping[str, str]) -> None:
        """Make the group, and write these values to its files. Raises AccordError."""
        try:
            self._folder.mkdir()
            for name, value in settings.items():
                with suppress(FileNotFoundError):  # a kernel without swap has no memory.swap.max
                    (self._folder / name).write_text(value)
        except OSError as error:
            with suppress(OSError):
                self._folder.rmdir()
            raise AccordError(f"cannot limit the agent: control group {self._folder}: {error.strerror}") from error

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process because the group's memory was full."""
        return self._count("memory.events", "oom_kill") > 0

    def was_refused_a_process(self) -> bool:
        """Whether a process or thread could not be started because there were too many."""
        return self._count("pids.events", "max") > 0

    async def remove(self) -> None:
        """End all its processes, and remove it."""
        self._kill()
        try:
            async with asyncio.timeout(PATIENCE):
                pause = 0.002
                while not self._is_gone():
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, 0.1)
        except TimeoutError:
            return  # the next server removes it

    def remove_now(self) -> None:
        """End all its processes; remove it if they are gone already."""
        self._kill()
        self._is_gone()

    def _kill(self) -> None:
        try:
            # "r+": the file must exist, since Linux 5.14.
            with (self._folder / "cgroup.kill").open("r+") as file:
                file.write("1")
        except OSError:
            self._kill_each()

    def _kill_each(self) -> None:
        with suppress(OSError):
            for pid in map(int, self.members.read_text().split()):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def _is_gone(self) -> bool:
        try:
            self._folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            self._kill()  # a process that was just being started
            return False
        return True

    def _count(self, file: str, event: str) -> int:
        try:
            lines = (self._folder / file).read_text().splitlines()
        except OSError:
            return 0
        return sum(int(number) for name, number in map(str.split, lines) if name == event)


VARIABLE = "ACCORD_CGROUP"
"""The variable that names the group below which agents' groups are made, by its folder."""

_NAME = re.compile(r"accord-(\d+)-(\d+)")
"""The name of an agent's group: the server's process, and a number."""

_CPU_PERIOD = 100_000
"""Microseconds in which the kernel counts processor time."""


def needed(limits: ProcessLimits) -> dict[str, str]:
    """Return the controllers that enforce these limits, each with its option.

    >>> needed(ProcessLimits(memory="2G", tasks=9))
    {'memory': 'memory', 'pids': 'tasks'}
    """
    wanted: dict[str, Any] = {"memory": limits.memory, "cpus": limits.cpus, "tasks": limits.tasks}
    return {_CONTROLLERS[name]: name for name, limit in wanted.items() if limit is not None}


_CONTROLLERS = {"memory": "memory", "cpus": "cpu", "tasks": "pids"}


def settings(limits: ProcessLimits) -> dict[str, str]:
    """Return the contents of the files of an agent's group.

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


def cgroup_problem(limits: ProcessLimits) -> str:
    """Return why control groups cannot enforce these limits here; empty if they can."""
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
    """Return where the file system of version 2 is mounted.

    >>> mounted("30 23 0:26 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw").as_posix()
    '/sys/fs/cgroup'
    """
    for line in mountinfo.splitlines():
        place, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            return Path(place.split()[4])
    return None


class ControlGroups(Confinement):
    """A control group for each agent. `cgroup_problem` has checked that it can be made."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._base = prepare(limits)
        self._made = 0

    def confine(self, command: Sequence[str], env: Mapping[str, str | None]) -> Confined:  # noqa: ARG002  (for containers)
        self._made += 1
        group = ControlGroup(self._base / f"accord-{os.getpid()}-{self._made}")
        group.make(settings(self._limits))
        return _InGroup(group, command, self._limits)

    def sweep(self) -> None:
        for group in self._left_behind():
            group.remove_now()

    def _left_behind(self) -> Iterator[ControlGroup]:
        """Return the groups of processes that have ended, and of an earlier one with our number: this process has made
        none yet.
        """
        for folder in self._base.iterdir():
            found = _NAME.fullmatch(folder.name)
            if found is not None and (int(found[1]) == os.getpid() or not Path(f"/proc/{found[1]}").exists()):
                yield ControlGroup(folder)


class _InGroup(Confined):
    def __init__(self, group: ControlGroup, command: Sequence[str], limits: ProcessLimits) -> None:
        self._group = group
        self._limits = limits
        # The shell moves itself before it becomes the agent, so no part of the agent runs outside of the group.
        self.command = ["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', str(group.members), *command]

    async def limit_hit(self) -> str:
        if self._limits.memory is not None and self._group.ran_out_of_memory():
            return f"the agent ran out of memory: it may use {self._limits.memory_words}"
        if self._limits.tasks is not None and self._group.was_refused_a_process():
            return f"the agent could not start a process: it may have {self._limits.tasks} processes and threads"
        return ""

    async def close(self) -> None:
        await self._group.remove()


_BOOTED = Path("/run/systemd/system")
"""A folder that exists where systemd has started the machine."""


def scope_problem() -> str:
    """Return why no scope can be made here; empty if one can."""
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
    """Return the limits as properties of a scope.

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
    """Return the command that starts another one in a scope of this name.

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
        """Do nothing: a guard ends the agents of a server that has ended, and systemd removes empty scopes."""


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
        return await answer_of("systemctl", *self._manager, *words, self._unit)


def confinement_for(limits: ProcessLimits, container: Container | None = None) -> Confinement:
    """Return the mechanism with which this machine can enforce the limits. Raises AccordError if there is none."""
    if container is not None:
        return Containers(container, limits)
    why_no_group = cgroup_problem(limits)
    if not why_no_group:
        return ControlGroups(limits)
    why_no_scope = scope_problem()
    if not why_no_scope:
        return Scopes(limits)
    raise AccordError(
        f"the limits of processes cannot be kept here: {why_no_group}; {why_no_scope}. "
        "Run the server as a systemd service with Delegate=yes, or its agents in containers (docs/hosts.md)"
    )
