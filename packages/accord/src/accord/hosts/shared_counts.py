"""`SharedCounts`: what owners use, counted in the directory for all hosts at once.

Releases wait in memory until the directory takes them: the end of a connection must not wait for a database. A use that
is released late counts a moment longer, so a quota is never exceeded. While the directory is away, nothing that is
counted is admitted, and each host has its part of every rate.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from accord.errors import StoreError
from accord.hosts.membership import Membership
from accord.hosts.quota_table import QuotaTable
from accord.http.server.owner_counts import LocalCounts, Use, owner_key
from accord.http.server.owner_gate import OwnerGate
from accord.http.server.quotas import Bucket, Withdrawal

PAUSE = 1.0
"""Seconds before a failed release is repeated, and in which a directory that was away is not asked for posts."""

SWEEP_EVERY = 60.0

log = logging.getLogger("accord.hosts")


class SharedCounts:
    """Counts in the tables of a directory. `release` and `withdraw` never fail."""

    def __init__(self, table: QuotaTable, membership: Membership, clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._membership = membership
        self._clock = clock
        self._alone = LocalCounts(clock)
        self._away_until = 0.0
        self._released: set[str] = set()
        self._has_released = asyncio.Event()

    async def admit(self, use: Use, most: int) -> bool:
        """Count this use if its owner has fewer than `most` of its kind on all hosts; raises StoreError."""
        return await self._table.admit(use, most, self._membership.host.id)

    def release(self, use: Use) -> None:
        """Count this use no more, as soon as the directory can be told."""
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
        return await self._alone.withdraw(owner, bucket.shared(max(1, self._membership.view.living)), most)

    async def run(self) -> None:
        """Tell the directory what was released, and sweep it, until cancelled."""
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
async def shared(gate: OwnerGate | None, table: QuotaTable, membership: Membership) -> AsyncGenerator[None]:
    """Let this gate count with the other hosts for as long as the block lasts."""
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
