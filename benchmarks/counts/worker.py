"""What runs under callgrind: every path that is named, three times, between marks.

Prints a line of JSON: the paths in their order, each with the size of its shorter run. Then come four marks a path: the
start and the end of the shorter run, and of the longer one.
"""

import asyncio
import gc
import json
import os
import sys

from benchmarks.counts.paths import PATHS, Path, Run

LONGER = 3
"""How many times as long the second run is."""


def mark() -> None:
    """What callgrind waits for; its result does not matter."""
    os.getpgid(0)


async def counted(run: Run, count: int) -> None:
    """One run, between two marks."""
    # A collection comes after so many allocations, whatever made them, and takes as long as the whole program is large.
    gc.collect()
    mark()
    await run(count)
    mark()


async def count(path: Path) -> None:
    """All runs of one path."""
    async with path.opened() as run:
        await run(path.size)
        await counted(run, path.size)
        await counted(run, LONGER * path.size)


def main(names: list[str]) -> None:
    """Run these paths, or all."""
    paths = [path for path in PATHS if not names or path.name in names]
    print(json.dumps([{"name": path.name, "size": path.size} for path in paths]), flush=True)
    gc.disable()
    for path in paths:
        asyncio.run(count(path))


if __name__ == "__main__":
    main(sys.argv[1:])
