"""How much one server takes on and how long it waits: every bound of the server, each with its default."""

from __future__ import annotations

from dataclasses import dataclass, fields

from accord.transports.base import HIGH_WATER

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The bounds of one server.

    application = accord.http.app(agent, limits=accord.http.ServerLimits(connections=100, sessions=10))
    """

    body: int = 16 * MIB
    """Bytes of a message: of a POST's body (413 past it), and of a WebSocket's message (close code 1009)."""

    sockets: int = 20_000
    """TCP connections at the same time, those in a TLS handshake included. Further ones are closed at once; with TLS,
    the oldest one whose handshake is not done is closed instead."""

    connections: int = 10_000
    """Connections of the protocol at the same time. More are answered with 503."""

    sessions: int = 1_000
    """Sessions that are open on one connection. A request for one more is answered with an error."""

    requests: int = 10_000
    """Requests on one connection that wait for an answer. One more is answered with 429, or with an error."""

    processes: int = 250
    """Agent processes at the same time, where each connection has one. A connection more is answered with 503."""

    owner_processes: int = 100
    """Agent processes of one owner. A connection more is answered with 429."""

    bodies: int = 256 * MIB
    """Bytes of all POSTs' bodies that arrive or wait. More are answered with 503."""

    waiting: int = 32 * MIB
    """Bytes of the bodies that wait on one connection while its agent reads nothing. More are answered with 429."""

    streams: int = 1_000
    """Event streams of one connection, and streams of one HTTP/2 connection. More are answered with 429."""

    unread: int = HIGH_WATER
    """Bytes that wait for a client to read them before its agent has to wait."""

    kept: int = 4 * MIB
    """Bytes that were sent on a connection and are kept for a stream that broke."""

    keepalive: float = 15.0
    """Seconds of silence on an event stream before a comment says that it is alive."""

    heartbeat: float = 20.0
    """Seconds of silence on a WebSocket before a ping. A client that is silent for three times as long is gone."""

    stalled: float = 60.0
    """Seconds that messages may wait without one of them being read. Then the connection ends."""

    abandoned: float = 60.0
    """Seconds that a connection lasts without a stream and without a request."""

    handshake: float = 10.0
    """Seconds that a TLS handshake may take, from accept to its end."""

    idle: float = 30.0
    """Seconds that a TCP connection lasts without a request. The head of a request has as long to arrive."""

    arrival: float = 30.0
    """Seconds that the body of a POST may take to arrive, and a second more for each KiB of it. Then it is 408."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise ValueError(f"limit {field.name!r} must be positive, got {getattr(self, field.name)}")
