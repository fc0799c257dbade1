"""Names on the wire: headers, media types, versions of HTTP; and the parts of a message that decide its route."""

from __future__ import annotations

from importlib.util import find_spec

import msgspec
from msgspec import Raw

CONNECTION_ID = "acp-connection-id"
SESSION_ID = "acp-session-id"
PROTOCOL_VERSION = "acp-protocol-version"
LAST_EVENT_ID = "last-event-id"

NUMBERED = "accord-numbered"
"""Our server sets this header in its answer to `initialize`. It promises that event ids number the messages of the
connection across all streams, so a client can restore their order; and that a numbered POST is accepted only once, so a
client can repeat a POST whose answer was lost. Other implementations ignore it.
"""

MESSAGE = "accord-message"
"""The number that our client gives each POST to such a server, starting at 1."""

EVENTS = "text/event-stream"
JSON = "application/json"

SESSION_ANSWERED_ON_CONNECTION = frozenset({"session/load"})
"""Methods that name a session and are answered on the connection's stream (Resume Session Flow)."""

MAKES_A_SESSION = frozenset({"session/new", "session/fork"})
OPENS_A_SESSION = frozenset({"session/load", "session/resume"})
CLOSES_A_SESSION = frozenset({"session/close", "session/delete"})


class _InitializeResult(msgspec.Struct):
    version: int | None = msgspec.field(default=None, name="protocolVersion")


# Made at import: msgspec's first use of a class is not safe in two threads.
_read_version = msgspec.json.Decoder(_InitializeResult).decode


def protocol_version_of(result: Raw | None) -> str | None:
    """Return the protocol version in this result of `initialize`, as a header value, or None."""
    try:
        version = None if result is None else _read_version(result).version
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if version is None else str(version)


PROTOCOLS = ("h2", "http/1.1")
"""The protocols that TLS offers (ALPN), the preferred first."""


def has_http2() -> bool:
    """Whether the extra `http2` is installed."""
    return find_spec("hpack") is not None


def offered() -> list[str]:
    """Return the protocols that TLS offers with the installed packages."""
    return [name for name in PROTOCOLS if name != "h2" or has_http2()]
