"""A connection works through every host, whichever one each of its requests reaches."""

import asyncio
from contextlib import AsyncExitStack

from accord import v1
from tests.hosts.hosting import HostProcesses, editor_on
from tests.http.talking import Editor, transport_to
from tests.waiting import DEADLINE

COUNT = "".join(f"{number} " for number in range(300))


async def test_a_turn_is_whole_and_in_order_through_all_hosts(hosts):
    async with editor_on(hosts.url) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "count 300")
        assert editor.text(session) == COUNT
        await editor.prompt(session, "ask")
        assert editor.text(session) == COUNT + "allowed"
    assert all(hosts.balancer.taken.values())


async def test_many_connections_are_opened_on_all_hosts(hosts):
    async with AsyncExitStack() as stack:
        editors = [await stack.enter_async_context(editor_on(hosts.all[0].url)) for _ in range(12)]
        answered = set()
        for editor in editors:
            session = await editor.open_session()
            await editor.prompt(session, "who")
            answered.add(editor.text(session))
    assert answered == {str(host.process.pid) for host in hosts.all}


async def test_a_session_is_loaded_on_another_host(hosts):
    async with editor_on(hosts.all[0].url) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "remember this")
    async with editor_on(hosts.all[1].url) as editor:
        await editor.request(v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)
        assert editor.text(session) == "remember this"


async def test_a_websocket_is_served_where_it_arrives(hosts):
    async with editor_on(hosts.url, "websocket") as editor:
        session = await editor.open_session()
        await editor.prompt(session, "count 300")
        assert editor.text(session) == COUNT


async def test_a_host_that_only_forwards_serves_a_websocket_on_another(hosts):
    front = await hosts.add(weight=0)
    await hosts.know_each_other()
    for way in ("websocket", "http1"):
        async with editor_on(front.url, way) as editor:
            session = await editor.open_session()
            await editor.prompt(session, "who")
            assert editor.text(session) in {str(host.process.pid) for host in hosts.all[:3]}


async def test_a_connection_of_an_unknown_host_is_refused(hosts):
    headers = [("acp-connection-id", "aaaaaaaaaa.unknown"), ("accept", "text/event-stream")]
    assert await hosts.all[0].ask("GET", headers) == (404, "no such connection")


async def test_a_client_cannot_pretend_to_be_a_host(hosts):
    headers = [("accord-hop", "v1 a b 1 - - -"), ("accept", "text/event-stream"), ("acp-connection-id", "a.b")]
    status, text = await hosts.all[0].ask("GET", headers)
    assert (status, "peer port" in text) == (400, True)


async def test_a_forwarded_request_keeps_its_owner(directory):
    tokens = {"a-token": "ada", "b-token": "bob"}
    async with HostProcesses({**directory, "tokens": tokens}, 0) as hosts:
        one, two = await hosts.add(), await hosts.add()
        ada = [("authorization", "Bearer a-token")]
        bob = [("authorization", "Bearer b-token")]

        async def status_of(who, connection):
            asked = [*who, ("acp-connection-id", connection), ("accept", "application/json")]
            return (await two.ask("DELETE", asked))[0]

        async with Editor(transport_to(one.url, "http1", headers=dict(ada))) as editor:
            answer = await editor.request_raw("initialize", {"protocolVersion": 1}, timeout=DEADLINE)
            connection = answer["connectionId"]
            async with asyncio.timeout(DEADLINE):
                # 503 until the two know each other
                while await status_of(bob, connection) != 404:  # noqa: ASYNC110 - the processes have no event for us
                    await asyncio.sleep(0.02)
            assert await status_of([], connection) == 401
            assert await status_of(ada, connection) == 202
