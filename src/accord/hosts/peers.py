"""The peers of a host: the connections to each, and whether it answers.

Each peer is asked for its health every fifth of a lease. After three fifths without an answer it counts as silent:
requests that are under way to it are ended, and new ones are refused at once, until it answers again. A forwarded POST
has no other deadline, because it may have to wait while the agent is paused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import TypeVar

from accord.hosts.directory import BEATS
from accord.hosts.view import HostRow, View, not_answering
from accord.http.client.pool import Requests
from accord.http.client.socket import Broken, Response
from accord.tasks import Tasks
from accord.transports.closing import first_of

SILENT = 0.6
"""Leases of silence after which a peer is no longer asked."""

ENDING = 1.0
"""Seconds for the tasks of a peer to end."""

PATH = "/acp"
"""The endpoint of the peer port."""

HEALTH = "/healthz"

METRICS = "/metrics"

MOST_METRICS = 4 * 1024 * 1024
"""Bytes of the figures of one host."""

T = TypeVar("T")


class Peer:
    """Another host, and the connections to it."""

    def __init__(self, host: HostRow, lease: float) -> None:
        self.host = host
        self.requests = Requests(f"http://{host.address}{PATH}", http2=False)
        self.silent = asyncio.Event()
        """Set while the peer does not answer, and for ever once it is over."""
        self._lease = lease
        self._loop = asyncio.get_running_loop()
        self._answered = self._loop.time()

    @property
    def answers(self) -> bool:
        """Whether requests can be sent to it."""
        return not self.silent.is_set()

    async def watch(self) -> None:
        """Ask for its health until cancelled."""
        try:
            while True:
                await self._ask()
                await asyncio.sleep(self._lease / BEATS)
        finally:
            self.silent.set()

    async def _ask(self) -> None:
        # Another process may have the address by now.
        if await self._told(HEALTH, 1024) == self.host.id:
            self._answered = self._loop.time()
            self.silent.clear()
        if self._loop.time() - self._answered > SILENT * self._lease:
            self.silent.set()

    async def metrics(self) -> str:
        """Its figures as text; empty if it does not answer."""
        return await self._told(METRICS, MOST_METRICS)

    async def _told(self, path: str, most: int) -> str:
        """The text at this path of its peer port; empty if it does not answer."""
        asking = Requests(f"http://{self.host.address}{path}", http2=False)
        try:
            async with asyncio.timeout(self._lease * 2 / BEATS):
                response = await asking.request("GET", [])
                told = await response.body(most)
            return told.decode("utf-8", "replace") if response.status == 200 else ""
        except (Broken, TimeoutError):
            return ""
        finally:
            with suppress(Broken):
                await asking.close()

    async def unless_silent(self, work: Awaitable[T]) -> T:
        """Await this, but break it off when the peer no longer answers; raises Refusal (503), also for Broken."""
        doing = asyncio.ensure_future(work)
        await first_of(doing, self.silent.wait())
        if doing.cancelled():
            raise not_answering()
        try:
            return doing.result()
        except Broken as broken:
            raise not_answering() from broken

    async def request(self, method: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Send a request and wait for the headers of the answer; raises Refusal if the peer does not answer."""
        if not self.answers:
            raise not_answering()
        return await self.unless_silent(self.requests.request(method, list(headers.items()), body))

    async def close(self) -> None:
        """Close the connections."""
        await self.requests.close()


class Peers:
    """The peers in the latest view."""

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._peers: dict[str, Peer] = {}
        self._tasks = Tasks(asyncio.get_running_loop())
        self._watching: dict[str, asyncio.Task[None]] = {}

    def follow(self, view: View, me: str) -> None:
        """Watch the hosts of this view, and leave those that are over."""
        living = {host.id: host for host in view.hosts.values() if host.id != me and not host.is_over}
        for host in living.values():
            if host.id not in self._peers:
                self._begin(host)
            else:
                self._peers[host.id].host = host
        for gone in self._peers.keys() - living.keys():
            self._watching.pop(gone).cancel()
            self._tasks.start(self._peers.pop(gone).close(), "accord hosts: leave a peer")

    def _begin(self, host: HostRow) -> None:
        peer = self._peers[host.id] = Peer(host, self._lease)
        self._watching[host.id] = self._tasks.start(peer.watch(), f"accord hosts: watch {host.id}")

    def get(self, host: str) -> Peer | None:
        """The peer with this id, if it is not over."""
        return self._peers.get(host)

    def all(self) -> list[Peer]:
        """The peers that are not over."""
        return list(self._peers.values())

    def ready(self) -> list[Peer]:
        """The peers that open new connections."""
        return [peer for peer in self._peers.values() if peer.answers and peer.host.state == "live"]

    async def close(self) -> None:
        """Stop watching, and close all connections."""
        for task in self._watching.values():
            task.cancel()
        await self._tasks.end(ENDING)
        await asyncio.gather(*(peer.close() for peer in self._peers.values()))
