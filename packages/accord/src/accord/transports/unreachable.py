"""Why an agent behind a URL could not be reached, in words that say what to try. PURE.

The two common mistakes look like broken connections: TLS spoken to a port without it, and the other way round. Their
marks on the wire are few and stable: the names of OpenSSL's reasons, and the first bytes of a TLS alert.
"""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

USUAL_PATH = "/acp"
"""Where agents are usually served."""

ALERT = b"\x15\x03"
"""How a TLS alert begins, which is what a TLS server answers to a request without TLS."""

HANDSHAKE = b"\x16\x03"
"""How a TLS handshake begins, which is what a client with TLS sends to a server without it."""

_NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "BAD_PACKET_LENGTH"}
"""OpenSSL's reasons for an answer that is not TLS at all."""

NO_TLS_THERE = "it does not speak TLS; for a server without TLS, the URL begins with http:// or ws://"
TLS_THERE = "it speaks TLS; the URL must begin with https:// or wss://"
MAYBE_TLS_THERE = "if it speaks TLS, the URL must begin with https:// or wss://"


def without_tls(error: BaseException) -> str | None:
    """The explanation of an error that a server without TLS causes; None for other errors."""
    return NO_TLS_THERE if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS else None


def no_answer(received: bytes, *, tls: bool) -> str:
    """What to add to "the server closed the connection before it answered", given what it has sent until then."""
    if tls:
        return ""
    return f"; {TLS_THERE}" if received.startswith(ALERT) else "" if received else f"; {MAYBE_TLS_THERE}"


def not_found(url: str, status: int) -> str:
    """What to add to the refusal of a connection, if it says that there is nothing at this URL."""
    if status != 404:
        return ""
    path = urlsplit(url).path or "/"
    usual = "" if path == USUAL_PATH else f"; agents are usually served at {USUAL_PATH}"
    return f" (no agent is served at the path {path}{usual})"
