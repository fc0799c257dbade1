"""`Quotas`: what one owner may use of a service, and how a rate is counted. PURE.

A rate is kept as one number, the time at which its bucket is full again: taking `n` moves that time by `n / rate`. So a
bucket that nobody uses needs no refilling, and hosts that share one share a single number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil
from typing import Literal, NamedTuple

Kind = Literal["connections", "turns"]
"""What is counted while it lasts."""

SECONDS_AT_ONCE = 10.0
"""Seconds' worth of posts that may come at once, unless `burst` says another number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """What each owner may use of a service, over all of its hosts. None means: no quota.

    await accord.http.serve(agent, access=access, quotas=accord.http.Quotas(connections=50, turns=8))

    An owner is the one whose token a request has. Without tokens, all clients are one owner.
    """

    connections: int | None = None
    """Open connections. A further one is answered with 429."""

    turns: int | None = None
    """Running turns. A further prompt is answered with an error."""

    posts: float | None = None
    """Messages a second. A POST that comes faster is answered with 429, and a WebSocket's message waits."""

    burst: int | None = None
    """Messages that may come at once; by default as many as `posts` allows in ten seconds."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0 < value < 10**12:
                raise ValueError(f"quota {field.name!r} must be positive, got {value}")
        if self.burst is not None and self.posts is None:
            raise ValueError("quota 'burst' requires 'posts', the messages a second")

    @property
    def bucket(self) -> Bucket | None:
        """The bucket of `posts`."""
        if self.posts is None:
            return None
        return Bucket(self.posts, self.burst or ceil(max(1.0, self.posts * SECONDS_AT_ONCE)))


class Withdrawal(NamedTuple):
    """What was taken from a bucket."""

    taken: int
    full_in: float
    """Seconds until the bucket is full again."""
    wait: float = 0.0
    """Seconds until there is something to take, if `taken` is 0."""


class Bucket(NamedTuple):
    """A rate a second, and how much may be taken at once.

    >>> bucket = Bucket(rate=2.0, burst=3)
    >>> bucket.take(0.0, 2)
    Withdrawal(taken=2, full_in=1.0, wait=0.0)
    >>> bucket.take(1.5, 2)
    Withdrawal(taken=0, full_in=1.5, wait=0.5)
    """

    rate: float
    burst: int

    def take(self, full_in: float, most: int) -> Withdrawal:
        """Take up to `most` from a bucket that is full in so many seconds."""
        full_in = min(max(0.0, full_in), self.burst / self.rate)
        there = self.burst - self.rate * full_in
        # A hair more than there is: the time was rounded on its way through a database.
        count = min(most, int(there + 1e-6))
        if count:
            return Withdrawal(count, full_in + count / self.rate)
        return Withdrawal(0, full_in, (1 - there) / self.rate)

    def shared(self, hosts: int) -> Bucket:
        """The part of one of so many hosts, for as long as they cannot share it."""
        return Bucket(self.rate / hosts, max(1, self.burst // hosts))
