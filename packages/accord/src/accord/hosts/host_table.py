"""The table in which each host of a service has a row: its rows, the choice of a host, and its database interface.

A beat is one round: it renews the row of this host, declares hosts dead whose rows have expired if this host may do so,
and reads all rows. A host may, if it has itself beaten without a gap (`Membership` knows), and if its own row is as
fresh as a beat makes it when the database checks: after an outage of the database, hosts that could not beat must not
be declared dead. The clock of a database server may be set forward, which ends all leases at once. So only suspects are
declared dead: hosts whose count of beats has not changed for half a lease, by the clock of this process.

The database also counts what owners use. A use counts while its host lives. So the uses of a host that has died stop
counting when it is declared dead, and deleting their rows only saves space.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple, Self

from accord.http.server.owner_quotas import Use
from accord.http.server.server_limits import Bucket, Withdrawal
from accord.http.server.validation import Refusal

State = Literal["live", "draining", "dead", "gone"]
"""`draining`: opens no more connections. `dead`: did not beat in time. `gone`: ended in order."""

SPEAKS = 2
"""The version of the hosts' own protocol."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LETTERS = 10

HEAVIER = 1.25
"""How many times the load of another host this one may have before a connection is opened there."""

NOT_ENDED = "the host of this connection does not answer; try again"


class HostRow(NamedTuple):
    """One row of the directory."""

    id: str
    """A random id made when the process starts, so that it is never used twice."""
    address: str
    """Its peer port, as `host:port`."""
    name: str = ""
    state: State = "live"
    load: float = 0.0
    """Its load, as a fraction of its capacity; infinite if it opens no connections."""
    connections: int = 0
    expires_in: float = 0.0
    """Seconds until it may be declared dead, when it was read."""
    speaks: int = SPEAKS
    beats: int = 0
    """How often it has beaten, if the directory's clock can be set; else 0."""

    @property
    def is_over(self) -> bool:
        """Whether it will never answer again."""
        return self.state in ("dead", "gone")


class HostTable:
    """The hosts as last read, and the connections that were placed on them since."""

    def __init__(self, hosts: Sequence[HostRow] = ()) -> None:
        self.hosts = {host.id: host for host in hosts}
        self._placed: dict[str, int] = {}

    @property
    def living(self) -> int:
        """Return how many hosts are alive."""
        return sum(not host.is_over for host in self.hosts.values())

    def placed(self, host: HostRow) -> None:
        """Count a connection that was opened there: the next ones of this second see it."""
        self._placed[host.id] = self._placed.get(host.id, 0) + 1

    def load(self, host: HostRow) -> float:
        """Return the load of a host, including connections placed there since."""
        more = self._placed.get(host.id, 0)
        if not more:
            return host.load
        return host.load * (host.connections + more) / host.connections if host.connections else host.load + more / 1000

    def better_than(self, me: HostRow, candidates: Sequence[HostRow], random: Random) -> list[HostRow]:
        """Return the hosts that should open a connection instead of `me`, the best first; empty if `me` should.

        Of all candidates only two random ones are compared: if every host chose the emptiest one, all new connections
        of a second would go there.
        """
        must = me.state != "live" or me.load == float("inf")
        if must:
            return sorted(candidates, key=self.load)
        two = random.sample(list(candidates), min(2, len(candidates)))
        best = min(two, key=self.load, default=None)
        return [] if best is None or me.load <= HEAVIER * self.load(best) else [best]


def why_over(host: HostRow) -> Refusal:
    """The refusal of a request for a connection of a host that is dead or gone."""
    reason = "has ended" if host.state == "dead" else "was shut down"
    return Refusal(404, f"the host of this connection {reason}: connect again; stored sessions can be loaded")


def not_answering() -> Refusal:
    """Return the refusal of a request whose host does not answer now."""
    return Refusal(503, NOT_ENDED, retry_after=1)


def new_host_id() -> str:
    """An id for a host, from an alphabet without the `.` that ends it in the ids of connections."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_ID_LETTERS))


def host_id_of(connection: str) -> str:
    """Return the id of the host that this connection names; empty if it names none.

    >>> host_id_of("k3vq7x2abc.Zm9v"), host_id_of("Zm9v")
    ('k3vq7x2abc', '')
    """
    host, dot, _ = connection.partition(".")
    return host if dot else ""


REMEMBERED = 24 * 3600.0
"""Seconds for which the row of a dead or ended host is kept, so that its clients get the right error."""

BEATS = 5
"""How many beats a lease has."""


class Beat(NamedTuple):
    """The data of one round: the row of this host, and the hosts that it may declare dead."""

    host: HostRow
    lease: float
    """Seconds until the row expires."""
    suspects: Sequence[str] = ()
    """The hosts that are declared dead if their rows have expired."""

    @property
    def fresh(self) -> float:
        """Return how many seconds its own row has left at least, if it was renewed within two beats."""
        return self.lease * (BEATS - 2) / BEATS


class Directory(ABC):
    """The table of the hosts of a service, and of their owners' usage. Its errors are StoreError."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the table if it does not exist."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect."""

    @abstractmethod
    async def beat(self, beat: Beat) -> list[HostRow] | None:
        """Renew the row of this host and read all rows; None if this host was declared dead."""

    @abstractmethod
    async def hosts(self) -> list[HostRow]:
        """All rows, the oldest host first."""

    async def key(self) -> bytes | None:
        """Return the key with which the hosts of this directory sign, if the directory stores one."""
        return None

    # Owners' usage

    @abstractmethod
    async def admit(self, use: Use, most: int, host: str) -> bool:
        """Count this use of a host if its owner has fewer than `most` of its kind on all living hosts."""

    @abstractmethod
    async def release(self, uses: Sequence[str]) -> None:
        """Count the uses with these ids no more."""

    @abstractmethod
    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        """Take up to this many posts of the owner with this key."""

    @abstractmethod
    async def claim(self, owner: str, host: str) -> str:
        """Return the host with the shared agent of the owner with this key: this one, unless another live one
        has it.
        """

    @abstractmethod
    async def sweep(self) -> None:
        """Delete obsolete rows: the uses of hosts that have ended, and full buckets."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
