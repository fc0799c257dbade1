"""A host that cannot reach the database goes on forwarding, and an outage of the database ends no host."""

import asyncio

from tests.hosts.hosting import KEY, HostProcesses, editor_on
from tests.store.postgres_server import Relay
from tests.waiting import DEADLINE


async def test_a_host_that_is_cut_off_from_the_database_forwards_as_before(postgres, schema):
    settings = {"directory": postgres.url, "store": postgres.url, "schema": schema, "key": KEY, "lease": 4.0}
    async with Relay(postgres) as relay, HostProcesses(settings, 1) as hosts:
        cut_off = await hosts.add(directory=relay.url, weight=0)
        await hosts.know_each_other()
        async with editor_on(cut_off.url) as editor:
            session = await editor.open_session()
            await editor.prompt(session, "count 5")
            await relay.__aexit__()
            # It cannot beat, so the other one declares it dead. What passes through it goes on.
            await hosts.answered(hosts.all[0], cut_off, 404, "the host of this connection has ended")
            await editor.prompt(session, "count 3")
            assert editor.text(session) == "0 1 2 3 4 0 1 2 "


async def test_an_outage_of_the_database_ends_no_host(postgres, schema):
    settings = {"directory": postgres.url, "store": postgres.url, "schema": schema, "key": KEY, "lease": 4.0}
    async with HostProcesses(settings, 2) as hosts, editor_on(hosts.url) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "count 2")
        postgres.freeze()
        try:
            for host in hosts.all:
                await host.said("cannot beat", times=3)  # each takes half a lease
        finally:
            postgres.thaw()
        for host in hosts.all:
            for other in hosts.all:
                await hosts.answered(host, other, 404, "no such connection")
        async with asyncio.timeout(DEADLINE):
            await editor.prompt(session, "count 1")
        assert editor.text(session) == "0 1 0 "
