"""The words of the transport: its headers, and what of a message decides its way. PURE."""

from __future__ import annotations

import msgspec
from msgspec import Raw

CONNECTION_ID = "acp-connection-id"
SESSION_ID = "acp-session-id"
PROTOCOL_VERSION = "acp-protocol-version"
LAST_EVENT_ID = "last-event-id"

NUMBERED = "accord-numbered"
"""Our server sets this header of `initialize`'s answer to say that its event ids count the messages of the connection,
whichever stream they go to: so they can be put in order again. It also takes a POST that says its number only once, so
that one whose answer was lost can be sent again. Nobody else looks at it."""

MESSAGE = "accord-message"
"""Our client numbers what it posts to such a server, from 1 on."""

EVENTS = "text/event-stream"
JSON = "application/json"

SESSION_ANSWERED_ON_CONNECTION = frozenset({"session/load"})
"""Methods that name a session and are answered on the connection's stream (Resume Session Flow)."""

MAKES_SESSION_KNOWN = frozenset({"session/load", "session/resume"})


class _Named(msgspec.Struct):
    session_id: str | None = msgspec.field(default=None, name="sessionId")


_read = msgspec.json.Decoder(_Named).decode


def session_of(params: Raw | bytes | None) -> str | None:
    """The session that these params, or this result, name."""
    if params is None:
        return None
    try:
        return _read(params).session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class _Version(msgspec.Struct):
    version: int | None = msgspec.field(default=None, name="protocolVersion")


def protocol_version_of(result: Raw | None) -> str | None:
    """The version that this result of `initialize` agrees upon, as a header says it."""
    try:
        version = None if result is None else msgspec.json.decode(result, type=_Version).version
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if version is None else str(version)
