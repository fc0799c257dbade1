"""`python -m benchmarks.load.hop`: what it costs that a request reaches another host than the one with the agent.

The same client works with one host directly, and through a second one that only forwards, in turn. What is compared is
the processor time of both hosts, to the nanosecond and without their threads: the table of hosts is not part of it.
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


async def do(url: str, work: Work) -> None:
    """Do this work on a connection of its own."""
    caller = Caller(HttpTransport(url, http2=False))
    await caller.open()
    for _ in range(work.turns):
        await caller.ask()
    if work.updates:
        await caller.listen(work.updates, 0)
    if caller.wrong:
        raise SystemExit(f"{caller.wrong} updates were lost or out of order")
    await caller.leave()


def microseconds(hosts: Sequence[Process], url: str, work: Work) -> float:
    """The processor time that these hosts use for this work, for one turn or update of it."""
    before = sum(map(precise_cpu_seconds, hosts))
    asyncio.run(do(url, work))
    used = sum(map(precise_cpu_seconds, hosts)) - before
    return used * 1e6 / (work.turns + work.updates)


def times(pairs: int, turns: int, updates: int) -> dict[str, dict[str, float]]:
    """Microseconds of processor time, direct and through a hop: the medians of so many pairs."""
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
        for name, work in (("turn", Work(turns, 0)), ("update", Work(0, updates))):
            each = [[microseconds([agent, hop], url, work) for url in (direct, through)] for _ in range(pairs)]
            alone, hopped = (statistics.median(pair[way] for pair in each) for way in (0, 1))
            added = statistics.median(pair[1] - pair[0] for pair in each)
            found[name] = {"direct": alone, "through": hopped, "added": added}
    return found


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
    found: dict[str, Any] = {"microseconds": times(chosen.pairs, chosen.turns, chosen.updates)}
    if chosen.instructions:
        found["instructions of the hop"] = instructions(chosen.turns // 5 or 1, chosen.updates // 5 or 1)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    sys.exit(main())
