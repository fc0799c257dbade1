"""`accord.hosts.Operator`: asks the hosts of a service which sessions they have, drains them, and ends connections.

An operator is a peer that serves nothing. It reads the table of hosts, and sends signed requests to their peer ports,
as the hosts themselves do. So it needs the key of the hosts, and a network in which it reaches them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from accord.errors import AccordError
from accord.hosts.host_table import HostRow, new_host_id
from accord.hosts.hosts import directory_of, keys_of, listed_hosts
from accord.hosts.peers import DRAIN, END, REVOKE, SESSIONS, UNDRAIN, PeerHost, PeerTls
from accord.hosts.signed_forward import Signer
from accord.http.client.client_socket import Broken
from accord.http.server.cluster import OpenSession

PATIENCE = 12.0
"""The lease for requests to a host, which has two fifths of it to answer."""


class Operator:
    """The commands of an operator to the hosts of a service.

    async with accord.hosts.operator("hosts.sqlite3") as operator:
        for host in operator.hosts:
            print(host.name, await operator.sessions(host))
    """

    def __init__(self, hosts: Sequence[HostRow], keys: Sequence[bytes], tls: PeerTls | None) -> None:
        self.hosts = [host for host in hosts if not host.is_over and host.expires_in >= 0]
        """The live hosts."""
        me = new_host_id()
        self._signer = Signer(keys, lambda: me)
        self._tls = None if tls is None else tls.client

    async def sessions(self, host: HostRow) -> list[OpenSession]:
        """The sessions that are open on a host; raises AccordError if it does not answer."""
        found = await self._command(host, SESSIONS)
        return [OpenSession(**each) for each in msgspec.json.decode(found)]

    async def drain(self, host: HostRow, *, undo: bool = False) -> int:
        """Stop a host from opening connections, or let it open them again; returns how many are open."""
        return int(await self._command(host, UNDRAIN if undo else DRAIN))

    async def end(self, host: HostRow, session: str) -> int:
        """End the connections of a host that have this session; returns how many."""
        return int(await self._command(host, END, quote(session, safe="")))

    async def revoke(self, host: HostRow, owner: str) -> int:
        """End the connections of an owner on a host; returns how many. The owner's tokens stay good."""
        return int(await self._command(host, REVOKE, owner=owner))

    async def _command(self, host: HostRow, path: str, query: str = "", owner: str = "") -> str:
        peer = PeerHost(host, PATIENCE, self._tls, self._signer, lambda _: None)
        try:
            if not (problem := await peer.ask()):
                answer = await peer.administer(path, query, owner)
                if answer:
                    return answer
                problem = "it refuses the command; it may be of an older version"
        except (Broken, TimeoutError) as error:
            problem = str(error) or "it did not answer in time"
        finally:
            await peer.close()
        raise AccordError(f"host {host.name} ({host.id}) at {host.address} does not answer: {problem}")


@asynccontextmanager
async def operator(
    where: str | Path,
    schema: str = "accord",
    *,
    key: str | bytes | Sequence[str | bytes] | None = None,
    peer_certificate: str | Path | None = None,
    peer_certificate_key: str | Path | None = None,
    peer_ca: str | Path | None = None,
) -> AsyncGenerator[Operator]:
    """Return an operator of the hosts that are listed in a directory; the arguments are those of `accord.Hosts`."""
    hosts = await listed_hosts(where, schema)
    async with directory_of(where, schema) as directory:
        keys = await keys_of(directory, key)
    tls = None if peer_certificate is None else PeerTls(peer_certificate, peer_certificate_key, peer_ca)
    yield Operator(hosts, keys, tls)
