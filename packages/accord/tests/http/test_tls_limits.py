"""The limits of TLS connections, which count from the moment they are accepted."""

import asyncio
import gc
import shutil
import socket
import ssl
import tracemalloc
from contextlib import asynccontextmanager

import pytest

from accord.http import ServerLimits, connect_transport, serving
from tests.http.talking import an_agent, editor_of
from tests.waiting import DEADLINE

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="this test makes a certificate: install openssl"
)

HELLO = b"\x16\x03\x01\x02\x00\x01"
"""The beginning of a ClientHello."""


def address(server):
    host, _, port = server.url.removeprefix("https://").removesuffix("/acp").partition(":")
    return host, int(port)


@asynccontextmanager
async def tls_server(certificate, **limits):
    async with serving(
        an_agent(), certificate=certificate[0], key=certificate[1], limits=ServerLimits(**limits)
    ) as server:
        yield server, ssl.create_default_context(cafile=certificate[0])


async def silent(server, count, begin=b""):
    """TCP connections that send this and nothing more."""
    found = [await asyncio.open_connection(*address(server)) for _ in range(count)]
    for _, writer in found:
        writer.write(begin)
    return found


async def closed(reader):
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


async def a_prompt(server, trusting):
    async with editor_of(connect_transport(server.url, tls=trusting, http2=False)) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "hello")
        assert editor.text(session) == "hello "


@pytest.mark.parametrize("begin", [b"", HELLO], ids=["nothing", "a part of the handshake"])
async def test_pending_tls_connections_count_and_give_way_to_new_clients(certificate, begin):
    async with tls_server(certificate, sockets=10, handshake=600.0) as (server, trusting):
        idle = await silent(server, 30, begin)
        async with asyncio.timeout(DEADLINE):
            for reader, _ in idle[:20]:  # the oldest were closed, so that ten are left
                assert await closed(reader)
            assert not any(reader.at_eof() for reader, _ in idle[20:])
            await a_prompt(server, trusting)
            assert await closed(idle[20][0])
            assert not idle[-1][0].at_eof()
        for _, writer in idle:
            writer.close()


async def test_tls_connections_after_their_handshake_do_not_give_way(certificate):
    async with tls_server(certificate, sockets=1, handshake=600.0) as (server, trusting):
        reader, writer = await asyncio.open_connection(*address(server), ssl=trusting)
        [(late, late_writer)] = await silent(server, 1)
        async with asyncio.timeout(DEADLINE):
            assert await closed(late)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.close()
        late_writer.close()


@pytest.mark.parametrize("begin", [b"", HELLO], ids=["nothing", "a part of the handshake"])
async def test_a_tls_connection_without_a_handshake_is_closed(certificate, begin):
    async with tls_server(certificate, handshake=0.2) as (server, _):
        idle = await silent(server, 3, begin)
        async with asyncio.timeout(DEADLINE):
            for reader, writer in idle:
                assert await closed(reader)
                writer.close()


async def test_a_server_ends_although_handshakes_are_pending(certificate):
    async with tls_server(certificate, handshake=600.0) as (server, _):
        idle = [*await silent(server, 2), *await silent(server, 2, HELLO)]
    async with asyncio.timeout(DEADLINE):
        for reader, writer in idle:
            assert await closed(reader)
            writer.close()


def tls_objects():
    gc.collect()
    return sum(isinstance(it, ssl.SSLObject) for it in gc.get_objects())


async def test_a_tls_connection_has_no_tls_object_until_its_first_byte(certificate):
    async with tls_server(certificate) as (server, trusting):
        idle = await silent(server, 20)
        before = tls_objects()
        await a_prompt(server, trusting)  # accepted after the idle ones
        assert tls_objects() - before <= 2
        for _, writer in idle:
            writer.close()


def opened(server, trusting):
    """A TLS connection that has no buffer of asyncio's at this end."""
    connection = trusting.wrap_socket(socket.create_connection(address(server)), server_hostname="127.0.0.1")
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


async def test_an_open_tls_connection_keeps_no_large_buffer(certificate):
    async with tls_server(certificate) as (server, trusting):
        (await asyncio.to_thread(opened, server, trusting)).close()
        tracemalloc.start()
        try:
            connections = [await asyncio.to_thread(opened, server, trusting) for _ in range(10)]
            each = tracemalloc.get_traced_memory()[0] / len(connections)
        finally:
            tracemalloc.stop()
        for connection in connections:
            connection.close()
        assert each < 100 * 1024


def test_idle_tls_connections_give_way_on_uvloop(certificate):
    uvloop = pytest.importorskip("uvloop", reason="this test runs on uvloop, which is not for this platform")

    async def main():
        async with tls_server(certificate, sockets=10, handshake=600.0) as (server, trusting):
            idle = [*await silent(server, 10), *await silent(server, 10, HELLO)]
            async with asyncio.timeout(DEADLINE):
                for reader, _ in idle[:10]:
                    assert await closed(reader)
                await a_prompt(server, trusting)
                assert await closed(idle[10][0])
            for _, writer in idle:
                writer.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
