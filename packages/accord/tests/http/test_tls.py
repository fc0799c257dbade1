"""TLS: HTTP/2 is negotiated, and an untrusted certificate is refused."""

import asyncio
import shutil
import ssl
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

import accord
from accord.http import connect_transport, serving
from accord.http.client.client_socket import ClientSocket
from tests.http.talking import an_agent, editor_of
from tests.waiting import DEADLINE

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="this test makes a certificate: install openssl"
)


@pytest.mark.parametrize("scheme", ["https", "wss"])
@pytest.mark.parametrize("http2", [None, False])
async def test_a_prompt_over_tls(certificate, scheme, http2):
    if scheme == "wss" and http2 is not None:
        pytest.skip("a WebSocket is HTTP/1.1")
    options = {} if scheme == "wss" else {"http2": http2}
    async with serving(an_agent(), certificate=certificate[0], key=certificate[1]) as server:
        trusting = ssl.create_default_context(cafile=certificate[0])
        transport = connect_transport(server.url.replace("https", scheme, 1), tls=trusting, **options)
        async with editor_of(transport) as editor:
            session = await editor.open_session()
            await editor.prompt(session, "count 100")
            assert editor.text(session) == "".join(f"{number} " for number in range(100))
            if scheme == "https":
                assert transport._requests.is_multiplexed == (http2 is None)


async def test_a_socket_with_tls_may_be_closed_more_than_once(certificate):
    async with serving(an_agent(), certificate=certificate[0], key=certificate[1]) as server:
        address = urlsplit(server.url)
        trusting = ssl.create_default_context(cafile=certificate[0])
        opened = await ClientSocket.open(address.hostname, address.port, trusting, DEADLINE)
        for _ in range(3):
            opened.close()
        await opened.wait_closed()
        assert not opened.is_open


@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_an_untrusted_certificate_is_one_clear_error(certificate, scheme):
    async with serving(an_agent(), certificate=certificate[0], key=certificate[1]) as server:
        with pytest.raises(accord.ConnectionClosed, match="certificate"):
            async with editor_of(connect_transport(server.url.replace("https", scheme, 1))):
                pass


# TLS on one side only


NO_TLS_THERE = "does not speak TLS; for a server without TLS, the URL begins with http:// or ws://"


async def refusal(url):
    """What a client says of this URL."""
    with pytest.raises(accord.ConnectionClosed) as raised:
        async with accord.connect(url, timeout=1000.0):
            pass
    return str(raised.value)


@asynccontextmanager
async def answering(reply):
    """A server that answers the first bytes with these and closes; gives its host and port."""

    async def answer(reader, writer):
        await reader.read(1000)
        writer.write(reply)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_a_client_with_tls_is_told_at_once_that_our_server_has_none(scheme):
    async with serving(an_agent()) as server:
        assert NO_TLS_THERE in await refusal(server.url.replace("http", scheme, 1))


@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_a_client_with_tls_understands_a_plain_refusal(scheme):
    async with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        assert NO_TLS_THERE in await refusal(f"{scheme}://{address}/acp")


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_client_without_tls_is_told_at_once_what_to_try(certificate, scheme):
    async with serving(an_agent(), certificate=certificate[0], key=certificate[1]) as server:
        said = await refusal(server.url.replace("https", scheme, 1))
    assert "closed the connection before it answered" in said
    assert "speaks TLS, the URL must begin with https:// or wss://" in said


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_client_without_tls_understands_a_tls_alert(scheme):
    async with answering(b"\x15\x03\x01\x00\x02\x02\x46") as address:
        assert "; it speaks TLS; the URL must begin with https:// or wss://" in await refusal(f"{scheme}://{address}/")
