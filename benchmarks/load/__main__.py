"""`python -m benchmarks.load`: a thousand connections to one server, and what they cost.

A server in a process of its own gets WebSocket connections, then a fresh one HTTP/2 connections, each with a session.
Some of them stream numbered messages, all at the same time; the others meanwhile ask, and are timed. Every number that
arrives is checked. The exit code is 1 when a message was lost or came out of order.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.drive import resident
from benchmarks.load.clients import more_files

WAYS = {"websocket": "WebSocket", "http2": "HTTP/2", "http1": "HTTP/1.1"}

NOTES = """\
KiB idle, KiB after: what the server's resident memory grew by, for each connection, once all were open, and once all
was said. What a server keeps of each session (its history, in memory) is in the latter. Round trips are prompts that
are answered at once, spread over the connections that do not stream, by the clock and not one after the other. Cores
used: by the server, while some streamed and others asked. Near 1, or on a busy machine, round trips wait."""


@dataclass
class Run:
    """What was seen of one kind of connection."""

    link: str
    connections: int
    streaming: int
    seconds_to_open: float
    kib_idle: float
    kib_after: float
    p50ms: float
    p99ms: float
    cpu_share: float
    checked: int
    wrong: int


class Process:
    """A client process that is told what to do, and answers."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid

    def tell(self, *order: str | float) -> None:
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)

    def line(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise SystemExit(f"{self._process.args!r} has ended with {self._process.wait()}")
        return line.strip()

    def told(self, *order: str | float) -> dict[str, Any]:
        """Tell it, if there is something to tell, and read its answer."""
        if order:
            self.tell(*order)
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()


@contextmanager
def process(module: str, *arguments: str) -> Generator[Process]:
    started = Process(module, *arguments)
    try:
        yield started
    finally:
        started.end()


def memory(of: Process) -> int:
    """Resident memory in KiB; 0 where the system does not tell."""
    told = resident(of.pid)
    return told["now"] if told else 0


def cpu_seconds(of: Process) -> float:
    """Processor time that a process has used so far; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{of.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(way: str, connections: int, chosen: argparse.Namespace) -> Run:
    """One kind of connection, with a fresh server."""
    streaming = min(chosen.streaming, connections // 2)
    updates, pace = max(1, int(chosen.seconds * chosen.rate)), 1 / chosen.rate
    with (
        process("benchmarks.load.server") as server,
        process("benchmarks.load.clients", url := server.line(), way) as listeners,
        process("benchmarks.load.clients", url, way) as askers,
    ):
        # One connection ahead, so that what is loaded once does not count for each.
        for clients in listeners, askers:
            clients.told("open", 1)
            clients.told("listen", 1, 0)
            clients.told("close")
        before = memory(server)
        seconds = askers.told("open", connections - streaming)["seconds"]
        seconds += listeners.told("open", streaming)["seconds"] if streaming else 0
        idle = memory(server)
        used, begun = cpu_seconds(server), time.perf_counter()
        if streaming:
            listeners.tell("listen", updates, pace)
        asked = askers.told("ask", max(1, int(chosen.seconds * chosen.asks)), chosen.asks)
        heard = listeners.told() if streaming else {"checked": 0, "wrong": 0}
        after = memory(server)
        share = (cpu_seconds(server) - used) / (time.perf_counter() - begun)
        return Run(
            link=WAYS[way],
            connections=connections,
            streaming=streaming,
            seconds_to_open=round(seconds, 2),
            kib_idle=round((idle - before) / connections, 1),
            kib_after=round((after - before) / connections, 1),
            p50ms=round(asked["p50ms"], 2),
            p99ms=round(asked["p99ms"], 2),
            cpu_share=round(share, 2),
            checked=heard["checked"],
            wrong=heard["wrong"],
        )


HEADINGS = (
    "link",
    "connections",
    "streaming",
    "opened in s",
    "KiB idle",
    "KiB after",
    "p50 ms",
    "p99 ms",
    "cores used",
    "messages checked",
    "lost or out of order",
)


def table(runs: Sequence[Run]) -> str:
    """As Markdown."""
    rows = [
        HEADINGS,
        *(
            tuple(f"{value:,}" if isinstance(value, int) else str(value) for value in asdict(seen).values())
            for seen in runs
        ),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load",
        description=__doc__,
        epilog=NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    number: dict[str, Any] = {"type": int, "metavar": "N"}
    parser.add_argument("--sockets", default=1000, **number, help="WebSocket connections (default: %(default)s)")
    parser.add_argument("--http2", default=300, **number, help="HTTP/2 connections (default: %(default)s)")
    parser.add_argument("--http1", default=0, **number, help="HTTP/1.1 connections (default: %(default)s)")
    parser.add_argument(
        "--streaming", default=200, **number, help="so many of each stream, at most half (default: %(default)s)"
    )
    parser.add_argument("--seconds", default=10.0, type=float, help="how long they stream (default: %(default)s)")
    parser.add_argument(
        "--rate", default=5.0, type=float, help="messages a second on each stream (default: %(default)s)"
    )
    parser.add_argument("--asks", default=50.0, type=float, help="round trips a second in all (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    chosen = parser.parse_args(given)
    if min(chosen.seconds, chosen.rate, chosen.asks) <= 0:
        parser.error("--seconds, --rate and --asks take numbers above 0")
    if min(chosen.sockets, chosen.http1, chosen.http2, chosen.streaming) < 0:
        parser.error("there are no fewer than 0 connections")
    return chosen


def main(given: Sequence[str] | None = None) -> int:
    """0 when everything arrived in order, 1 otherwise."""
    chosen = arguments(given)
    more_files()
    wanted = {"websocket": chosen.sockets, "http2": chosen.http2, "http1": chosen.http1}
    runs = [run(way, connections, chosen) for way, connections in wanted.items() if connections]
    print(json.dumps([asdict(seen) for seen in runs], indent=1) if chosen.json else table(runs))
    return int(any(seen.wrong for seen in runs))


if __name__ == "__main__":
    sys.exit(main())
