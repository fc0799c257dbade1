"""Which headers of a request are forwarded to the host with the agent, and which of its answer come back. PURE.

Credentials stay where they were checked: no `authorization`, no `cookie`, no `origin`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accord.http.headers import (
    CONNECTION_ID,
    LAST_EVENT_ID,
    MESSAGE,
    NUMBERED,
    PROTOCOL_VERSION,
    SESSION_ID,
)

SIGNED = ("accept", "content-type", CONNECTION_ID, LAST_EVENT_ID, MESSAGE, PROTOCOL_VERSION, SESSION_ID)
"""Headers that decide what a request does."""

FORWARDED = (*SIGNED, "traceparent", "tracestate")

RETURNED = frozenset({"cache-control", "x-accel-buffering", CONNECTION_ID, NUMBERED, "retry-after", "allow"})
"""Besides the content type, which the responder sets."""


def forwarded_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers of a client's request that its connection's host gets."""
    return [(name, headers[name]) for name in FORWARDED if name in headers]


def returned_headers(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of that host's answer that the client gets."""
    return [(name, value) for name, value in headers if name.lower() in RETURNED]
