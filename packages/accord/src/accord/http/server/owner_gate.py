"""`OwnerGate`: applies the quotas of an owner to connections, prompts and POSTs.

    initialize, WebSocket ──▶ admit_connection ──▶ 429          POST ──▶ spend ──▶ 429
    prompt ──▶ GuardedTransport ──▶ admit ──▶ JSON-RPC error    message of a WebSocket ──▶ spend ──▶ it waits

All hosts count together, and strictly: `OwnerCounts` admits a connection or a turn, or does not. A rate is withdrawn
from the owner's bucket for messages that have arrived, and never in advance: what one host keeps for later could be
spent after the bucket has filled again. While a withdrawal is under way, further messages wait for the next one, which
is for all of them. So a busy owner costs the directory few requests, and one whose bucket is empty none.
"""

from __future__ import annotations

import asyncio
from math import ceil

from accord.errors import StoreError
from accord.http.server.owner_counts import LocalCounts, OwnerCounts, Use, new_use
from accord.http.server.quotas import Bucket, Kind, Quotas
from accord.http.server.validation import Refusal

MOST_PURSES = 10_000
"""Owners whose purses are remembered."""

_ALL = {"connections": "open connections", "turns": "running turns"}


class Purse:
    """The posts that this host has withdrawn for the waiting messages of one owner."""

    def __init__(self) -> None:
        self.waiting = 0
        """Messages that wait for a post."""
        self.left = 0
        self.empty_until = 0.0
        """Until when there is nothing to withdraw."""
        self.withdrawing = asyncio.Lock()


class OwnerGate:
    """Admits connections, turns and posts of each owner. `counts` is replaced when a server joins other hosts."""

    def __init__(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.counts: OwnerCounts = LocalCounts()
        self._bucket = quotas.bucket
        self._purses: dict[str, Purse] = {}

    async def admit_connection(self, owner: str) -> Use | None:
        """Count one more connection of this owner; raises Refusal if that is one too many."""
        return await self._admit("connections", owner, self.quotas.connections)

    async def admit_turn(self, owner: str) -> Use | None:
        """Count one more running turn of this owner; raises Refusal if that is one too many."""
        return await self._admit("turns", owner, self.quotas.turns)

    async def _admit(self, kind: Kind, owner: str, most: int | None) -> Use | None:
        if most is None:
            return None
        use = new_use(kind, owner)
        try:
            admitted = await self.counts.admit(use, most)
        except StoreError as error:
            self.counts.release(use)  # its answer may be lost, and it be counted
            raise Refusal(503, f"the {_ALL[kind]} of this owner cannot be counted now; try again") from error
        except BaseException:
            self.counts.release(use)
            raise
        if not admitted:
            raise Refusal(
                429, f"this owner has as many {_ALL[kind]} as its quota allows ({most:,}): end one, or try again later"
            )
        return use

    def release(self, use: Use | None) -> None:
        """Count a connection or a turn no more."""
        if use is not None:
            self.counts.release(use)

    async def spend(self, owner: str) -> None:
        """Count one message of this owner; raises Refusal if it comes too fast."""
        if wait := await self._spend(owner):
            assert self._bucket is not None
            raise Refusal(
                429,
                f"too many messages: this owner may send {self._bucket.rate:g} a second, "
                f"and {self._bucket.burst:,} at once",
                retry_after=max(1, ceil(wait)),
            )

    async def wait_to_spend(self, owner: str) -> None:
        """Count one message of this owner, when the rate allows it."""
        while wait := await self._spend(owner):  # noqa: ASYNC110 - a rate has no event
            await asyncio.sleep(wait)

    async def _spend(self, owner: str) -> float:
        """Count one message; returns 0, or the seconds after which to try again."""
        if self._bucket is None:
            return 0.0
        purse = self._purse(owner)
        purse.waiting += 1
        try:
            async with purse.withdrawing:
                if not purse.left and (wait := await self._withdraw(owner, purse, self._bucket)):
                    return wait
                purse.left -= 1
                return 0.0
        finally:
            purse.waiting -= 1
            if not purse.waiting:
                purse.left = 0  # those of messages whose clients have left meanwhile

    async def _withdraw(self, owner: str, purse: Purse, bucket: Bucket) -> float:
        now = asyncio.get_running_loop().time()
        if purse.empty_until > now:
            return purse.empty_until - now
        withdrawal = await self.counts.withdraw(owner, bucket, purse.waiting)
        purse.left = withdrawal.taken
        purse.empty_until = now + withdrawal.wait
        return 0.0 if withdrawal.taken else withdrawal.wait

    def _purse(self, owner: str) -> Purse:
        if owner not in self._purses:
            if len(self._purses) >= MOST_PURSES:
                self._purses = {name: it for name, it in self._purses.items() if it.waiting}
            self._purses[owner] = Purse()
        return self._purses[owner]

    def guards(self) -> bool:
        """Whether the messages of a connection have to be looked at."""
        return self.quotas.turns is not None or self._bucket is not None
