"""What has to hold in every round."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The bounds of a round. They are generous: an attack that gets through passes them by far."""

    left: int = 64 * MIB
    """Bytes of memory over the base that a victim may have once a round is over."""

    peak: int = 64 * MIB
    """Bytes of memory over the base that a victim may have for each attack on it that goes on at the same time."""

    message: int = 64 * MIB
    """Bytes more for a client: the largest message that it takes, once. A server's largest is `BODY`."""

    standstill: float = 1.5
    """Seconds of processor time that an event loop may take between two beats of its probe."""

    settle: float = 45.0
    """Seconds within which a victim's numbers have to come back."""

    turn: float = 90.0
    """Seconds that an honest visit may take, and a victim's answer to the runner."""

    objects: int = 30
    """Living objects of one class over the base that may be left."""

    descriptors: int = 4
    """Open files over the base that may be left: such as a store's, opened for the first time."""

    tasks: int = 4
    """Tasks over the base that may be left."""


BODY = 4 * MIB
"""The largest message that the server takes."""

SERVER_LIMITS = {
    "body": BODY,
    "sockets": 1_500,
    "connections": 600,
    "sessions": 50,
    "streams": 50,
    "stalled": 10.0,
    "abandoned": 12.0,
    "idle": 10.0,
    "arrival": 10.0,
    "heartbeat": 10.0,
}
"""The server's limits: what is left without an owner has to go within a round, and honest peers have room."""

POSTS, BURST = 500.0, 1_000
"""The quota of each owner at the hosts: more than honest peers send."""

ATTACKER_MEMORY = 1024 * MIB
VICTIM_MEMORY = 6 * 1024 * MIB
"""Bytes of address space, so that an attack that gets through cannot take the machine with it."""
