"""`python -m benchmarks.growth`: what a message costs both ends, and how the cost grows with the load.

    python -m benchmarks.growth                      every peer; some ten minutes for each
    python -m benchmarks.growth --quick --peer floor small loads only, to see that it works
    python -m benchmarks.growth --charts docs        also draws growth-sessions.svg, growth-memory.svg, growth-bytes.svg
    python -m benchmarks.growth --record             also keeps the points in growth.json
    python -m benchmarks.growth --repeats 3          fewer runs: half the time

| series | of | shows |
|---|---|---|
| cpu | stream, tools, read, conc | microseconds of processor time a message, both processes together |
| amid | 0 and 10 sessions | milliseconds of a turn while so many other sessions stream, median and 99th percentile |
| sessions | 1 to 10,000 sessions | microseconds to open one |
| memory | 1 to 10,000 sessions | KiB of both processes for each |
| bytes | 1 KB to 10 MB | microseconds of a turn with one chunk of that size |

Processor time is that of the client and of the agent which it has waited for: the difference of a run of three times
the size and one of the size, so what a start costs is not part of it. A busy machine distorts it less than wall time.
`amid` needs a client that talks in several sessions at once, which only the Python ones here do.
"""

import argparse
import json
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.build import build_all
from benchmarks.curves import Curve, curves
from benchmarks.measure import Failed, Side, converse, growth
from benchmarks.peers import DEFAULT_LOOP, OURS, PEERS
from benchmarks.versus import side

RECORDED = Path(__file__).parent / "growth.json"
LONGER = 3


@dataclass(frozen=True)
class Scope:
    """How much to measure."""

    cpu: dict[str, int]
    """The size of the shorter run, by verb."""
    sessions: Sequence[int]
    bytes: Sequence[int]
    repeats: int
    turns: int


