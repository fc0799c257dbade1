"""The server on uvloop, whose transports are not asyncio's: every transport, with and without TLS."""

import asyncio
import logging
import socket
import ssl
import struct
from urllib.parse import urlsplit

import pytest

from accord.http import connect_transport, serving
from tests.http.talking import WAYS, an_agent, editor_of, transport_to
from tests.http.test_network_proxy import a_proxy, place_of

uvloop = pytest.importorskip("uvloop", reason="this test runs on uvloop, which is not for this platform")

COUNTED = "".join(f"{number} " for number in range(200))


def run(main):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


@pytest.mark.parametrize("way", WAYS)
def test_prompts_are_answered_and_the_server_ends_in_order(way):
    async def main():
        async with serving(an_agent()) as server:
            for _ in range(2):
                async with editor_of(transport_to(server.url, way)) as editor:
                    session = await editor.open_session()
                    await editor.prompt(session, "count 200")
                    assert editor.text(session) == COUNTED
            left = editor_of(transport_to(server.url, way))
            await left.__aenter__()
        await left.__aexit__(None, None, None)

    run(main())


@pytest.mark.parametrize("scheme", ["https", "wss"])
def test_a_prompt_over_tls(certificate, scheme):
    async def main():
        async with serving(an_agent(), certificate=certificate[0], key=certificate[1]) as server:
            trusting = ssl.create_default_context(cafile=certificate[0])
            async with editor_of(connect_transport(server.url.replace("https", scheme, 1), tls=trusting)) as editor:
                session = await editor.open_session()
                await editor.prompt(session, "count 200")
                assert editor.text(session) == COUNTED

    run(main())


def test_responses_to_a_client_that_has_left_log_no_errors(caplog):
    async def main():
        async with serving(an_agent()) as server:
            where = urlsplit(server.url)
            for _ in range(30):
                leaving = socket.create_connection((where.hostname, where.port))
                leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                leaving.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
                await asyncio.sleep(0)
                leaving.close()
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            writer.close()

    run(main())
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_tls_goes_through_tls_to_a_proxy(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))

    async def main():
        async with (
            serving(an_agent(), certificate=certificate[0], key=certificate[1]) as server,
            a_proxy(place_of(server), certificate=certificate) as (_, place),
            editor_of(connect_transport(server.url, proxy=f"https://{place}")) as editor,
        ):
            session = await editor.open_session()
            await editor.prompt(session, "count 200")
            assert editor.text(session) == COUNTED

    run(main())
