"""`accord.Hosts`: the settings with which a server becomes one host of a service."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accord.errors import AccordError
from accord.hosts.host_table import Directory, HostRow, new_host_id
from accord.hosts.signed_forward import LEAST_KEY
from accord.mistakes import check_text
from accord.store.postgres_connection import is_postgres

if TYPE_CHECKING:
    from accord.hosts.this_host import ThisHost
    from accord.http.server.app import App

LEASE = 5.0
"""Seconds without a beat after which a host may be declared dead."""


class Hosts:
    """Makes a server one host of a service of several processes, on one machine or on many.

        hosts = accord.Hosts("postgresql://db/accord", peer="10.0.3.7:8100", key=key)
        await accord.http.serve(agent, hosts=hosts)

    `directory` is the table of the hosts: the URL of a PostgreSQL database, or the path of a SQLite file for processes
    of one machine. `peer` is the address at which the other hosts reach this one; port 0 chooses a free port. `key` has
    at least 32 bytes and is the same on all hosts; of several, the first signs and all are accepted. With a SQLite file
    it may be omitted. `name` is for operators. `weight` is the share of this host: 2 takes twice the connections of 1,
    0 takes none and only forwards. `lease` is how many seconds a host may be silent before the others declare it dead.
    With `fence`, a host that cannot reach the directory for this many seconds ends its connections. `schema` is that of
    the table in PostgreSQL.

    With `peer_certificate`, hosts speak TLS with each other. It is a PEM file for the address in `peer`; its private
    key is in the same file or in `peer_certificate_key`. `peer_ca` is the PEM file of the CA that signs the
    certificates of the hosts: only certificates of that CA are accepted then, on both sides. Files that are replaced
    are loaded again.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        peer: str = "127.0.0.1:0",
        key: str | bytes | Sequence[str | bytes] | None = None,
        name: str = "",
        weight: float = 1.0,
        lease: float = LEASE,
        fence: float | None = None,
        schema: str = "accord",
        peer_certificate: str | Path | None = None,
        peer_certificate_key: str | Path | None = None,
        peer_ca: str | Path | None = None,
    ) -> None:
        check_text("Hosts(name=...)", name)
        for what, given in (("peer_certificate_key", peer_certificate_key), ("peer_ca", peer_ca)):
            if given is not None and peer_certificate is None:
                raise ValueError(f"Hosts({what}=...) requires peer_certificate=...")
        self.directory = directory
        """Where the table of the hosts is."""
        self.peer = peer
        """The address at which other hosts reach this one, as it was given."""
        self._address = _address(peer)
        self._keys = _keys(key)
        self._name = name or socket.gethostname()
        self._weight = _at_least("weight", weight, 0)
        self._lease = _at_least("lease", lease, 0.5)
        self._fence = None if fence is None else _at_least("fence", fence, 0.5)
        self._schema = schema
        self._certificate = peer_certificate
        self._certificate_key = peer_certificate_key
        self._ca = peer_ca

    @asynccontextmanager
    async def joined(self, app: App) -> AsyncGenerator[None]:
        """Make this application one host of the service during the block."""
        from accord.hosts.forwarder import PeerApp
        from accord.hosts.peers import PeerTls
        from accord.hosts.this_host import (
            ThisHost,  # here, so that `accord.Hosts` alone loads no extra
            shared,
        )
        from accord.http.server.serve import listener_of, listening_socket

        tls = None if self._certificate is None else PeerTls(self._certificate, self._certificate_key, self._ca)
        async with directory_of(self.directory, self._schema) as directory:
            keys = await keys_of(directory, self._keys)
            listening = listening_socket(*self._address)
            try:
                host = HostRow(new_host_id(), f"{self._address[0]}:{listening.getsockname()[1]}", self._name)
                group = ThisHost(
                    app,
                    directory,
                    host,
                    keys,
                    lease=self._lease,
                    fence=self._fence,
                    weight=self._weight,
                    tls=tls,
                )
                peer_app = PeerApp(app, app.path, group.signer)
                listener = listener_of(peer_app, app.limits, listening, None if tls is None else tls.server)
            except BaseException:
                listening.close()
                raise
            await listener.start()
            try:
                async with _joined(group, app), shared(app.gate, directory, group.membership):
                    yield
            finally:
                await listener.end()


@asynccontextmanager
async def _joined(group: ThisHost, app: App) -> AsyncGenerator[None]:
    beating: asyncio.Task[None] | None = None
    try:
        await group.membership.join()
        beating = asyncio.create_task(group.membership.run(), name="accord hosts: beat")
        app.cluster = group
        yield
    finally:
        app.cluster = None
        if beating is not None:
            beating.cancel()
            await asyncio.wait([beating])
        await group.peers.close()


def _address(peer: str) -> tuple[str, int]:
    host, colon, port = peer.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"Hosts(peer=...) takes an address like '10.0.3.7:8100', got {peer!r}")
    return host.strip("[]"), int(port)


def _keys(given: str | bytes | Sequence[str | bytes] | None) -> Sequence[bytes]:
    if given is None:
        return ()
    several = [given] if isinstance(given, str | bytes) else list(given)
    keys = [key.encode() if isinstance(key, str) else key for key in several]
    for key in keys:
        if len(key) < LEAST_KEY:
            raise ValueError(f"Hosts(key=...) takes keys of at least {LEAST_KEY} bytes, got one of {len(key)}")
    return keys


async def keys_of(directory: Directory, given: str | bytes | Sequence[str | bytes] | None) -> Sequence[bytes]:
    """Return the given keys, or else the directory's; raises AccordError if there are none."""
    if keys := _keys(given):
        return keys
    if (kept := await directory.key()) is None:
        raise AccordError("key=... is required with PostgreSQL: pass the same 32 random bytes on each host")
    return [kept]


def _at_least(what: str, value: float, least: float) -> float:
    if not value >= least:
        raise ValueError(f"Hosts({what}=...) must be at least {least:g}, got {value}")
    return float(value)


def directory_of(where: str | Path, schema: str, *, is_read_only: bool = False) -> Directory:
    """Return the directory in a PostgreSQL database, by its URL, or in a SQLite file, by its path."""
    if is_postgres(where):
        from accord.hosts.postgres_hosts import PostgresDirectory

        return PostgresDirectory(str(where), schema)
    from accord.hosts.sqlite_hosts import SqliteDirectory

    return SqliteDirectory(Path(where), is_read_only=is_read_only)


async def listed_hosts(where: str | Path, schema: str = "accord") -> list[HostRow]:
    """Read the hosts of a service, the oldest first; raises StoreError.

        for host in await listed_hosts("hosts.sqlite3"):
            print(host.name, host.state, host.connections)

    `where` is the directory of `accord.Hosts`: the URL of a PostgreSQL database, or the path of a SQLite file. `schema`
    is that of the table in PostgreSQL. Hosts that have ended are listed for a day.
    """
    directory = directory_of(where, schema, is_read_only=True)
    try:
        return await directory.hosts()
    finally:
        await directory.close()
