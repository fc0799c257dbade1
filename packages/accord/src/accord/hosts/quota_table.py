"""The tables of quotas, as an interface for the two databases: the uses of each owner, and when its bucket is full.

A use counts while its host lives. So the uses of a host that has died stop to count when it is declared dead, and
deleting their rows is only a matter of room.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from accord.http.server.owner_counts import Use
from accord.http.server.quotas import Bucket, Withdrawal


class QuotaTable(ABC):
    """What the owners of a service use. Its errors are StoreError."""

    @abstractmethod
    async def admit(self, use: Use, most: int, host: str) -> bool:
        """Count this use of a host if its owner has fewer than `most` of its kind on all living hosts."""

    @abstractmethod
    async def release(self, uses: Sequence[str]) -> None:
        """Count the uses with these ids no more."""

    @abstractmethod
    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        """Take up to so many posts of the owner with this key."""

    @abstractmethod
    async def claim(self, owner: str, host: str) -> str:
        """The host with the shared agent of the owner with this key: this one, unless another live one has it."""

    @abstractmethod
    async def sweep(self) -> None:
        """Delete what counts no more: the uses of hosts that are over, and full buckets."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""
