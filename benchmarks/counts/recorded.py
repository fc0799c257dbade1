"""The counts that were recorded, for each build of Python: other builds run other instructions."""

import json
import sys
from pathlib import Path

import msgspec

from benchmarks.counts.counting import Counts

FILE = Path(__file__).with_name("recorded.json")


def build_of_python() -> str:
    """The interpreter and the library that nearly all instructions belong to."""
    return f"{sys.implementation.name} {sys.version}, msgspec {msgspec.__version__}".replace("\n", "")


def recorded() -> Counts | None:
    """What this build of Python needed when it was recorded; None if it never was."""
    return _all().get(build_of_python())


def keep(counts: Counts) -> None:
    """Record these counts; paths that were not counted keep theirs."""
    earlier = recorded()
    each = {**({} if earlier is None else earlier.each), **counts.each}
    kept = {**_all(), build_of_python(): Counts({name: round(count) for name, count in each.items()})}
    FILE.write_text(json.dumps(msgspec.to_builtins(kept), indent=1) + "\n")


def _all() -> dict[str, Counts]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Counts]) if FILE.exists() else {}
