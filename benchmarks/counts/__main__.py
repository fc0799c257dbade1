"""`python -m benchmarks.counts`: counts instructions, and compares them with those that were recorded.

    python -m benchmarks.counts                        compare with recorded.json; exit 1 if a path costs 3 % more
    python -m benchmarks.counts "a round trip"         this path only, by its name
    python -m benchmarks.counts --hot                  the ten that most messages take
    python -m benchmarks.counts --against ../old/packages/accord/src      compare with other sources, in the same run
    python -m benchmarks.counts --record               keep the counts in recorded.json

The counts of two runs differ by less than 1 %, turns over a network by up to 2 %, whatever else the machine does.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.counts.counting import Counts, NoValgrind, counted
from benchmarks.counts.paths import HOT, PATHS
from benchmarks.counts.recorded import build_of_python, keep, recorded

TOLERANCE = 0.03
"""How much more a path may cost than what was recorded."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counts", description="Count instructions.")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="the name of a path to count; all by default")
    parser.add_argument("--hot", action="store_true", help="count the ten paths that most messages take")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="sources to compare with, a folder with accord")
    parser.add_argument("--record", action="store_true", help="keep the counts in recorded.json")
    chosen = parser.parse_args(given)
    if chosen.hot:
        chosen.paths += HOT
    names = [path.name for path in PATHS]
    for name in chosen.paths:
        if name not in names:
            parser.error(f"no path is named {name!r}; the paths are: {', '.join(names)}")
    return chosen


def table(counts: Counts, before: Counts | None) -> str:
    """The counts, in thousands of instructions a message, beside the earlier ones."""
    lines = [f"{'thousands of instructions':34}{'now':>9}{'calibrated':>12}{'before':>9}{'change':>9}"]
    for name, count in counts.each.items():
        line = f"{name:34}{count / 1e3:9.1f}{counts.ratio(name):12.3f}"
        if before is not None and name in before.each:
            line += f"{before.each[name] / 1e3:9.1f}{change(name, counts, before):9.1%}"
        lines.append(line)
    return "\n".join(lines)


def change(name: str, counts: Counts, before: Counts) -> float:
    """How much more a path costs, as a share of what it cost."""
    return counts.ratio(name) / before.ratio(name) - 1


def worse(counts: Counts, before: Counts) -> list[str]:
    """The paths that cost more than before, past the tolerance."""
    return [name for name in counts.each if name in before.each and change(name, counts, before) > TOLERANCE]


def main(given: Sequence[str] | None = None) -> int:
    """0 if no path costs more than it did, 1 if one does, 2 if counting is not possible."""
    chosen = arguments(given)
    try:
        counts = counted(chosen.paths)
        before = recorded() if chosen.against is None else counted(chosen.paths, sources=chosen.against)
    except NoValgrind as error:
        print(error, file=sys.stderr)
        return 2
    print(table(counts, before))
    if chosen.record:
        keep(counts)
        return 0
    if before is None:
        print(f"nothing was recorded for this build of Python: {build_of_python()}", file=sys.stderr)
        return 0
    costly = worse(counts, before)
    for name in costly:
        print(f"{name} costs {change(name, counts, before):.1%} more; {TOLERANCE:.0%} are allowed", file=sys.stderr)
    return int(bool(costly))


if __name__ == "__main__":
    sys.exit(main())
