"""What servers and clients do without the package of the extra `http2`."""

import asyncio
import ssl
import sys
from urllib.parse import urlsplit

import pytest

import accord
from accord.http import HttpTransport, serving
from accord.http.server.http1_server import PREFACE
from accord.installation import install_command
from tests.http.talking import an_agent, editor_of, transport_to
from tests.waiting import DEADLINE


@pytest.fixture(autouse=True)
def without_hpack(monkeypatch):
    monkeypatch.setitem(sys.modules, "hpack", None)


def address_of(server):
    url = urlsplit(server.url)
    return url.hostname, url.port


async def test_an_editor_works_over_http1(server):
    async with editor_of(transport_to(server.url, "http1")) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "hello")
        assert editor.text(session)


async def test_a_client_that_begins_with_http2_is_told_what_the_server_lacks(server):
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection(*address_of(server))
        for byte in PREFACE:
            writer.write(bytes([byte]))
            await writer.drain()
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 505 ")
    assert answer.endswith(b"this server does not speak HTTP/2: it lacks the extra 'http2'")


async def test_tls_agrees_on_http1(certificate):
    file, key = certificate
    async with serving(an_agent(), certificate=file, key=key) as server:
        trusting = ssl.create_default_context(cafile=str(file))
        trusting.set_alpn_protocols(["h2", "http/1.1"])
        async with asyncio.timeout(DEADLINE):
            _, writer = await asyncio.open_connection(*address_of(server), ssl=trusting)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        writer.close()
        transport = HttpTransport(server.url, tls=ssl.create_default_context(cafile=str(file)))
        async with editor_of(transport) as editor:
            assert await editor.open_session()


def test_asking_for_http2_names_the_extra():
    with pytest.raises(accord.AccordError) as error:
        HttpTransport("http://127.0.0.1:1/acp", http2=True)
    assert str(error.value) == f"HTTP/2 needs the extra 'http2': {install_command('http2')}"
