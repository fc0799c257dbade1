"""`ServerLimits`: sizes, counts and times of one server. `Quotas`: what each owner may use of a service. PURE.

A rate is stored as one number, the time at which its bucket is full again: taking `n` moves that time by `n / rate`. So
an unused bucket needs no refilling, and hosts that share one share a single number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil
from typing import Literal, NamedTuple

MIB = 1024 * 1024

SILENT_PINGS = 2
"""Unanswered pings before a further interval of silence closes the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The limits of one server. Each must be positive.

    application = accord.http.app(agent, limits=accord.http.ServerLimits(connections=100, sessions=10))
    """

    body: int = 16 * MIB
    """Bytes of one message: a POST body (413 if larger) or a WebSocket message (close code 1009)."""

    opening: int = MIB
    """Bytes of a client's first message, `initialize`. A larger one is refused like one larger than `body`."""

    sockets: int = 20_000
    """Open TCP connections, including those in a TLS handshake. Further ones are closed at once; with TLS, the oldest
    connection with an unfinished handshake is closed instead.
    """

    connections: int = 10_000
    """Open protocol connections. Further ones are answered with 503."""

    sessions: int = 1_000
    """Open sessions of one connection. A request for one more is answered with an error."""

    requests: int = 10_000
    """Unanswered requests of one connection. One more is answered with 429 (HTTP) or an error (WebSocket)."""

    processes: int = 250
    """Running agent processes, if each connection has its own. A further connection is answered with 503."""

    owner_processes: int = 100
    """Running agent processes of one owner. A further connection is answered with 429."""

    bodies: int = 32 * MIB
    """Bytes of all large POST bodies that are arriving or waiting for their agents; small ones, up to 64 KiB, may take
    half as much again. A further body waits, unread, for `arrival` seconds; then it is answered with 503. A body that
    others wait for is refused after five seconds."""

    waiting: int = 16 * MIB
    """Bytes of POST bodies that wait on one connection while its agent reads nothing. Further ones get 429."""

    streams: int = 1_000
    """Event streams of one connection (429 if more), and streams of one HTTP/2 connection."""

    unread: int = MIB
    """Bytes that may wait for a client to read them before its agent is paused."""

    kept: int = 4 * MIB
    """Bytes of sent messages that a connection keeps, so that a client can resume a broken stream."""

    keepalive: float = 15.0
    """Seconds of silence on an event stream before the server sends a comment to keep it alive."""

    heartbeat: float = 20.0
    """Seconds of silence on a WebSocket, or an HTTP/2 connection with a request, before a ping. After three times as
    long, the connection is closed."""

    reopen: float = 300.0
    """Seconds of silence after which an event stream ends, so that its client shows a sign of life by opening it again.
    Only for clients that resume streams without loss, as ours do."""

    stalled: float = 60.0
    """Seconds that messages may wait without the client reading any. Then the connection is closed."""

    abandoned: float = 60.0
    """Seconds that a connection stays open without a stream and without a request."""

    handshake: float = 10.0
    """Seconds from accepting a TLS connection to the end of its handshake. Then it is closed."""

    idle: float = 30.0
    """Seconds that a TCP connection stays open without a request. The headers of a request have as long to arrive."""

    arrival: float = 30.0
    """Seconds that a POST body may take to arrive, plus one for each KiB of it. Then it is answered with 408."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise ValueError(f"limit {field.name!r} must be positive, got {getattr(self, field.name)}")

    @property
    def first(self) -> int:
        """Bytes that a client's first message may have."""
        return min(self.opening, self.body)


Kind = Literal["connections", "turns"]
"""The kinds of use that are counted while they last."""

SECONDS_AT_ONCE = 10.0
"""The default of `burst`, in seconds' worth of posts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The usage that each owner may have of a service, over all of its hosts. None means: no quota.

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
    """An amount that was taken from a bucket."""

    taken: int
    full_in: float
    """Seconds until the bucket is full again."""
    wait: float = 0.0
    """Seconds until there is something to take, if `taken` is 0."""


class Bucket(NamedTuple):
    """A rate per second, and the most that may be taken at once.

    >>> bucket = Bucket(rate=2.0, burst=3)
    >>> bucket.take(0.0, 2)
    Withdrawal(taken=2, full_in=1.0, wait=0.0)
    >>> bucket.take(1.5, 2)
    Withdrawal(taken=0, full_in=1.5, wait=0.5)
    """

    rate: float
    burst: int

    def take(self, full_in: float, most: int) -> Withdrawal:
        """Take up to `most` from a bucket that is full in this many seconds."""
        full_in = min(max(0.0, full_in), self.burst / self.rate)
        there = self.burst - self.rate * full_in
        # Slightly more than there is: the time was rounded on its way through a database.
        count = min(most, int(there + 1e-6))
        if count:
            return Withdrawal(count, full_in + count / self.rate)
        return Withdrawal(0, full_in, (1 - there) / self.rate)

    def shared(self, hosts: int) -> Bucket:
        """Return one host's part, for as long as the hosts cannot share the bucket."""
        return Bucket(self.rate / hosts, max(1, self.burst // hosts))
