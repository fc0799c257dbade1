"""Many hosts as one service: which are alive, and forwarding requests to the host with the agent (extra `http`).

    await accord.http.serve(agent, hosts=accord.Hosts("postgresql://db/accord", peer="10.0.3.7:8100", key=key))

    from accord.hosts import listed_hosts, run_processes

    hosts = await listed_hosts("postgresql://db/accord")          # which hosts a service has
    sys.exit(run_processes(4, run))                               # several server processes of this machine

A connection lives on the host that opened it. Its id names that host, and every other host forwards to it. `host_table`
is the table of hosts, stored in PostgreSQL or in a SQLite file. A single server imports nothing from this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord.hosts.host_operator import Operator as Operator, operator as operator
    from accord.hosts.host_table import HostRow as HostRow
    from accord.hosts.hosts import listed_hosts as listed_hosts
    from accord.hosts.server_processes import run_processes as run_processes
    from accord.http.server.cluster import OpenSession as OpenSession
    from accord.store.postgres_connection import is_postgres as is_postgres

_HOMES = {
    "host_operator": "OpenSession Operator operator",
    "host_table": "HostRow",
    "hosts": "is_postgres listed_hosts",
    "server_processes": "run_processes",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
