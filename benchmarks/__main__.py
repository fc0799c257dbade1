"""`python -m benchmarks`: ours and each peer in turn, and what the ratios are."""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from benchmarks.build import Built, build_all
from benchmarks.chart import chart
from benchmarks.matrix import draw, matrix
from benchmarks.measure import MEASURES
from benchmarks.options import add_options, chosen_options
from benchmarks.peers import DEFAULT_LOOP, OURS, PEERS, UVLOOP
from benchmarks.record import RECORDED, load, merge, regressions, save
from benchmarks.report import table
from benchmarks.results import Result
from benchmarks.versus import OursFailed, Scope, Warmed, loops_of, versus

FULL = Scope(pairs=5, seconds=1.0)
QUICK = Scope(pairs=2, seconds=0.15)
QUICK_MEASURES = ("stream", "read", "conc")


def say(line: str) -> None:
    """Progress, out of the way of what is piped on."""
    print(line, file=sys.stderr, flush=True)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--ours", default=OURS.name, choices=PEERS, help="who is compared with the others")
    parser.add_argument("--peer", action="append", choices=PEERS, help="compare with this one only; may be repeated")
    parser.add_argument("--only", action="append", choices=MEASURES, help="measure this only; may be repeated")
    parser.add_argument("--loop", action="append", choices=(DEFAULT_LOOP, UVLOOP), help="one event loop only")
    parser.add_argument("--matrix", action="store_true", help="instead: every client against every agent")
    add_options(parser, "stream, read and conc, two short pairs, one event loop")
    return chosen_options(parser, given)


def measured(chosen: argparse.Namespace, ours: Built, peers: Sequence[Built]) -> tuple[list[Result], bool]:
    """Every comparison that was asked for, and whether ours did its part in all of them."""
    basis = QUICK if chosen.quick else FULL
    scope = Scope(chosen.pairs or basis.pairs, basis.seconds)
    names: Sequence[str] = chosen.only or (QUICK_MEASURES if chosen.quick else list(MEASURES))
    measures = [MEASURES[name] for name in dict.fromkeys(names)]
    # A quick run asks for its measures in one process, a full one gives each its own.
    together = [measures] if chosen.quick else [[measure] for measure in measures]
    wanted: Sequence[str] = chosen.loop or ((DEFAULT_LOOP,) if chosen.quick else (DEFAULT_LOOP, UVLOOP))
    results: list[Result] = []
    sound = True
    warmed: Warmed = {}
    loops = loops_of(ours, wanted)
    if ours.peer is OURS and UVLOOP in loops and not find_spec(UVLOOP):
        loops.remove(UVLOOP)
        say("skipping uvloop: it is not installed here, pip install 'accord[uvloop]'")
    for loop in loops:
        for group in together:
            # Loading a library involves no loop, so it is measured once.
            group = [measure for measure in group if loop == loops[0] or measure.name != "import"]  # noqa: PLW2901
            for theirs in peers:
                try:
                    results += versus(ours, theirs, loop, group, scope, warmed, say)
                except OursFailed as error:
                    sound = False
                    say(str(error))
    place = {name: number for number, name in enumerate(MEASURES)}
    return sorted(results, key=lambda result: (result.loop, place[result.measure])), sound


def main(given: Sequence[str] | None = None) -> int:
    """0 when all went well, 1 when ours failed, became worse or could not be measured."""
    chosen = arguments(given)
    names = chosen.peer or [name for name in PEERS if name != OURS.name]
    built = build_all([PEERS[name] for name in dict.fromkeys([chosen.ours, *names])], say)
    if chosen.matrix:
        cells = matrix(list(built.values()), say)
        print(json.dumps([cell.to_json() for cell in cells], indent=1) if chosen.json else draw(cells))
        return int(not cells or any(cell.broken for cell in cells))
    if chosen.ours not in built:
        return 1
    ours = built.pop(chosen.ours)
    results, sound = measured(chosen, ours, list(built.values()))
    print(json.dumps([result.to_json() for result in results], indent=1) if chosen.json else table(results))
    return int(not (results and sound and kept(chosen, results)))


def kept(chosen: argparse.Namespace, results: Sequence[Result]) -> bool:
    """Do with the results what else was asked; false when they are worse than the recorded ones."""
    if chosen.chart:
        chosen.chart.write_text(chart(results, chosen.ours))
    # Read before it is written, so that both can be asked for at once.
    worse = regressions(load(chosen.compare), results) if chosen.compare else []
    if chosen.record:
        save(RECORDED, merge(load(RECORDED), results))
    for regression in worse:
        say(f"worse: {regression}")
    return not worse


if __name__ == "__main__":
    sys.exit(main())
