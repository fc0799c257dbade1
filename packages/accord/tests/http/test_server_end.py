"""The end of a server: prompts are finished, clients are told, and the wait is bounded."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from websockets.asyncio.client import connect

import accord
from accord.http import serving
from accord.http.client.connection_pool import ConnectionPool
from tests.http.processes import serving_process
from tests.http.talking import an_agent, editor_of, transport_to
from tests.waiting import DEADLINE

INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'

LASTING = """
import asyncio, accord
agent = accord.Agent("lasting")
@agent.on_prompt
async def wait(turn):
    await turn.say("waiting")
    await asyncio.Event().wait()
agent.run()
"""


def an_agent_that_waits(until):
    agent = accord.Agent("patient")

    @agent.on_prompt
    async def wait(turn):
        await turn.say("waiting")
        await until.wait()
        await turn.say(", done")

    return agent


async def status_of(url, method="GET", headers=(), body=b""):
    requests = ConnectionPool(url)
    try:
        async with asyncio.timeout(DEADLINE):
            response = await requests.request(method, list(headers), body)
            await response.body(10_000)
        return response.status
    finally:
        await requests.close()


async def test_prompts_are_answered_before_the_server_ends_and_new_clients_are_refused(way):
    done = asyncio.Event()
    async with serving(an_agent_that_waits(done)) as server:
        idle_one = editor_of(transport_to(server.url, way))
        async with editor_of(transport_to(server.url, way)) as busy, idle_one as idle:
            session = await busy.open_session()
            turn = asyncio.create_task(busy.prompt(session, "wait"))
            await busy.first_words.wait()
            closing = asyncio.create_task(server.app.close(grace=DEADLINE))
            assert (await idle.connection.closed()).reason in ("peer_closed", "broken")
            for probe in ("/healthz", "/readyz"):
                assert await status_of(server.url.replace("/acp", probe)) == 503
            options = {} if way == "websocket" else {"reconnect_within": 0}
            with pytest.raises(accord.ConnectionClosed, match="503"):
                async with editor_of(transport_to(server.url, way, **options)):
                    pass
            assert not turn.done()
            done.set()
            assert (await turn).stop_reason == "end_turn"
            assert busy.text(session) == "waiting, done"
            assert (await busy.connection.closed()).reason in ("peer_closed", "broken")
            await closing


async def test_prompts_are_ended_after_the_grace_period(way):
    async with serving(an_agent()) as server, editor_of(transport_to(server.url, way)) as editor:
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, "wait"))
        await editor.first_words.wait()
        await server.app.close(grace=0.1)
        with pytest.raises(accord.ConnectionClosed):
            await turn


async def test_websockets_are_closed_with_1001_when_the_server_ends():
    async with serving(an_agent()) as server, connect(server.url.replace("http", "ws", 1)) as socket:
        await server.app.close()
        await asyncio.wait_for(socket.wait_closed(), DEADLINE)
        assert socket.close_code == 1001


@pytest.mark.parametrize("http2", [False, True])
async def test_event_streams_are_completed_when_the_server_ends(http2):
    async with serving(an_agent()) as server:
        requests = ConnectionPool(server.url, http2=http2)
        opened = await requests.request("POST", [("content-type", "application/json")], INITIALIZE)
        await opened.body(10_000)
        connection = ("acp-connection-id", opened.header("acp-connection-id"))
        stream = await requests.request("GET", [("accept", "text/event-stream"), connection])
        async with asyncio.timeout(DEADLINE):
            assert await anext(stream.chunks) == b":\n\n"
            await server.app.close()
            assert await stream.body(10_000) == b""  # raises, were it cut
        await requests.close()


async def test_a_server_with_open_streams_ends_and_leaves_no_tasks(way):
    """Nothing is left, whichever Python this is: the fixture looks at the tasks."""
    for _ in range(3):
        async with serving(an_agent()) as server:
            transports = [transport_to(server.url, way) for _ in range(5)]
            peers = [editor_of(transport) for transport in transports]
            editors = [await peer.__aenter__() for peer in peers]
            for editor in editors:
                await editor.open_session()
            async with asyncio.timeout(DEADLINE):
                await server.app.close()
        for peer in peers:
            await peer.__aexit__(None, None, None)
        assert server.app.connections == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_second_signal_ends_the_wait_for_prompts(number):
    arguments = ("--grace", "3600", "--", sys.executable, "-c", LASTING)
    async with (
        serving_process(*arguments, stderr=subprocess.DEVNULL) as (process, url),
        editor_of(transport_to(url, "http1")) as editor,
    ):
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, "wait"))
        await editor.first_words.wait()
        process.send_signal(number)
        async with asyncio.timeout(DEADLINE):
            while await status_of(url.replace("/acp", "/healthz")) != 503:
                pass
        assert process.returncode is None
        assert not turn.done()
        process.send_signal(number)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 0
        with pytest.raises(accord.ConnectionClosed):
            await turn


async def test_a_killed_server_ends_its_agents_and_its_clients_notice(way):
    options = {} if way == "websocket" else {"reconnect_within": 0}
    async with (
        serving_process(stderr=subprocess.DEVNULL) as (process, url),
        editor_of(transport_to(url, way, **options)) as editor,
    ):
        await editor.open_session()
        os.kill(process.pid, signal.SIGKILL)  # asyncio is to see it end, and no Popen before it
        assert (await editor.connection.closed()).reason in ("peer_closed", "broken")
        await process.wait()


async def answer_of(server, path="/readyz"):
    requests = ConnectionPool(server.url.replace("/acp", path))
    try:
        async with asyncio.timeout(DEADLINE):
            response = await requests.request("GET", [])
            return response.status, (await response.body(10_000)).decode()
    finally:
        await requests.close()


async def ready(server, status, text):
    """Wait until the server says so of its readiness."""
    async with asyncio.timeout(DEADLINE):
        while (await answer_of(server)) != (status, text):  # noqa: ASYNC110 - the server has no event for us
            await asyncio.sleep(0.02)


async def test_a_server_is_ready_while_its_store_answers(tmp_path, caplog):
    folder = tmp_path / "volume"
    folder.touch()
    agent = accord.Agent("stored", store=folder / "sessions.sqlite3")
    wrong = "the session store does not answer; the server's log says why"
    async with serving(accord.http.SharedHost(agent)) as server:
        await asyncio.gather(*(ready(server, 503, wrong) for _ in range(5)))
        assert str(folder) in caplog.text
        assert await answer_of(server, "/healthz") == (200, "ok")
        folder.unlink()
        await ready(server, 200, "ok")
    assert caplog.text.count("not ready") == 1


async def test_a_server_of_a_chain_is_ready():
    async with serving(accord.chain(accord.Agent("the end of it"))) as server:
        await ready(server, 200, "ok")


async def test_the_store_of_a_served_command_is_asked_at_its_url():
    command = accord.http.CommandHost(["true"], env={"ACCORD_STORE": "postgresql://127.0.0.1:1/accord"})
    async with serving(command) as server:
        await ready(server, 503, "the session store does not answer; the server's log says why")


async def test_a_host_is_ready_while_it_reaches_the_directory_of_hosts(tmp_path):
    directory = tmp_path / "hosts.sqlite3"
    async with serving(an_agent(), hosts=accord.Hosts(directory, lease=0.5)) as server:
        await ready(server, 200, "ok")
        with closing(sqlite3.connect(directory, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            await ready(server, 503, "this host cannot reach the directory of hosts")
            assert await answer_of(server, "/healthz") == (200, "ok")
        await ready(server, 200, "ok")
