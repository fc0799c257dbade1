"""A load run over several hosts, one of which is killed in the middle.

Every request of every client reaches the next host, so most are forwarded. While some connections stream numbered
messages and the others send numbered prompts, one host is killed. What is checked:

- A connection whose agent lives on another host ends for no reason, loses nothing, and gets nothing out of order. None
  of its prompts is taken twice: the agent counts them.
- Each connection whose agent was on the killed host ends, after messages in order. Its session, loaded through the
  other hosts, has all that was seen.
"""

import asyncio
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from accord.hosts.host_table import Beat, HostRow
from accord.hosts.hosts import directory_of
from benchmarks.load.processes import Process, cpu_seconds, memory, process


class Shape(NamedTuple):
    """The size of a run."""

    hosts: int
    connections: int
    streaming: int
    seconds: float
    rate: float
    asks: float
    lease: float
    directory: str
    announces: bool
    """Whether the other hosts are told that the killed one has gone, and do not wait for the end of its lease."""


@dataclass
class HostsRun:
    """What was seen of one run."""

    hosts: int
    connections: int
    streaming: int
    seconds_to_open: float
    kib_idle: float
    p50ms: float
    p99ms: float
    cpu_share: float
    checked: int
    wrong: int
    on_killed_host: int
    ended_with_host: int
    ended_without_cause: int
    missing: int

    @property
    def is_right(self) -> bool:
        """Whether nothing was lost, out of order or taken twice, and only what was on the killed host has ended."""
        has_ended = self.ended_with_host == self.on_killed_host
        return has_ended and not (self.wrong or self.ended_without_cause or self.missing)


HEADINGS = (
    "hosts",
    "connections",
    "streaming",
    "opened in s",
    "KiB idle",
    "p50 ms",
    "p99 ms",
    "cores used",
    "numbers checked",
    "lost, out of order or twice",
    "on the killed host",
    "of these ended, and loaded elsewhere",
    "others that ended",
    "seen and not kept",
)


class RunningHost(NamedTuple):
    """A host, and where it is."""

    process: Process
    url: str
    id: str


@contextmanager
def running_hosts(count: int, directory: str, store: str, lease: float) -> Generator[list[RunningHost]]:
    """So many hosts that share a directory."""
    with ExitStack() as stack:
        settings = (directory, store, str(lease), "1")
        started = [stack.enter_context(process("benchmarks.load.server", *settings)) for _ in range(count)]
        yield [RunningHost(each, *each.line().split()) for each in started]


def run_over_hosts(shape: Shape) -> HostsRun:
    """One run, with fresh hosts."""
    with tempfile.TemporaryDirectory(prefix="accord-load-") as folder, ExitStack() as stack:
        directory = shape.directory or str(Path(folder, "hosts.sqlite3"))
        store = shape.directory or str(Path(folder, "sessions.sqlite3"))
        hosts = stack.enter_context(running_hosts(shape.hosts, directory, store, shape.lease))
        urls = [host.url for host in hosts]
        listeners, askers = (
            stack.enter_context(process("benchmarks.load.host_clients", *urls)) for _ in ("listeners", "askers")
        )
        before = _memory(hosts)
        opened = [
            askers.told("open", shape.connections - shape.streaming),
            listeners.told("open", shape.streaming),
        ]
        idle = _memory(hosts)
        used, begun = _cpu(hosts), time.perf_counter()
        listeners.tell("listen", max(1, int(shape.seconds * shape.rate)), 1 / shape.rate)
        askers.tell("ask", max(1, int(shape.seconds * shape.asks)), shape.asks)
        for clients in listeners, askers:
            clients.told()  # half of all is done
        used, begun = _cpu(hosts) - used, time.perf_counter() - begun
        places = Counter[str]()
        for each in opened:
            places.update(each["places"])
        killed = max(hosts, key=lambda host: places[host.id])
        killed.process.end(signal.SIGKILL)
        if shape.announces:
            asyncio.run(_announce(directory, killed))
        listeners.told()
        asked = askers.told()
        outcomes = [listeners.told("probe"), askers.told("probe")]

        def total(name: str) -> int:
            return sum(outcome[name] for outcome in outcomes)

        ended = sum(sum(outcome["ended"].values()) for outcome in outcomes)
        with_host = sum(outcome["ended"].get(killed.id, 0) for outcome in outcomes)
        return HostsRun(
            hosts=shape.hosts,
            connections=shape.connections,
            streaming=shape.streaming,
            seconds_to_open=round(sum(each["seconds"] for each in opened), 2),
            kib_idle=round((idle - before) / shape.connections, 1),
            p50ms=round(asked["p50ms"], 2),
            p99ms=round(asked["p99ms"], 2),
            cpu_share=round(used / begun, 2),
            checked=total("checked"),
            wrong=total("wrong"),
            on_killed_host=places[killed.id],
            ended_with_host=with_host,
            ended_without_cause=ended - with_host,
            missing=total("missing"),
        )


def _memory(hosts: Sequence[RunningHost]) -> int:
    return sum(memory(host.process) for host in hosts)


def _cpu(hosts: Sequence[RunningHost]) -> float:
    return sum(cpu_seconds(host.process) for host in hosts)


async def _announce(directory: str, killed: RunningHost) -> None:
    """Write into the directory that a host has gone, as the platform that runs it could."""
    async with directory_of(directory, "accord") as table:
        await table.beat(Beat(HostRow(killed.id, "", state="gone"), 60.0))
