"""What is measured, and one run of it: a fresh client process that spawns a fresh agent."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.build import Built
from benchmarks.peers import fill
from benchmarks.results import Reading

RUN_SECONDS = 120
LAUNCHES = 3
SESSIONS = 10_000
BIG = 10_000_000
IN_FLIGHT = 100
LEAST_MEMORY = 0.05
"""MiB. A growth below this is lost in what an allocator keeps in reserve."""

Line = dict[str, Any]
"""What a client prints for a prompt."""


class Failed(Exception):
    """A run did not do what the contract says; the text is one line."""


@dataclass(frozen=True)
class Side:
    """One implementation on one event loop."""

    built: Built
    loop: str

    @property
    def name(self) -> str:
        return self.built.peer.name

    def agent(self) -> list[str]:
        return fill(self.built.peer.agent, self.built.folder, self.loop)

    def client(self) -> list[str]:
        return fill(self.built.peer.client, self.built.folder, self.loop)


def turns(count: int, longest: int | None) -> list[int]:
    """A count in turns that are no longer than allowed."""
    if longest is None or count <= longest:
        return [count]
    whole, rest = divmod(count, longest)
    return [longest] * whole + ([rest] if rest else [])


def rate(lines: Sequence[Line]) -> float:
    """Everything counted over all the time it took."""
    seconds = sum(line["ms"] for line in lines) / 1e3
    return sum(line["perSec"] * line["ms"] / 1e3 for line in lines) / seconds


def megabytes(lines: Sequence[Line]) -> float:
    """A `big` goes one way, an `echo` goes both."""
    moved = sum(BIG / 1e6 * (2 if line["prompt"].startswith("echo") else 1) for line in lines)
    return moved / (sum(line["ms"] for line in lines) / 1e3)


def growth(lines: Sequence[Line], opened: int = SESSIONS) -> float:
    """MiB that 1,000 sessions add to both processes, when so many were opened."""
    memory = lines[-1]["memory"]
    if not all(memory[when][who] for when in ("before", "after") for who in ("agent", "client")):
        raise Failed("this system does not tell a process's resident memory")
    grown = sum(memory["after"][who]["now"] - memory["before"][who]["now"] for who in ("agent", "client"))
    return max(LEAST_MEMORY, grown / 1024 / opened * 1000)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One thing to measure. `size` is what the number of seconds scales; a probe of a small size finds the pace."""

    name: str
    unit: str
    more_is_better: bool = True
    prompts: Callable[[int, int | None], list[str]] | None = None
    """The prompts for a size and a longest turn; none for what is measured by launching."""
    launch: Callable[[Side], float] | None = None
    """The figure of one launch."""
    value: Callable[[Sequence[Line]], float] = rate
    probe: int = 1
    per_size: float = 1
    """What the value counts for one unit of size."""
    most: int = 2_000_000
    paced: bool = True

    def size(self, pace: float, seconds: float) -> int:
        """The size that takes about that long, in two significant digits."""
        if not self.paced:
            return self.probe
        wanted = max(self.probe, min(self.most, pace * seconds / self.per_size))
        return int(float(f"{wanted:.2g}"))


def run_process(command: list[str], folder: os.PathLike[str], codes: Sequence[int] = (0,)) -> str:
    """A process's output; nothing that it started survives it."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        output, errors = process.communicate(timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {RUN_SECONDS} s: {' '.join(command)[:300]}") from None
    finally:
        end_group(process)
    if process.returncode not in codes:
        said = (errors.strip() or output.strip()).splitlines()
        raise Failed(f"exit code {process.returncode}: {said[-1][:300] if said else 'nothing said'}")
    return output


def end_group(process: subprocess.Popen[str]) -> None:
    """Kill a process and what is left of its group."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def converse(client: Side, agent: Side, prompts: Sequence[str], *, unsound: bool = False) -> list[Line]:
    """One client process, its agent, and what the client saw for each prompt; it exits with 1 when one is unsound."""
    command = [*client.client(), "--json", *prompts, "--", *agent.agent()]
    output = run_process(command, client.built.folder, (0, 1) if unsound else (0,))
    lines: list[Line] = [json.loads(line) for line in output.splitlines()]
    if len(lines) != len(prompts):
        raise Failed(f"the client ended at `{prompts[len(lines)]}`")
    return lines


