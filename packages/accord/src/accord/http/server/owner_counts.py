"""Counts what each owner uses: in the memory of a single server here, in the directory of hosts in `accord.hosts`."""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple, Protocol

from accord.http.server.quotas import Bucket, Kind, Withdrawal

MOST_BUCKETS = 10_000
"""Buckets that are remembered before full ones are dropped; a full one needs no memory."""


class Use(NamedTuple):
    """One connection or turn of an owner, from its admission to its release."""

    kind: Kind
    owner: str
    """The key of the owner."""
    id: str


def new_use(kind: Kind, owner: str) -> Use:
    """A use with an id of its own."""
    return Use(kind, owner_key(owner), secrets.token_hex(12))


def owner_key(owner: str) -> str:
    """A hash that stands for an owner: names may be long, and a directory need not know them."""
    return blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class OwnerCounts(Protocol):
    """What is counted for each owner. Its errors are StoreError."""

    async def admit(self, use: Use, most: int) -> bool:
        """Count this use if its owner has fewer than `most` of its kind. Raises StoreError."""
        ...

    def release(self, use: Use) -> None:
        """Count this use no more; fine if it was never counted."""
        ...

    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        """Take up to so many of this owner's posts."""
        ...


class LocalCounts:
    """Counts in memory, for a single server.

    `clock` tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: defaultdict[tuple[Kind, str], set[str]] = defaultdict(set)
        self._full_at: dict[str, float] = {}

    async def admit(self, use: Use, most: int) -> bool:
        """Count this use if its owner has fewer than `most` of its kind."""
        uses = self._uses[use.kind, use.owner]
        if len(uses) >= most:
            return False
        uses.add(use.id)
        return True

    def release(self, use: Use) -> None:
        """Count this use no more."""
        uses = self._uses[use.kind, use.owner]
        uses.discard(use.id)
        if not uses:
            del self._uses[use.kind, use.owner]

    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        """Take up to so many of this owner's posts."""
        now, key = self._clock(), owner_key(owner)
        withdrawal = bucket.take(self._full_at.get(key, now) - now, most)
        self._full_at[key] = now + withdrawal.full_in
        if len(self._full_at) > MOST_BUCKETS:
            self._full_at = {key: at for key, at in self._full_at.items() if at > now}
        return withdrawal
