"""Many hosts, one service: who is alive, and the forwarding of requests to the host with the agent (extra `http`).

    await accord.http.serve(agent, hosts=accord.Hosts("postgresql://db/accord", peer="10.0.3.7:8100", key=key))

A connection lives on the host that opened it. Its id names that host, and every other host forwards to it. `host_table`
is the table of hosts, kept in PostgreSQL or in a SQLite file. A single server imports nothing of this package.
"""

from __future__ import annotations
