"""`python -m benchmarks.load`: a thousand connections to one server, and what they cost.

A server in a process of its own gets WebSocket connections, then a fresh one HTTP/2 connections, each with a session.
Some of them stream numbered messages, all at the same time; the others meanwhile ask, and are timed. Every number that
arrives is checked. The exit code is 1 when a message was lost or came out of order.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.load import hosts
from benchmarks.load.clients import more_files
from benchmarks.load.processes import cpu_seconds, memory, process

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


def table(runs: Sequence[Run | hosts.HostsRun], headings: Sequence[str] = HEADINGS) -> str:
    """As Markdown."""
    rows = [
        tuple(headings),
        *(
            tuple(f"{value:,}" if isinstance(value, int) else str(value) for value in asdict(seen).values())
            for seen in runs
        ),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headings))]
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
        "--hosted",
        default=1000,
        **number,
        help="connections through several hosts, of which one is killed in the middle (default: %(default)s)",
    )
    parser.add_argument("--hosts", default=3, **number, help="so many hosts, at least 2 (default: %(default)s)")
    parser.add_argument(
        "--directory", default="", metavar="URL", help="a PostgreSQL database for the hosts (default: SQLite files)"
    )
    parser.add_argument(
        "--lease", default=5.0, type=float, help="seconds after which a silent host is dead (default: %(default)s)"
    )
    parser.add_argument(
        "--announce",
        action="store_true",
        help="tell the other hosts that the killed one has gone, before its lease ends",
    )
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
    if min(chosen.sockets, chosen.http1, chosen.http2, chosen.hosted, chosen.streaming) < 0:
        parser.error("there are no fewer than 0 connections")
    if chosen.hosts < 2 or chosen.hosted == 1:
        parser.error("several hosts are at least 2, and have at least 2 connections")
    return chosen


def over_hosts(chosen: argparse.Namespace) -> list[hosts.HostsRun]:
    """The run over several hosts, if one is asked for."""
    if not chosen.hosted:
        return []
    shape = hosts.Shape(
        hosts=chosen.hosts,
        connections=chosen.hosted,
        streaming=max(1, min(chosen.streaming, chosen.hosted // 2)),
        seconds=chosen.seconds,
        rate=chosen.rate,
        asks=chosen.asks,
        lease=chosen.lease,
        directory=chosen.directory,
        announces=chosen.announce,
    )
    return [hosts.run_over_hosts(shape)]


def main(given: Sequence[str] | None = None) -> int:
    """0 when everything arrived in order, 1 otherwise."""
    chosen = arguments(given)
    more_files()
    wanted = {"websocket": chosen.sockets, "http2": chosen.http2, "http1": chosen.http1}
    runs = [run(way, connections, chosen) for way, connections in wanted.items() if connections]
    hosted = over_hosts(chosen)
    if chosen.json:
        print(json.dumps([asdict(seen) for seen in (*runs, *hosted)], indent=1))
    else:
        print(*filter(None, (runs and table(runs), hosted and table(hosted, hosts.HEADINGS))), sep="\n\n")
    return int(any(seen.wrong for seen in runs) or not all(seen.is_right for seen in hosted))


if __name__ == "__main__":
    sys.exit(main())
