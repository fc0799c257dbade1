"""What a victim counts of itself, and what the runner sees of it from outside."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import re
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

BEAT = 0.02
"""Seconds between two beats of a probe."""


class Probe:
    """Beats in an event loop, and keeps the most processor time that its thread took from one beat to the next."""

    def __init__(self) -> None:
        self.worst = 0.0
        self.beats = 0

    async def beat(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(BEAT)
            self.worst = max(self.worst, time.thread_time() - before)
            self.beats += 1

    def read(self) -> float:
        """The longest standstill since this was read last."""
        worst, self.worst = self.worst, 0.0
        return worst


def counted(*loops: asyncio.AbstractEventLoop) -> dict[str, Any]:
    """What this process has now: memory, descriptors, children, tasks of these loops, objects of Accord's classes."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)  # what the allocator keeps free is not held by us
    objects = Counter(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in map(type, gc.get_objects())
        if str(kind.__module__).startswith("accord.")
    )
    return {
        "memory": memory_of(os.getpid()),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "children": len(children_of(os.getpid())),
        "tasks": sum(len(asyncio.all_tasks(loop)) for loop in loops),
        "objects": dict(objects),
    }


def memory_of(pid: int, what: str = "VmRSS") -> int:
    """Bytes of memory that a process has; 0 if there is no such process."""
    with suppress(OSError):
        if found := re.search(rf"{what}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1]) * 1024
    return 0


def forget_peak(pid: int) -> None:
    """Let `VmHWM` of a process begin again at what it has now."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def children_of(pid: int) -> list[int]:
    """The children of a process, of all of its threads."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found
