"""`python -m benchmarks.conductors`: chains of proxies, our conductor and proxies against the Rust SDK's, in turn.

Both chains stand between the same two programs, those of the floor, which cost next to nothing: what is left is the
cost of the conductors and the proxies. The target is 5 times the updates of the Rust chain and 1.5 times its round
trips.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace

from interop.peers import CONDUCTOR

from benchmarks.__main__ import kept, say
from benchmarks.build import Built, build_all
from benchmarks.measure import Measure
from benchmarks.options import add_options, chosen_options
from benchmarks.peers import DEFAULT_LOOP, FLOOR, OURS, Tokens, fill
from benchmarks.report import table
from benchmarks.results import Result
from benchmarks.versus import OursFailed, Scope, Warmed, versus

FULL = Scope(pairs=5, seconds=2.0)
QUICK = Scope(pairs=2, seconds=0.5)
PROXIES = (0, 1, 2)


def chain(conductor: Built, floor: Built, proxies: int) -> Built:
    """The floor's client, and a chain of so many proxies before the floor's agent."""
    agent = shlex.join(fill(FLOOR.agent, floor.folder))
    client = tuple(fill(FLOOR.client, floor.folder))
    ours = conductor.peer.name == OURS.name
    begin, proxy = OUR_CHAIN if ours else THEIR_CHAIN
    words = fill((*begin, *[proxy] * proxies), conductor.folder)
    return Built(replace(conductor.peer, agent=(*words, agent), client=client, loops=()), conductor.folder)


OUR_CHAIN: tuple[Tokens, str] = ("{python}", "-m", "accord", "conduct"), "{python} {here}/agents/passing_proxy.py"
THEIR_CHAIN: tuple[Tokens, str] = ("{build}/target/release/conductor", "agent"), "{build}/target/release/proxy pass"


def measures(proxies: int) -> list[Measure]:
    """Updates of the agent, its requests one after the other, and many at a time, through so many proxies."""
    way = f"through {proxies} {'proxy' if proxies == 1 else 'proxies'}"
    return [
        Measure(name=f"stream {way}", unit="updates/s", prompts=lambda size, _: [f"stream {size}"], probe=3000),
        Measure(name=f"read {way}", unit="round trips/s", prompts=lambda size, _: [f"read {size}"], probe=300),
        Measure(name=f"conc {way}", unit="round trips/s", prompts=lambda size, _: [f"conc {size} 100"], probe=1000),
    ]


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conductors", description=__doc__)
    parser.add_argument("--only", action="append", choices=("stream", "read", "conc"), help="measure this only")
    parser.add_argument("--proxies", action="append", type=int, choices=PROXIES, help="this many proxies only")
    add_options(parser)
    return chosen_options(parser, given)


def main(given: Sequence[str] | None = None) -> int:
    """0 when all went well, 1 when ours failed, became worse or could not be measured."""
    chosen = arguments(given)
    basis = QUICK if chosen.quick else FULL
    scope = Scope(chosen.pairs or basis.pairs, basis.seconds)
    built = build_all([OURS, CONDUCTOR, FLOOR], say)
    if len(built) < 3:
        return 1
    results: list[Result] = []
    sound = True
    for proxies in chosen.proxies or PROXIES:
        us, them = (chain(built[name], built[FLOOR.name], proxies) for name in (OURS.name, CONDUCTOR.name))
        warmed: Warmed = {}
        for measure in measures(proxies):
            if chosen.only and measure.name.split()[0] not in chosen.only:
                continue
            try:
                results += versus(us, them, DEFAULT_LOOP, [measure], scope, warmed, say)
            except OursFailed as error:
                sound = False
                say(str(error))
    print(json.dumps([result.to_json() for result in results], indent=1) if chosen.json else table(results))
    return int(not (results and sound and kept(chosen, results)))


if __name__ == "__main__":
    sys.exit(main())
