"""One of several processes on one store: `sharing_process.py STORE NAME COUNT`, with a file or a database.

It fills a session of its own, and takes its turns at one that all want to have. What was kept for certain is printed.
"""

import asyncio
import json
import sys

from accord import PostgresStore, SqliteStore, StoreError
from accord.store import StoredSession
from accord.store.postgres_connection import is_postgres


async def unless(reason, asked):
    """Whether it was done; the only other thing that may happen is this."""
    try:
        await asked
    except StoreError as error:
        if error.reason == reason:
            return False
        raise
    return True


async def main(where, name, count):
    kept = []
    async with PostgresStore(where, schema="shared") if is_postgres(where) else SqliteStore(where) as store:
        mine = await store.create(StoredSession(id=name, cwd="/"))
        await unless("exists", store.create(StoredSession(id="shared", cwd="/")))
        shared = None
        for number in range(count):
            update = json.dumps([name, number]).encode()
            await asyncio.gather(store.write(mine, [update]), store.find(name))
            if shared is None:
                shared = await store.take("shared")
            if await unless("taken", store.write(shared, [update])):
                kept.append(number)
            else:
                shared = None
    print(json.dumps(kept))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