def started(side: Side) -> float:
    """Milliseconds from spawning the agent to its answer to `initialize`."""
    return converse(side, side, ["hello"])[0]["startMs"]


def imported(side: Side) -> float:
    """Milliseconds that the library takes to load."""
    peer, folder = side.built.peer, side.built.folder
    return float(run_process(fill(peer.imports, folder), folder))


MEASURES = {
    measure.name: measure
    for measure in (
        Measure(
            name="stream",
            unit="updates/s",
            prompts=lambda size, longest: [f"stream {count}" for count in turns(size, longest)],
            probe=3000,
        ),
        Measure(
            name="tools",
            unit="updates/s",
            prompts=lambda size, longest: [f"tools {count}" for count in turns(size, longest and longest // 2)],
            probe=1000,
            per_size=2,
        ),
        Measure(name="read", unit="round trips/s", prompts=lambda size, _: [f"read {size}"], probe=300),
        Measure(name="conc", unit="round trips/s", prompts=lambda size, _: [f"conc {size} {IN_FLIGHT}"], probe=1500),
        Measure(
            name="big",
            unit="MB/s",
            prompts=lambda size, _: [f"big {BIG}", f"echo {BIG}"] * size,
            value=megabytes,
            per_size=3 * BIG / 1e6,
            most=20,
        ),
        Measure(name="start", unit="ms", more_is_better=False, launch=started, paced=False),
        Measure(name="import", unit="ms", more_is_better=False, launch=imported, paced=False),
        Measure(
            name="memory",
            unit="MiB/1,000 sessions",
            more_is_better=False,
            prompts=lambda size, _: [f"sessions {size}"],
            value=growth,
            probe=SESSIONS,
            paced=False,
        ),
    )
}


def plan(
    measures: Sequence[Measure], sizes: Mapping[str, int], longest: int | None, warm_up: float
) -> list[tuple[str | None, str]]:
    """The prompts of one process, each with the measure it counts for; a warm-up runs ahead and counts for none."""
    planned: list[tuple[str | None, str]] = []
    for measure in measures:
        if measure.prompts is None:
            continue
        size = sizes[measure.name]
        if measure.paced and (ahead := round(size * warm_up)):
            planned += [(None, prompt) for prompt in measure.prompts(ahead, longest)]
        planned += [(measure.name, prompt) for prompt in measure.prompts(size, longest)]
    return planned


def reading_of(measure: Measure, lines: Sequence[Line]) -> Reading:
    """What a measure's lines come to."""
    if unsound := [line for line in lines if not line["ok"]]:
        raise Failed(f"`{unsound[0]['prompt']}` did not end as promised: {unsound[0]['error'] or unsound[0]}")
    timed = [line for line in lines if line["p50us"] is not None]
    if not timed:
        return Reading(measure.value(lines))
    p50, p99 = (median(line[name] for line in timed) for name in ("p50us", "p99us"))
    return Reading(measure.value(lines), p50, p99)


def run(side: Side, measures: Sequence[Measure], sizes: Mapping[str, int], longest: int | None) -> dict[str, Reading]:
    """One fresh run of one side: a reading for each of the measures."""
    readings: dict[str, Reading] = {}
    if planned := plan(measures, sizes, longest, side.built.peer.warm_up):
        lines = converse(side, side, [prompt for _, prompt in planned])
        for measure in measures:
            if measure.prompts:
                kept = [line for (name, _), line in zip(planned, lines, strict=True) if name == measure.name]
                readings[measure.name] = reading_of(measure, kept)
    for measure in measures:
        if measure.launch:
            readings[measure.name] = Reading(median(measure.launch(side) for _ in range(LAUNCHES)))
    return readings


def sizes_for(side: Side, measures: Sequence[Measure], longest: int | None, seconds: float) -> dict[str, int]:
    """The one warm-up: a small run that fills the system's caches and tells how much fits into the time."""
    probes = {measure.name: measure.probe for measure in measures}
    readings = run(side, measures, probes, longest)
    return {measure.name: measure.size(readings[measure.name].value, seconds) for measure in measures}
