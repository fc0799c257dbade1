"""`ProcessLimits`: how much an agent and its child processes may use; and sizes in units such as "2G". PURE."""

from __future__ import annotations

import asyncio
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

LEAST_MEMORY = 1 << 20
"""Bytes: with less, no program starts."""


class ProcessLimits:
    """How much an agent and its child processes may use.

    `memory` is a number of bytes, or text such as "2G"; an agent that uses more is ended. `cpus` is a number of
    processors, such as 1.5: with more work it is slowed down. `tasks` is the number of processes and threads: more
    cannot be started. None means no limit.
    """

    def __init__(self, *, memory: int | str | None = None, cpus: float | None = None, tasks: int | None = None) -> None:
        self.memory = None if memory is None else _bytes(memory)
        """Bytes of memory."""
        self.cpus = cpus
        """Processors."""
        self.tasks = tasks
        """Processes and threads."""
        if self.memory is not None and self.memory < LEAST_MEMORY:
            raise ValueError(f"memory must be at least 1M, got {memory!r}")
        if cpus is not None and not 0.01 <= cpus <= 100_000:
            raise ValueError(f"cpus must be a number of processors from 0.01 on, got {cpus!r}")
        if tasks is not None and tasks < 1:
            raise ValueError(f"tasks must be a positive number of processes, got {tasks!r}")

    def __bool__(self) -> bool:
        return (self.memory, self.cpus, self.tasks) != (None, None, None)

    def __repr__(self) -> str:
        return f"ProcessLimits(memory={self.memory}, cpus={self.cpus}, tasks={self.tasks})"

    @property
    def memory_words(self) -> str:
        """Return the limit of memory in readable form.

        >>> ProcessLimits(memory="1536M").memory_words
        '1.5 GiB'
        """
        return in_words(self.memory or 0)


def _bytes(memory: int | str) -> int:
    if isinstance(memory, int):
        return memory
    found = bytes_in(memory)
    if found is None:
        raise ValueError(f"memory must be a number of bytes, or text such as 512M or 2G, got {memory!r}")
    return found


_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def bytes_in(text: str) -> int | None:
    """Return the number of bytes of a text such as 64M, 2 GiB or 1000; None for any other text.

    >>> bytes_in("64M"), bytes_in("2 GiB"), bytes_in("much")
    (67108864, 2147483648, None)
    """
    found = _SIZE.fullmatch(text.strip())
    return None if found is None else int(found[1]) * _FACTORS[found[2].lower()]


def in_words(size: int) -> str:
    """Return a number of bytes in the largest unit that fits.

    >>> in_words(1_610_612_736)
    '1.5 GiB'
    """
    number, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:.4g} {unit}"


async def answer_of(*command: str) -> str:
    """Return a command's output; its errors are dropped. Raises OSError."""
    asking = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    answer, _ = await asking.communicate()
    return answer.decode("utf-8", "replace").strip()


class Confined(ABC):
    """One agent within its limits."""

    command: list[str]
    """The command that starts it."""

    @abstractmethod
    async def limit_hit(self) -> str:
        """Return which limit ended it, in words; empty if none did. Call it after the end."""

    @abstractmethod
    async def close(self) -> None:
        """End its remaining processes, and free its resources."""


class Confinement(ABC):
    """A mechanism that limits agents."""

    @abstractmethod
    def confine(self, command: Sequence[str], env: Mapping[str, str | None]) -> Confined:
        """Make room for one agent, which this command starts. `env` are the variables that are set for it."""

    @abstractmethod
    def sweep(self) -> None:
        """Remove the remains of servers that have ended."""
