"""One host of a service, as its application sees the others: joins, places, forwards, drains and leaves."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Sequence
from random import Random

from accord._internal.tasks import within
from accord.errors import StoreError
from accord.hosts.directory import Directory
from accord.hosts.forwarding import Forwarder
from accord.hosts.membership import Membership
from accord.hosts.peer_tls import PeerTls
from accord.hosts.peers import Peers
from accord.hosts.quota_table import QuotaTable
from accord.hosts.signed_forward import Signer
from accord.hosts.view import HostRow, View, host_id_of, not_answering, why_over
from accord.http.server.elsewhere import Joinable, OtherHost
from accord.http.server.owner_counts import owner_key

TURNS_OF_A_CORE = 8
"""Running turns that one core is taken to bear."""

GOODBYE = 1.0
"""Seconds to tell the other hosts that this one drains or has gone."""


class HostGroup:
    """The hosts of a service, as one of them sees them."""

    def __init__(
        self,
        app: Joinable,
        directory: Directory,
        host: HostRow,
        keys: Sequence[bytes],
        *,
        lease: float,
        fence: float | None,
        weight: float,
        table: QuotaTable,
        tls: PeerTls | None,
    ) -> None:
        self.membership = Membership(
            directory, host, lease=lease, fence=fence, load=self._load, on_view=self._follow, on_lost=self._lost
        )
        self.signer = Signer(keys, lambda: self.id)
        """Signs what is sent to other hosts, and checks what they send."""
        self.peers = Peers(lease, None if tls is None else tls.client, self.signer, app.end_unused)
        self._tls = tls
        self._app = app
        self._weight = weight
        self._turns, self._count_again = 0, 0.0
        self._table = table
        self._random = Random()
        self._ending = asyncio.Event()
        self._has_left = False

    @property
    def id(self) -> str:
        """The id of this host."""
        return self.membership.host.id

    def new_id(self) -> str:
        """The id of a new connection of this host."""
        return f"{self.id}.{secrets.token_urlsafe(24)}"

    async def host_of(self, connection: str) -> OtherHost | None:
        """The host of this connection, or None if it is this one or names none; raises Refusal."""
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
        """The hosts that should open a new connection, the best first; empty if this one should.

        A WebSocket stays where it has arrived, if this host opens connections at all.
        """
        load, connections = self._load()
        me = self.membership.host._replace(load=load, connections=connections)
        if is_socket and me.state == "live" and self._weight > 0:
            return ()
        ready = [peer.host for peer in self.peers.ready()]
        return [self._forwarder(host) for host in self.membership.view.better_than(me, ready, self._random)]

    async def place_of_owner(self, owner: str) -> OtherHost | None:
        """The host with the shared agent of this owner, or None if it is this one; raises Refusal."""
        others = self.places()
        try:
            holder = await self._table.claim(owner_key(owner), others[0].id if others else self.id)
            host = None if holder == self.id else await self.membership.find(holder)
        except StoreError:
            raise not_answering() from None
        if holder == self.id:
            return None
        if host is None or host.is_over:
            raise not_answering()
        return self._forwarder(host)

    async def metrics(self) -> Sequence[str]:
        """The figures of the processes with the name of this host, which are those of this machine."""
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
        """How many turns run here, counted at most every tenth of a second: each new connection asks."""
        now = time.monotonic()
        if now >= self._count_again:
            self._turns, self._count_again = self._app.running, now + 0.1
        return self._turns

    def _follow(self, view: View) -> None:
        if self._tls is not None:
            self._tls.renew()
        self.peers.follow(view, self.id)

    def _lost(self, why: str) -> None:
        self._app.end_all(why)

    async def drain(self) -> None:
        """Tell the other hosts that this one opens no more connections."""
        if not self._has_left:
            await within(GOODBYE, self.membership.set_state("draining"))

    async def leave(self) -> None:
        """End the streams that pass through this host, and tell the others that it has gone; idempotent."""
        self._ending.set()
        if not self._has_left:
            self._has_left = True
            await within(GOODBYE, self.membership.set_state("gone"))
