"""Attackers: programs of raw sockets and pipes, one process for each attack, bounded in time, in bytes and in memory.

An attack is a function of an `Attacker`. It makes tries while `attacker.going` is true, and counts them with
`attacker.made()`. A connection that is refused, cut or silent is what a server may do. Only what a server must never
do is said with `attacker.wrong(...)`, and fails the run.

    python -m tests.attack.attackers KIND SEED SECONDS TARGETS
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

BUDGET = 256 * 1024 * 1024
"""Bytes that one attack may send."""

FLOODING = 12.0
"""Seconds more that a flood may take to send all that it may."""

WAIT = 1.0
"""Seconds that an attacker waits for a byte before it goes on with something else."""


@dataclass
class Attacker:
    """One attack: what it aims at, how long it has, and what came of it."""

    seed: int
    seconds: float
    targets: dict[str, Any]
    """Ports of the servers by name (`plain`, `second`, `tls`, `command`, `chain`; `agents` and `front` are hosts of a
    service), the path of the `store`, and of the `hosts` the peer port of one, its id, and the key."""
    tries: int = 0
    sent: int = 0
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.ends = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.ends - time.monotonic())

    @property
    def going(self) -> bool:
        return self.left > 0 and self.sent < BUDGET

    def go_on(self, seconds: float = FLOODING) -> None:
        """Take more time, for a flood that ends by itself once nothing more is taken of it."""
        self.ends += seconds

    def made(self, tries: int = 1) -> None:
        self.tries += tries

    def wrong(self, what: str) -> None:
        self.complaints.append(what[:500])

    def port(self, *names: str) -> int:
        """The port of one of these servers."""
        return self.targets[self.random.choice(names or ("plain", "second", "chain"))]


Attack: TypeAlias = Callable[[Attacker], None]

ATTACKS: dict[str, Attack] = {}
"""All attacks on servers and agents, by the names of their functions."""


def attack(function: Attack) -> Attack:
    ATTACKS[function.__name__] = function
    return function
