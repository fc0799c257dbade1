"""One host as a process: `python -m tests.hosts.host_process SETTINGS`, with the settings as JSON.

It prints its URL and its id. The agent repeats the number of its process, counts, waits and asks. With the path of a
store as settings, it is that agent over standard input and output.
"""

import asyncio
import json
import os
import sys

import accord
from accord.store.postgres_connection import is_postgres
from accord.store.postgres_store import PostgresStore


def an_agent(store):
    agent = accord.Agent("host", store=store)

    @agent.on_prompt
    async def answer(turn):
        match turn.text.split():
            case ["who"]:
                await turn.say(str(os.getpid()))
            case ["count", number]:
                for each in range(int(number)):
                    await turn.say(f"{each} ")
            case ["slowly", number]:
                for each in range(int(number)):
                    await turn.say(f"{each} ")
                    await asyncio.sleep(0.01)
            case ["wait"]:
                await turn.say("waiting")
                await asyncio.Event().wait()
            case ["ask"]:
                async with turn.tool("Ask", kind="edit") as tool:
                    decision = await tool.ask()
                await turn.say("allowed" if decision.allowed else "refused")
            case words:
                await turn.say(" ".join(words))

    return agent


async def main(
    directory,
    store,
    schema="accord",
    key=None,
    weight=1.0,
    lease=30.0,
    tokens=None,
    observers=None,
    quotas=None,
    shared=False,
    tls=None,
    connections=10_000,
):
    def ready(server):
        print(server.url, server.app.cluster.id, flush=True)

    kept = PostgresStore(store, schema=schema) if is_postgres(store) else store
    hosts = accord.Hosts(directory, key=key, schema=schema, weight=weight, lease=lease, **(tls or {}))
    watching = {token: accord.http.Observer(owner) for token, owner in (observers or {}).items()}
    access = accord.http.Access({**tokens, **watching}) if tokens else None
    quota = accord.http.Quotas(**quotas) if quotas else None
    served = accord.http.SharedHost(an_agent(kept)) if shared else an_agent(kept)
    limits = accord.http.ServerLimits(connections=connections)
    await accord.http.serve(
        served, port=0, hosts=hosts, access=access, quotas=quota, limits=limits, grace=60, on_ready=ready
    )


if __name__ == "__main__":
    if sys.argv[1].startswith("{"):
        asyncio.run(main(**json.loads(sys.argv[1])))
    else:
        an_agent(sys.argv[1]).run()
