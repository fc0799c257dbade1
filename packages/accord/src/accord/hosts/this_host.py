"""One host of a service, as its application sees it: joins, places, forwards, drains and leaves.

    join ──▶ beat, every fifth of a lease ──┬──▶ the rows of all hosts ──▶ HostTable
                                            ├──▶ declared dead ──▶ on_lost, a new id, beat
                                            └──▶ no answer ──▶ the last table stays

Only a host that has beaten without a gap for longer than a lease may declare others dead. A gap is a failed or late
beat: a process that was frozen, or whose machine slept, did not see what the others did meanwhile.

The owners' usage is counted in the table of hosts, for all hosts at once. Releases wait in memory until the database
accepts them: the end of a connection must not wait for a database. A use that is released late counts a moment longer,
so a quota is never exceeded. While the database is unreachable, nothing that is counted is admitted, and each host has
its part of every rate.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Literal

import msgspec

from accord._internal.tasks import within
from accord.errors import StoreError
from accord.hosts.forwarder import Forwarder
from accord.hosts.host_table import (
    BEATS,
    Beat,
    Directory,
    HostRow,
    HostTable,
    State,
    host_id_of,
    new_host_id,
    not_answering,
    why_over,
)
from accord.hosts.peers import PeerHost, PeerHosts, PeerTls
from accord.hosts.signed_forward import Signer
from accord.http.server.app import App
from accord.http.server.cluster import OtherHost
from accord.http.server.owner_quotas import LocalCounts, OwnerGate, Use, owner_key
from accord.http.server.server_limits import Bucket, Withdrawal

JUDGES_AFTER = 1.2
"""Leases that a host must have beaten without a gap before it declares others dead."""

LOOKS = 0.1
"""Seconds between two extra looks at the directory, for hosts that the view does not have."""

log = logging.getLogger("accord.hosts")


class Membership(msgspec.Struct, eq=False):
    """The row of this host, and the last view of all."""

    _directory: Directory
    host: HostRow
    lease: float
    fence: float | None
    """Seconds without a beat after which the connections of this host end."""
    load: Callable[[], tuple[float, int]]
    """Returns the load and the number of connections."""
    on_view: Callable[[HostTable], None]
    """Called after each beat."""
    on_lost: Callable[[str], None]
    """Called with the reason when this host was declared dead, or could not beat for `fence` seconds."""
    view: HostTable = msgspec.field(default_factory=HostTable)
    _loop: asyncio.AbstractEventLoop = msgspec.field(default_factory=asyncio.get_running_loop)
    _latest: float = 0.0
    """When the latest beat succeeded."""
    _looked: float = 0.0
    _steady_since: float | None = None
    _is_fenced: bool = False
    _seen: dict[str, tuple[int, float]] = {}
    """How often each host has beaten, and when that was first read, by the clock of this process."""
    _beating: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._latest = self._loop.time()

    @property
    def beat_age(self) -> float:
        """Seconds since the latest beat."""
        return self._loop.time() - self._latest

    async def join(self) -> None:
        """Beat for the first time; raises StoreError."""
        await self._beat()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            await asyncio.sleep(self.lease / BEATS)
            await self.beat()

    async def beat(self) -> bool:
        """Beat once; returns whether the directory answered."""
        try:
            await self._beat()
        except StoreError as error:
            self._failed(error)
            return False
        return True

    async def set_state(self, state: State) -> None:
        """Notify the other hosts at once that this one is draining or gone."""
        self.host = self.host._replace(state=state)
        await self.beat()

    async def find(self, host: str) -> HostRow | None:
        """Return the row of a host, from the directory itself if the view has none; raises StoreError."""
        if host not in self.view.hosts and self._loop.time() - self._looked > LOOKS:
            await self._beat()
            self._looked = self._loop.time()
        return self.view.hosts.get(host)

    async def _beat(self) -> None:
        async with self._beating:
            hosts = await self._round()
            if hosts is None:
                self._join_again()
                hosts = await self._round()
        self.view = HostTable(hosts or ())
        self.on_view(self.view)

    async def _round(self) -> list[HostRow] | None:
        began = self._loop.time()
        is_late = began - self._latest > self.lease / 2
        steady = None if is_late else self._steady_since
        load, connections = self.load()
        self.host = self.host._replace(load=load, connections=connections)
        suspects: list[str] = []
        if steady is not None and began - steady > JUDGES_AFTER * self.lease:
            suspects = [host for host, (_, since) in self._seen.items() if began - since > self.lease / 2]
        try:
            hosts = await self._directory.beat(Beat(self.host, self.lease, suspects))
        except StoreError:
            self._steady_since = None
            raise
        self._steady_since = self._loop.time() if steady is None else steady
        self._latest = began
        self._is_fenced = False
        if hosts is not None:
            seen = self._seen
            self._seen = {
                it.id: was if (was := seen.get(it.id, (-1, 0.0)))[0] == it.beats else (it.beats, began) for it in hosts
            }
        return hosts

    def _join_again(self) -> None:
        log.warning("host %s was declared dead by another host; its connections end", self.host.id)
        self.on_lost("this host was declared dead: connect again; stored sessions can be loaded")
        self.host = self.host._replace(id=new_host_id())

    def _failed(self, error: StoreError) -> None:
        log.warning("host %s cannot beat: %s", self.host.id, error)
        if self.fence is not None and not self._is_fenced and self.beat_age > self.fence:
            self._is_fenced = True
            self.on_lost(f"this host could not reach the directory of hosts for {self.fence:g} seconds")


PAUSE = 1.0
"""Seconds before a failed release is repeated, and in which an unreachable directory is not asked for posts."""

SWEEP_EVERY = 60.0

log = logging.getLogger("accord.hosts")


class SharedCounts(LocalCounts):
    """Counts in the tables of a directory. `release` and `withdraw` never fail."""

    def __init__(self, table: Directory, membership: Membership, clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._membership = membership
        super().__init__(clock)
        self._away_until = 0.0
        self._released: set[str] = set()
        self._has_released = asyncio.Event()

    async def admit(self, use: Use, most: int) -> bool:
        """Count this use if its owner has fewer than `most` of its kind on all hosts; raises StoreError."""
        return await self._table.admit(use, most, self._membership.host.id)

    def release(self, use: Use) -> None:
        """Release this use, as soon as the directory can be reached."""
        self._released.add(use.id)
        self._has_released.set()

    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        """Take up to so many of this owner's posts; of this host's part of them while the directory is away."""
        if self._clock() >= self._away_until:
            try:
                return await self._table.withdraw(owner_key(owner), bucket, most)
            except StoreError as error:
                log.warning("host %s counts posts alone: %s", self._membership.host.id, error)
                self._away_until = self._clock() + PAUSE
        return await super().withdraw(owner, bucket.shared(max(1, self._membership.view.living)), most)

    async def run(self) -> None:
        """Send releases to the directory, and sweep it, until cancelled."""
        await asyncio.gather(self._release_all(), self._sweep())

    async def _release_all(self) -> None:
        while True:
            await self._has_released.wait()
            self._has_released.clear()
            released = frozenset(self._released)
            try:
                await self._table.release(sorted(released))
                self._released -= released
            except StoreError as error:
                log.warning("host %s cannot release quotas yet: %s", self._membership.host.id, error)
                await asyncio.sleep(PAUSE)
                self._has_released.set()

    async def _sweep(self) -> None:
        while True:
            with suppress(StoreError):  # the next sweep does it
                await self._table.sweep()
            await asyncio.sleep(SWEEP_EVERY)


@asynccontextmanager
async def shared(gate: OwnerGate | None, table: Directory, membership: Membership) -> AsyncGenerator[None]:
    """Let this gate count together with the other hosts during the block."""
    if gate is None:
        yield
        return
    alone, gate.counts = gate.counts, (counts := SharedCounts(table, membership))
    running = asyncio.create_task(counts.run(), name="accord hosts: quotas")
    try:
        yield
    finally:
        gate.counts = alone
        running.cancel()
        await asyncio.wait([running])


TURNS_OF_A_CORE = 8
"""How many running turns one core is assumed to support."""

GOODBYE = 1.0
"""Seconds to notify the other hosts that this one drains or has gone."""


class ThisHost:
    """The hosts of a service, as one of them sees them."""

    def __init__(
        self,
        app: App,
        directory: Directory,
        host: HostRow,
        keys: Sequence[bytes],
        *,
        lease: float,
        fence: float | None,
        weight: float,
        tls: PeerTls | None,
    ) -> None:
        self.membership = Membership(
            directory, host, lease=lease, fence=fence, load=self._load, on_view=self._follow, on_lost=app.end_all
        )
        self.signer = Signer(keys, lambda: self.id)
        """Signs requests to other hosts, and checks those from them."""
        client = None if tls is None else tls.client
        self.peers = PeerHosts(lambda row: PeerHost(row, lease, client, self.signer, app.end_unused))
        self._tls = tls
        self._app = app
        self._lease = lease
        self._weight = weight
        self._turns, self._count_again = 0, 0.0
        self._directory = directory
        self._random = Random()
        self._ending = asyncio.Event()
        self._has_left = False

    @property
    def id(self) -> str:
        """The id of this host."""
        return self.membership.host.id

    @property
    def address(self) -> str:
        """The address at which the other hosts reach this one, as `host:port`."""
        return self.membership.host.address

    @property
    def living(self) -> int:
        """Return how many hosts the service has, including this one."""
        return self.membership.view.living

    @property
    def is_draining(self) -> bool:
        """Whether this host opens no more connections."""
        return self.membership.host.state == "draining"

    @property
    def problem(self) -> str:
        """Return why a balancer should send no new clients to this host; empty if it may."""
        if self.is_draining:
            return "this host is draining"
        return "this host cannot reach the directory of hosts" if self.membership.beat_age > self._lease else ""

    def new_id(self) -> str:
        """The id of a new connection of this host."""
        return f"{self.id}.{secrets.token_urlsafe(24)}"

    async def host_of(self, connection: str) -> OtherHost | None:
        """Return the host of this connection, or None if it is this one or names none; raises Refusal."""
        named = host_id_of(connection)
        if not named or named == self.id:
            return None
        try:
            host = await self.membership.find(named)
        except StoreError:
            raise not_answering() from None
        if host is None:
            return None
        if host.is_over:
            raise why_over(host)
        return self._forwarder(host)

    def _forwarder(self, host: HostRow) -> Forwarder:
        peer = self.peers.get(host.id)
        if peer is None or not peer.answers:
            raise not_answering()
        view = self.membership.view
        return Forwarder(peer, self._ending, lambda: view.placed(host))

    def places(self, *, is_socket: bool = False) -> Sequence[OtherHost]:
        """Return the hosts that should open a new connection, the best first; empty if this one should.

        A WebSocket stays where it has arrived, if this host opens connections at all.
        """
        load, connections = self._load()
        me = self.membership.host._replace(load=load, connections=connections)
        if is_socket and me.state == "live" and self._weight > 0:
            return ()
        ready = [peer.host for peer in self.peers.ready()]
        return [self._forwarder(host) for host in self.membership.view.better_than(me, ready, self._random)]

    async def place_of_owner(self, owner: str) -> OtherHost | None:
        """Return the host with the shared agent of this owner, or None if it is this one; raises Refusal."""
        others = self.places()
        try:
            holder = await self._directory.claim(owner_key(owner), others[0].id if others else self.id)
            host = None if holder == self.id else await self.membership.find(holder)
        except StoreError:
            raise not_answering() from None
        if holder == self.id:
            return None
        if host is None or host.is_over:
            raise not_answering()
        return self._forwarder(host)

    async def metrics(self) -> Sequence[str]:
        """Return the metrics of all processes of this machine, which share the name of this host."""
        name = self.membership.host.name
        near = [peer for peer in self.peers.all() if peer.answers and peer.host.name == name]
        return await asyncio.gather(*(peer.metrics() for peer in near))

    def _load(self) -> tuple[float, int]:
        app = self._app
        if self._weight <= 0:
            return float("inf"), app.connections
        of_connections = app.connections / app.limits.connections
        of_turns = self._running() / (TURNS_OF_A_CORE * (os.cpu_count() or 1))
        return max(of_connections, of_turns) / self._weight, app.connections

    def _running(self) -> int:
        """Return how many turns run here, counted at most every tenth of a second: each new connection asks."""
        now = time.monotonic()
        if now >= self._count_again:
            self._turns, self._count_again = self._app.running, now + 0.1
        return self._turns

    def _follow(self, view: HostTable) -> None:
        if self._tls is not None:
            self._tls.renew()
        self.peers.follow(view, self.id)

    async def drain(self, state: Literal["draining", "live"] = "draining") -> None:
        """Notify the other hosts that this one opens no more connections, or does again."""
        if not self._has_left:
            await within(GOODBYE, self.membership.set_state(state))

    async def leave(self) -> None:
        """End the streams that pass through this host, and notify the others that it has gone; idempotent."""
        self._ending.set()
        if not self._has_left:
            self._has_left = True
            await within(GOODBYE, self.membership.set_state("gone"))
