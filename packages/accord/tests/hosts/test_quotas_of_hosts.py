"""What each owner may use of a service of several processes."""

import asyncio

import pytest

import accord
from accord.http import Quotas, serving
from tests.hosts.hosting import KEY, HostProcesses, editor_on, post
from tests.http.talking import an_agent
from tests.store.postgres_server import Relay
from tests.waiting import DEADLINE


async def test_connections_are_counted_over_all_hosts(directory):
    async with HostProcesses({**directory, "quotas": {"connections": 2}}, 2) as hosts:
        one, two = hosts.all
        async with editor_on(one.url), editor_on(two.url):
            for host in hosts.all:
                status, headers, text = await post(host.url)
                assert status == 429
                assert "as many open connections as its quota allows (2)" in text
                assert int(headers["retry-after"]) > 0
        async with asyncio.timeout(DEADLINE):
            while (await post(one.url))[0] != 200:  # noqa: ASYNC110 - the processes have no event for us
                await asyncio.sleep(0.02)


async def test_turns_are_counted_over_all_hosts(directory):
    async with HostProcesses({**directory, "quotas": {"turns": 1}}, 2) as hosts:
        one, two = hosts.all
        async with editor_on(one.url) as first, editor_on(two.url) as second:
            running = asyncio.create_task(first.prompt(await first.open_session(), "wait"))
            session = await second.open_session()
            async with asyncio.timeout(DEADLINE):
                await first.first_words.wait()
            with pytest.raises(accord.PeerError, match="running turns"):
                await second.prompt(session, "hello")
        with pytest.raises(accord.ConnectionClosed):
            await running


async def test_no_connection_is_admitted_while_the_directory_is_away(postgres, schema):
    async with Relay(postgres) as relay:
        hosts = accord.Hosts(relay.url, key=KEY, schema=schema, lease=60)
        async with serving(an_agent(), hosts=hosts, quotas=Quotas(connections=5, posts=1000)) as server:
            assert (await post(server.url))[0] == 200
            await relay.__aexit__()
            status, _, text = await post(server.url)
            assert (status, "cannot be counted now" in text) == (503, True)
