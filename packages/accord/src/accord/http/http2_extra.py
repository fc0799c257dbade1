"""Whether HTTP/2 can be spoken: it needs the extra `http2`, with the package hpack."""

from __future__ import annotations

from importlib.util import find_spec

PROTOCOLS = ("h2", "http/1.1")
"""What TLS offers (ALPN), the preferred first."""


def has_http2() -> bool:
    """Whether the extra `http2` is installed."""
    return find_spec("hpack") is not None


def offered() -> list[str]:
    """The protocols that TLS offers with what is installed."""
    return [name for name in PROTOCOLS if name != "h2" or has_http2()]
