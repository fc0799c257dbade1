"""One control group of version 2: its limits, what happened in it, and its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from accord.errors import AccordError

PATIENCE = 5.0
"""Seconds in which killed processes are gone; only a process that waits for a broken disk takes longer."""


class Group:
    """A control group, by its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.members = folder / "cgroup.procs"
        """The file that holds the ids of its processes; a process moves in by writing 0."""

    def make(self, settings: Mapping[str, str]) -> None:
        """Make it, with these values in its files. Raises AccordError."""
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
        """Whether the kernel has ended a process because the group's memory was full."""
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
            # "r+": the file must be there, since Linux 5.14.
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
