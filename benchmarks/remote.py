"""`python -m benchmarks.remote`: remote links, our server and client against the TypeScript SDK's, in turn.

Both ends are the same implementation, as everywhere here; the client starts the server, which prints its URL. Their
server speaks HTTP/1.1 only, so that is what both are measured with. Ours over HTTP/2 is beside it for information.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.__main__ import kept, say
from benchmarks.build import build_all
from benchmarks.measure import Measure
from benchmarks.options import add_options, chosen_options
from benchmarks.peers import DEFAULT_LOOP, OURS, TYPESCRIPT, UVLOOP, Peer
from benchmarks.report import table
from benchmarks.results import Result
from benchmarks.versus import OursFailed, Scope, Warmed, versus

FULL = Scope(pairs=5, seconds=2.0)
QUICK = Scope(pairs=2, seconds=0.5)

WAYS = {
    "WebSocket": ("websocket", "websocket"),
    "HTTP/1.1": ("http", "http"),
    "HTTP/2 against HTTP/1.1": ("http2", "http"),
}
"""How ours goes and how theirs does."""


def ours(over: str) -> Peer:
    """Our server and our client, by this way."""
    return replace(
        OURS,
        files={"agents/accord_server.py": "", "clients/accord_remote_client.py": ""},
        agent=("{python}", "{here}/agents/accord_server.py", "{loop}"),
        client=("{python}", "{here}/clients/accord_remote_client.py", f"--over={over}", "{loop}"),
    )


def theirs(over: str) -> Peer:
    """The TypeScript SDK's, which are built as those for standard streams are."""
    return replace(
        TYPESCRIPT,
        agent=("node", "{build}/agent.mjs", "--serve"),
        client=("node", "{build}/client.mjs", f"--over={over}"),
    )


def measures(way: str) -> list[Measure]:
    """A turn is a prompt, one update and the answer, one after the other; a stream is one prompt with many updates."""
    return [
        Measure(name=f"turns over {way}", unit="turns/s", prompts=lambda size, _: [f"turns {size}"], probe=60),
        Measure(name=f"stream over {way}", unit="updates/s", prompts=lambda size, _: [f"stream {size}"], probe=3000),
    ]


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote", description=__doc__)
    parser.add_argument("--only", action="append", choices=("turns", "stream"), help="measure this only")
    parser.add_argument("--way", action="append", choices=WAYS, help="go this way only; may be repeated")
    parser.add_argument("--loop", default=DEFAULT_LOOP, choices=(DEFAULT_LOOP, UVLOOP), help="our event loop")
    add_options(parser)
    return chosen_options(parser, given)


def main(given: Sequence[str] | None = None) -> int:
    """0 when all went well, 1 when ours failed, became worse or could not be measured."""
    chosen = arguments(given)
    basis = QUICK if chosen.quick else FULL
    scope = Scope(chosen.pairs or basis.pairs, basis.seconds)
    results: list[Result] = []
    sound = True
    warmed: Warmed = {}
    for way in chosen.way or WAYS:
        our_way, their_way = WAYS[way]
        built = build_all([ours(our_way), theirs(their_way)], say)
        if len(built) < 2:
            return 1
        for measure in measures(way):
            if chosen.only and measure.name.split()[0] not in chosen.only:
                continue
            us, them = built[OURS.name], built[TYPESCRIPT.name]
            try:
                results += versus(us, them, chosen.loop, [measure], scope, warmed, say)
            except OursFailed as error:
                sound = False
                say(str(error))
    print(json.dumps([result.to_json() for result in results], indent=1) if chosen.json else table(results))
    return int(not (results and sound and kept(chosen, results)))


if __name__ == "__main__":
    sys.exit(main())
