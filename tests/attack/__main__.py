"""Try each kind of attack by itself, and say which get through.

python -m tests.attack            every kind
python -m tests.attack --list     their names
python -m tests.attack KIND ...   these
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.attack.attackers.families import ATTACKS
from tests.attack.bounds import Bounds
from tests.attack.field import field
from tests.attack.rounds import MEETINGS, Failed, Run

SEED = 1
BOUNDS = Bounds(settle=20.0)


async def tried(kinds: list[str]) -> list[str]:
    """Try these on one field until one gets through; the kinds that are left."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        async with field(Path(folder), SEED, BOUNDS) as ground:
            run = Run(ground, lambda _: None)
            while kinds:
                kind, *kinds = kinds
                try:
                    await run.round(SEED, [kind])
                except Failed as failed:
                    print(f"{kind:36} GETS THROUGH  {failed}", flush=True)
                    return kinds
                print(f"{kind:36} held, with peaks over the base of {ground.peaks()} MiB", flush=True)
    return kinds


if __name__ == "__main__":
    left = sys.argv[1:] or [*sorted(ATTACKS), *MEETINGS]
    if left == ["--list"]:
        print(*sorted(ATTACKS), *MEETINGS, sep="\n")
    else:
        while left:
            left = asyncio.run(tried(left))
