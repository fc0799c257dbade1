"""`python -m benchmarks.load.hop`: what it costs that a request reaches another host than the one with the agent.

The same client works with one host directly, and through a second one that only forwards, in turn. What is compared is
the processor time of both hosts, to the nanosecond and without their threads (the table of hosts is not part of it),
and the median of the time that a turn takes.
With `--instructions` the second host runs under callgrind, which counts what it does for a turn and for an update.
"""

import argparse
import asyncio
import json
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from accord.http import HttpTransport
from benchmarks.load.clients import Caller
from benchmarks.load.processes import Process, precise_cpu_seconds, process

LEASE = "600"
"""Seconds: no beat falls into a measurement, and valgrind may be as slow as it is."""

LONGER = 3

TRIES = 20
LEAST = 50e-6
"""Seconds of processor time that a turn takes at least where it is served."""


class Work(NamedTuple):
    """What a client does: prompts that are answered at once, and the updates of one more turn."""

    turns: int
    updates: int


async def do(url: str, work: Work) -> list[float]:
    """Do this work on a connection of its own; the milliseconds of each turn."""
    caller = Caller(HttpTransport(url, http2=False))
    await caller.open()
    times = [await caller.ask() for _ in range(work.turns)]
    if work.updates:
        await caller.listen(work.updates, 0)
    if caller.wrong:
        raise SystemExit(f"{caller.wrong} updates were lost or out of order")
    await caller.leave()
    return times


class Cost(NamedTuple):
    """What one turn or update took."""

    cpu: float
    """Microseconds of processor time, of both hosts."""
    waited: float
    """Milliseconds until a turn was answered, the median; 0 without turns."""


def cost(hosts: Sequence[Process], url: str, work: Work) -> Cost:
    """What this work takes, for one turn or update of it."""
    before = sum(map(precise_cpu_seconds, hosts))
    waited = asyncio.run(do(url, work))
    used = sum(map(precise_cpu_seconds, hosts)) - before
    return Cost(used * 1e6 / (work.turns + work.updates), statistics.median(waited or [0.0]))


def times(pairs: int, turns: int, updates: int) -> dict[str, dict[str, float]]:
    """What turns and updates take, direct and through a hop: the medians of so many pairs."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="accord-hop-") as folder, ExitStack() as stack:
        directory = str(Path(folder, "hosts.sqlite3"))
        agent = stack.enter_context(process("benchmarks.load.server", directory, "", LEASE, "1"))
        direct = agent.line().split()[0]  # before the other one starts, which finds it in the table then
        hop = stack.enter_context(process("benchmarks.load.server", directory, "", LEASE, "0"))
        through = hop.line().split()[0]
        for url in direct, through:
            asyncio.run(do(url, Work(50, 500)))  # what is loaded once does not count
        must_forward(agent, through)
        for name, work in (("a turn", Work(turns, 0)), ("an update", Work(0, updates))):
            each = [[cost([agent, hop], url, work) for url in (direct, through)] for _ in range(pairs)]
            found[f"microseconds of processor time for {name}"] = compared([[it.cpu for it in pair] for pair in each])
            if work.turns:
                found["milliseconds until a turn is answered"] = compared([[it.waited for it in pair] for pair in each])
    return found


def compared(pairs: Sequence[Sequence[float]]) -> dict[str, float]:
    """The medians of the direct figures, of those through a hop, and of the differences."""
    return {
        "direct": statistics.median(pair[0] for pair in pairs),
        "through": statistics.median(pair[1] for pair in pairs),
        "added": statistics.median(pair[1] - pair[0] for pair in pairs),
    }


def must_forward(agent: Process, through: str) -> None:
    """Wait until requests to the other host reach this one; SystemExit if they do not."""
    work = Work(50, 0)
    for _ in range(TRIES):
        before = precise_cpu_seconds(agent)
        asyncio.run(do(through, work))
        if precise_cpu_seconds(agent) - before > work.turns * LEAST:
            return
    raise SystemExit("the second host does not forward: there is no hop to measure")


def instructions(turns: int, updates: int) -> dict[str, float]:
    """Instructions of the host that forwards, for a turn and for an update."""
    least = _instructions(Work(turns, updates))
    return {
        "turn": (_instructions(Work(LONGER * turns, updates)) - least) / ((LONGER - 1) * turns),
        "update": (_instructions(Work(turns, LONGER * updates)) - least) / ((LONGER - 1) * updates),
    }


def _instructions(work: Work) -> int:
    with tempfile.TemporaryDirectory(prefix="accord-hop-") as folder, ExitStack() as stack:
        directory, out = str(Path(folder, "hosts.sqlite3")), Path(folder, "out")
        agent = stack.enter_context(process("benchmarks.load.server", directory, "", LEASE, "1"))
        agent.line()
        under = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}"]
        hop = Process("benchmarks.load.server", directory, "", LEASE, "0", under=under)
        try:
            asyncio.run(do(hop.line().split()[0], work))
        finally:
            hop.end(signal.SIGTERM)
        with out.open() as counted:
            return next(int(line.split()[1]) for line in counted if line.startswith(("summary:", "totals:")))


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.hop", description=__doc__)
    number: dict[str, Any] = {"type": int, "metavar": "N"}
    parser.add_argument("--pairs", default=7, **number, help="pairs of runs (default: %(default)s)")
    parser.add_argument("--turns", default=500, **number, help="turns of a run (default: %(default)s)")
    parser.add_argument("--updates", default=20_000, **number, help="updates of a run (default: %(default)s)")
    parser.add_argument("--instructions", action="store_true", help="count instructions, with valgrind")
    chosen = parser.parse_args(given)
    if min(chosen.pairs, chosen.turns, chosen.updates) < 1:
        parser.error("--pairs, --turns and --updates take numbers from 1 up")
    if chosen.instructions and shutil.which("valgrind") is None:
        parser.error("--instructions needs valgrind, which is not installed")
    found: dict[str, Any] = dict(times(chosen.pairs, chosen.turns, chosen.updates))
    if chosen.instructions:
        found["instructions of the hop"] = instructions(chosen.turns // 5 or 1, chosen.updates // 5 or 1)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    sys.exit(main())
