"""Try each kind of attack by itself, on a field of its own, and say which get through.

python -m attack            every kind
python -m attack --list     their names
python -m attack KIND ...   these
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from attack.attackers import ATTACKS
from attack.bounds import Bounds
from attack.field import field
from attack.rounds import MEETINGS, Failed, Run

SEEDS = 1
"""Rounds of each kind."""


async def tried(kind: str) -> str:
    """What came of a kind of attack."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        async with field(Path(folder), 1, Bounds(settle=10.0)) as ground:
            run = Run(ground, lambda _: None)
            for seed in range(SEEDS):
                try:
                    await run.round(seed, [kind])
                except Failed as failed:
                    return f"GETS THROUGH  {failed}"
    return "held"


if __name__ == "__main__":
    kinds = [*sorted(ATTACKS), *MEETINGS]
    if sys.argv[1:] == ["--list"]:
        print(*kinds, sep="\n")
    else:
        for kind in sys.argv[1:] or kinds:
            print(f"{kind:36}", asyncio.run(tried(kind)), flush=True)
