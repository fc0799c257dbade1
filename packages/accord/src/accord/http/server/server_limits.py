"""The limits of one server: sizes, counts and times, each with its default."""

from __future__ import annotations

from dataclasses import dataclass, fields

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
    connection with an unfinished handshake is closed instead."""

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
