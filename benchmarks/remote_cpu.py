"""`python -m benchmarks.remote_cpu`: processor time of a remote turn, both ends together, beside the TypeScript SDK.

    python -m benchmarks.remote_cpu --pairs 7

Wall time on a machine with other work says little. The processor time of both ends (user and system, from
`getrusage`) hardly depends on that work. Each figure is the difference of a long and a short run, divided by the
difference of their turns, so the start of the programs is not part of it. The floor is two processes that exchange the
same three messages over a bare TCP connection on asyncio: a prompt one way, an update and an answer in one write back.
"""

import argparse
import asyncio
import resource
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, cast

from benchmarks.__main__ import say
from benchmarks.build import Built, build_all
from benchmarks.measure import Side, converse, run_process
from benchmarks.peers import DEFAULT_LOOP, OURS, TYPESCRIPT, UVLOOP
from benchmarks.remote import WAYS, ours, theirs

SHORT, LONG = 200, 2200
"""Turns of the two runs."""

ROOT = Path(__file__).parents[1]
FLOOR = (sys.executable, "-m", "benchmarks.remote_cpu", "--floor")
"""The command of one of the floor's processes."""

PROMPT = b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"0123456789abcdef","prompt":[]}}\n'
UPDATE = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0123456789abcdef","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"the quick brown fox"}}}}\n'
)
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}\n'


class Cost(NamedTuple):
    """Microseconds of processor time of one turn."""

    user: float
    system: float

    @property
    def total(self) -> float:
        """User and system."""
        return self.user + self.system


def cost(converse_for: Callable[[int], object]) -> Cost:
    """What a turn costs in processes that are started, and awaited, for this many turns."""
    short, long = spent(converse_for, SHORT), spent(converse_for, LONG)
    turns = (LONG - SHORT) / 1e6
    return Cost((long.user - short.user) / turns, (long.system - short.system) / turns)


def spent(converse_for: Callable[[int], object], turns: int) -> Cost:
    """Seconds of processor time of the children that end meanwhile, and of theirs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    converse_for(turns)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


def conversation(side: Side) -> Callable[[int], object]:
    """Turns between this client and its own server."""
    return lambda turns: converse(side, side, [f"turns {turns}"])


def floor(turns: int, loop: str = DEFAULT_LOOP) -> object:
    """Turns over a bare connection, in two processes of their own."""
    return run_process([*FLOOR, str(turns), "--loop", loop], ROOT)


# The floor's two processes


class Answering(asyncio.Protocol):
    """Answers each prompt with an update and an answer, in one write."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """The client sends one prompt at a time, and a read may bring a part of it."""
        if data.endswith(b"\n"):
            self.transport.write(UPDATE + ANSWER)


class Asking(Answering):
    """Sends a prompt when the one before was answered."""

    def __init__(self, turns: int) -> None:
        self.left = turns
        self.done = asyncio.get_running_loop().create_future()

    def ask(self) -> None:
        """Send the next prompt, if one is left."""
        if self.left:
            self.left -= 1
            self.transport.write(PROMPT)
        elif not self.done.done():
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        """The answer comes after the update."""
        if data.endswith(ANSWER[-10:]):
            self.ask()


async def answer() -> None:
    """Serve one port until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


async def ask(turns: int, loop_name: str) -> None:
    """Start the other process, and go through these turns."""
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*FLOOR, "0", "--loop", loop_name, stdin=pipe, stdout=pipe)
    assert server.stdin is not None
    assert server.stdout is not None
    line = await server.stdout.readline()
    assert line, "the floor's server has ended before it told its port"
    _, asking = await asyncio.get_running_loop().create_connection(lambda: Asking(turns), "127.0.0.1", int(line))
    asking.ask()
    await asking.done
    asking.transport.close()
    server.stdin.close()
    await server.wait()


def run_floor(turns: int, loop: str) -> None:
    """One of the floor's processes: the client of so many turns, or the server for none."""
    with asyncio.Runner(loop_factory=_uvloop if loop == UVLOOP else None) as runner:
        runner.run(ask(turns, loop) if turns else answer())


def _uvloop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


# Comparing


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote_cpu", description="Processor time of a turn.")
    parser.add_argument("--pairs", type=int, default=5, help="how many runs of each, alternating (5)")
    parser.add_argument("--way", action="append", choices=WAYS, help="go this way only; may be repeated")
    parser.add_argument("--loop", default=DEFAULT_LOOP, choices=(DEFAULT_LOOP, UVLOOP), help="our event loop")
    parser.add_argument("--floor", type=int, metavar="TURNS", help=argparse.SUPPRESS)
    return parser.parse_args(given)


def line(name: str, costs: Sequence[Cost]) -> str:
    """The median of the totals, and of their parts."""
    user, system = median(cost.user for cost in costs), median(cost.system for cost in costs)
    return f"{name:42}{median(cost.total for cost in costs):8.0f} us  (user {user:.0f}, system {system:.0f})"


def main(given: Sequence[str] | None = None) -> int:
    """0 when all was measured, 1 when a peer could not be built."""
    chosen = arguments(given)
    if chosen.floor is not None:
        run_floor(chosen.floor, chosen.loop)
        return 0
    for way in chosen.way or WAYS:
        our_way, their_way = WAYS[way]
        built: dict[str, Built] = build_all([ours(our_way), theirs(their_way)], say)
        if len(built) < 2:
            return 1
        every: dict[str, Callable[[int], object]] = {
            f"{way}, Accord": conversation(Side(built[OURS.name], chosen.loop)),
            f"{way}, TypeScript SDK": conversation(Side(built[TYPESCRIPT.name], "")),
            "bare TCP connection": partial(floor, loop=chosen.loop),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in every}
        for _ in range(chosen.pairs):
            for name, converse_for in every.items():
                costs[name].append(cost(converse_for))
        for name, found in costs.items():
            print(line(name, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
