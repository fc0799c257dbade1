"""Every family of attacks; each puts its attacks into the table when it is imported."""

from __future__ import annotations

from tests.attack.attackers import (
    ATTACKS,
    coder,
    floods,
    halves,
    hosts,
    http2,
    http_shapes,
    payloads,
    sessions,
    stdio,
    store,
    streams,
)

FAMILIES = (coder, floods, halves, hosts, http2, http_shapes, payloads, sessions, stdio, store, streams)

__all__ = ["ATTACKS", "FAMILIES"]
