"""The server of a load run: an agent that counts, for as long as this process is not told to end.

    python -m benchmarks.load.server                                a single server; prints its URL
    python -m benchmarks.load.server DIRECTORY STORE LEASE WEIGHT   one host of several; prints its URL and its id

`count N PACE` is answered with N numbered messages, PACE seconds apart; `taken` with the number of prompts that the
session has taken before; everything else at once.
"""

import asyncio
import secrets
import sys
from collections import Counter

import accord
from accord.http.server.serve import Server
from accord.http.server.server_limits import ServerLimits
from accord.store.postgres_connection import is_postgres
from benchmarks.contract import parse

KEY = "hosts that share nothing else but one machine"
"""Signs what the hosts forward, if their directory is in PostgreSQL. The run has no other clients."""

taken: Counter[str] = Counter()


async def answer(turn: accord.Turn) -> None:
    command = parse(turn.text)
    if command.verb == "count":
        pace = float(command.words[1])
        for number in range(command.number(0)):
            await turn.say(f"{number} ")
            if pace:
                await asyncio.sleep(pace)
    elif command.verb == "taken":
        before, taken[turn.session.id] = taken[turn.session.id], taken[turn.session.id] + 1
        await turn.say(f"{before} ")


def say_where(server: Server) -> None:
    print(server.url, flush=True)


async def single() -> None:
    agent = accord.Agent("load")
    agent.on_prompt(answer)
    await accord.http.serve(agent, port=0, on_ready=say_where)


async def one_host(directory: str, store: str, lease: float, weight: float) -> None:
    hosts = accord.Hosts(
        directory, key=KEY if is_postgres(directory) else None, lease=lease, weight=weight, name=secrets.token_hex(4)
    )

    def say_where_and_who(server: Server) -> None:
        print(server.url, getattr(server.app.cluster, "id", ""), flush=True)

    agent = accord.Agent("load", store=store or None)
    agent.on_prompt(answer)
    limits = ServerLimits(sockets=100_000, connections=100_000)
    await accord.http.serve(agent, port=0, hosts=hosts, limits=limits, on_ready=say_where_and_who)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        asyncio.run(single())
    else:
        asyncio.run(one_host(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