FULL = Scope(
    cpu={"stream": 20_000, "tools": 5_000, "read": 2_000, "conc": 5_000},
    sessions=(1, 10, 100, 1_000, 10_000),
    bytes=(1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    repeats=7,
    turns=500,
)
QUICK = Scope(cpu={"stream": 300, "read": 30}, sessions=(1, 20), bytes=(1_000, 100_000), repeats=2, turns=20)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One figure of one peer under one load."""

    series: str
    peer: str
    at: float
    """The load: sessions, or bytes; 0 where the series has none."""
    of: str = ""
    """What was measured, where the load does not say it: a verb, a percentile."""
    value: float
    unit: str


def processor_seconds() -> float:
    """Processor time of all processes that have ended and that somebody waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def spent(of: Side, prompts: Sequence[str]) -> float:
    """Processor seconds of one client process and its agent."""
    before = processor_seconds()
    converse(of, of, prompts)
    return processor_seconds() - before


def microseconds(differences: Sequence[float], messages: int) -> float:
    """Processor time of a message, from the seconds that so many more messages took in several pairs of runs."""
    return round(max(0.0, median(differences)) / messages * 1e6, 3)


def cpu(of: Side, scope: Scope) -> Iterator[Point]:
    """Processor time for each message."""
    for verb, size in scope.cpu.items():
        tail = " 100" if verb == "conc" else ""
        differences = [
            spent(of, [f"{verb} {LONGER * size}{tail}"]) - spent(of, [f"{verb} {size}{tail}"])
            for _ in range(scope.repeats)
        ]
        value = microseconds(differences, (LONGER - 1) * size * (2 if verb == "tools" else 1))
        yield Point(series="cpu", peer=of.name, at=0, of=verb, value=value, unit="µs")


def amid(of: Side, scope: Scope) -> Iterator[Point]:
    """Latencies of a turn while other sessions stream."""
    if not of.built.peer.loops:
        return
    for streaming in (0, 10):
        line = converse(of, of, [f"amid {streaming} {scope.turns}"])[0]
        for name in ("p50us", "p99us"):
            value = round(line[name] / 1e3, 3)
            yield Point(series="amid", peer=of.name, at=streaming, of=name.removesuffix("us"), value=value, unit="ms")


def sessions(of: Side, scope: Scope) -> Iterator[Point]:
    """Time and memory of a session, by how many are opened."""
    for count in scope.sessions:
        lines = [converse(of, of, [f"sessions {count}"])[0] for _ in range(scope.repeats)]
        opened = median(line["ms"] for line in lines) * 1e3 / count
        yield Point(series="sessions", peer=of.name, at=count, value=round(opened, 3), unit="µs")
        grown = median(kib_of_a_session([line], count) for line in lines)
        yield Point(series="memory", peer=of.name, at=count, value=round(grown, 3), unit="KiB")


def kib_of_a_session(lines: list[dict[str, object]], count: int) -> float:
    """What each session adds to both processes; the allocator's reserve hides the growth of a few."""
    return growth(lines, count) * 1024 / 1000


def sizes(of: Side, scope: Scope) -> Iterator[Point]:
    """Time of a turn, by the bytes of its one chunk; the first turn of a process is not counted."""
    for size in scope.bytes:
        lines = converse(of, of, [f"big {size}"] * (scope.repeats + 1))[1:]
        value = round(median(line["ms"] for line in lines) * 1e3, 3)
        yield Point(series="bytes", peer=of.name, at=size, value=value, unit="µs")


SERIES: dict[str, Callable[[Side, Scope], Iterator[Point]]] = {
    "cpu": cpu,
    "amid": amid,
    "sessions": sessions,
    "bytes": sizes,
}
FEW = 20
"""Sessions below which the allocator's reserve hides what they weigh: such points are not drawn."""

CHARTS = (
    Curve("sessions", "Opening a session", "sessions", "µs a session"),
    Curve("memory", "Memory of a session", "sessions", "KiB, both processes"),
    Curve("bytes", "A turn with one chunk", "bytes of the chunk", "µs a turn"),
)


def measured(of: Sequence[Side], scope: Scope, names: Sequence[str], say: Callable[[str], None]) -> list[Point]:
    """All points; a series that fails for a peer is left out, and named."""
    points: list[Point] = []
    for each in of:
        for name in names:
            say(f"{name} of {each.name}")
            try:
                points += SERIES[name](each, scope)
            except Failed as error:
                say(f"skipping {name} of {each.name}: {error}")
    return points


def table(points: Sequence[Point]) -> str:
    """The points, one a line."""
    lines = [f"{'series':10}{'peer':12}{'at':>12} {'of':8}{'value':>14} unit"]
    lines += [
        f"{point.series:10}{point.peer:12}{point.at:12,.0f} {point.of:8}{point.value:14,.3f} {point.unit}"
        for point in points
    ]
    return "\n".join(lines)


def draw(points: Sequence[Point], folder: Path) -> None:
    """One chart for each series that has a load."""
    for chart in CHARTS:
        lines: dict[str, list[tuple[float, float]]] = {}
        for point in points:
            if point.series == chart.series and point.value > 0 and (point.series != "memory" or point.at >= FEW):
                lines.setdefault(point.peer, []).append((point.at, point.value))
        if lines:
            (folder / f"growth-{chart.series}.svg").write_text(curves(chart, lines))


def main(given: Sequence[str] | None = None) -> int:
    """0 if there are points, 1 if not."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description="How the cost grows with the load."
    )
    parser.add_argument("--quick", action="store_true", help="small loads only, to see that it works")
    parser.add_argument(
        "--peer", action="append", choices=PEERS, help="measure this one; may be repeated; all by default"
    )
    parser.add_argument("--only", action="append", choices=SERIES, help="measure this series; may be repeated")
    parser.add_argument("--repeats", type=int, metavar="N", help=f"runs of which the median is taken ({FULL.repeats})")
    parser.add_argument("--json", action="store_true", help="print the points as JSON")
    parser.add_argument("--charts", type=Path, metavar="FOLDER", help="draw the points to SVG files in this folder")
    parser.add_argument("--record", action="store_true", help=f"keep the points in {RECORDED.name}")
    chosen = parser.parse_args(given)
    scope = QUICK if chosen.quick else FULL
    if chosen.repeats is not None:
        scope = replace(scope, repeats=max(1, chosen.repeats))

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    wanted = dict.fromkeys(chosen.peer or [OURS.name, *PEERS])
    built = build_all([PEERS[name] for name in wanted], say)
    sides = [side(one, DEFAULT_LOOP) for one in built.values()]
    points = measured(sides, scope, chosen.only or list(SERIES), say)
    rows = [asdict(point) for point in points]
    print(json.dumps(rows, indent=1) if chosen.json else table(points))
    if chosen.charts:
        draw(points, chosen.charts)
    if chosen.record:
        RECORDED.write_text(json.dumps(rows, indent=1) + "\n")
    return int(not points)


if __name__ == "__main__":
    sys.exit(main())
