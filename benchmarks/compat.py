"""The official Python SDK's programs on that SDK and on `accord.compat.acp`: the same files, run in pairs.

python -m benchmarks.compat [--quick]        needs the package agent-client-protocol beside ours

A pair is a run of theirs and a run of ours, a client and its agent each in a process of its own. The figure is the
median of the pairs' ratios: what else the machine does hits both sides of a pair.

python -m benchmarks.compat --cpu            processor time of both processes for an update, which load changes less
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
PROGRAMS = [str(HERE / side / f"python_{side[:-1]}.py") for side in ("clients", "agents")]
ON_THEIRS = [sys.executable]
ON_OURS = [sys.executable, "-m", "accord.compat.acp"]

QUICK = {"stream 2000": 3, "read 300": 3}
FULL = {"stream 5000": 7, "stream 2000 4000": 7, "tools 1000": 7, "read 1000": 7, "conc 1000 50": 7}
"""What the client asks for, and how many pairs to run: see `benchmarks/README.md` for the words."""


class Failed(Exception):
    """A run did not do what was asked."""


def rate(start: Sequence[str], prompt: str) -> float:
    """What the client saw of this prompt, in messages a second; raises Failed."""
    client, agent = PROGRAMS
    command = [*start, client, "--json", prompt, prompt, "--", *start, agent]  # the first one warms up
    path = os.pathsep.join([str(HERE.parent / "src"), str(HERE.parent)])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines or not all(line["ok"] for line in lines):
        raise Failed(f"{' '.join(command)}: {done.stderr[-500:] or done.stdout[-500:]}")
    return float(lines[-1]["perSec"])


def microseconds(start: Sequence[str], updates: int) -> float:
    """Processor time of client and agent for one update: what another prompt costs, without the start."""
    client, agent = PROGRAMS
    path = os.pathsep.join([str(HERE.parent / "src"), str(HERE.parent)])
    spent: list[float] = []
    for prompts in (1, 3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*start, client, "--json", *[f"stream {updates}"] * prompts, "--", *start, agent],
            capture_output=True,
            timeout=600,
            check=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (spent[1] - spent[0]) / (2 * updates) * 1e6


def processor_time(updates: int, count: int) -> None:
    """Print so many pairs, and their median ratio."""
    found: list[float] = []
    for _ in range(count):
        theirs, ours = microseconds(ON_THEIRS, updates), microseconds(ON_OURS, updates)
        print(f"theirs {theirs:,.0f} µs, ours {ours:,.0f} µs an update: {theirs / ours:.1f}", flush=True)
        found.append(theirs / ours)
    print(f"median ratio {median(found):.1f}")


def pairs(prompt: str, count: int) -> list[tuple[float, float]]:
    """So many pairs: the rate of theirs, and that of ours. Which one goes first alternates."""
    found: list[tuple[float, float]] = []
    for number in range(count):
        order = (ON_THEIRS, ON_OURS) if number % 2 == 0 else (ON_OURS, ON_THEIRS)
        rates = [rate(start, prompt) for start in order]
        found.append((rates[0], rates[1]) if number % 2 == 0 else (rates[1], rates[0]))
    return found


def main(arguments: Sequence[str]) -> None:
    """Run the pairs, and print a line for each kind of prompt."""
    if "--cpu" in arguments:
        processor_time(20_000, 3)
        return
    wanted = QUICK if "--quick" in arguments else FULL
    print("| asked for | theirs, a second | ours, a second | ours / theirs |\n|---|---|---|---|")
    for prompt, count in wanted.items():
        found = pairs(prompt, count)
        theirs, ours = median(a for a, _ in found), median(b for _, b in found)
        ratio = median(b / a for a, b in found)
        print(f"| `{prompt}` | {theirs:,.0f} | {ours:,.0f} | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
