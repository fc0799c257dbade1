"""Connecting to a server that accepts a connection and sends nothing."""

import asyncio

import pytest

import accord
from accord.http import HttpTransport
from accord.testing import ScriptedPeer
from accord.transports.websocket_client import WebSocketTransport
from tests.http.processes import accord_once
from tests.waiting import DEADLINE


@pytest.fixture
async def silent():
    """The port of a server that answers nothing."""
    over = asyncio.Event()

    async def listen(_, writer):
        await over.wait()
        writer.transport.abort()

    listening = await asyncio.start_server(listen, "127.0.0.1", 0)
    yield listening.sockets[0].getsockname()[1]
    over.set()
    listening.close()


@pytest.mark.parametrize("scheme", ["ws", "http", "wss", "https"])
async def test_the_deadline_of_connect_covers_the_handshake(silent, scheme):
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(accord.Timeout, match=r"within 0\.3 seconds"):
            async with accord.connect(f"{scheme}://127.0.0.1:{silent}/acp", timeout=0.3):
                pass


async def test_closing_before_initialize_is_answered_does_not_wait_for_the_answer(silent):
    grace = 100 * DEADLINE
    transport = HttpTransport(f"http://127.0.0.1:{silent}/acp")
    async with asyncio.timeout(DEADLINE), ScriptedPeer(transport, deadline=DEADLINE) as script:
        script.call("initialize", {"protocolVersion": 1})
        assert transport.unsent > 0
        end = await transport.close(grace)
    assert end.reason == "closed"


async def test_the_deadline_of_accord_run_covers_the_handshake(silent):
    arguments = ("run", "--timeout", "1", "hello", "--", f"ws://127.0.0.1:{silent}/acp")
    async with asyncio.timeout(2 * DEADLINE):
        done = await asyncio.to_thread(accord_once, *arguments)
    assert done.returncode == 3
    assert "--timeout 1" in done.stderr


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_secrets_in_a_url_are_masked_in_errors(scheme):
    with pytest.raises(accord.AccordError) as refused:
        async with accord.connect(f"{scheme}://ada:pa55word@127.0.0.1:1/acp?token=s3cret"):
            pass
    assert "127.0.0.1:1" in str(refused.value)
    assert "pa55word" not in str(refused.value)
    assert "s3cret" not in str(refused.value)


async def test_an_empty_token_is_not_sent():
    with pytest.raises(accord.AccordError, match="'token' is empty"):
        async with accord.connect("http://127.0.0.1:1/acp", token=" "):
            pass


@pytest.mark.parametrize("scheme", ["ws", "http"])
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"headers": {"X-Team": "blue\r\nX-Admin: 1"}}, "the value of X-Team in 'headers' contains a line break"),
        ({"headers": {"X-Team": "blue\0"}}, "the value of X-Team in 'headers' contains a line break"),
        ({"headers": {"X-Team:": "blue"}}, "'headers' has the name 'X-Team:'"),
        ({"headers": {"": "blue"}}, "'headers' has the name ''"),
        ({"headers": {"X Team": "blue"}}, "'headers' has the name 'X Team'"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "'headers' must not contain Transfer-Encoding"),
        ({"headers": {"host": "elsewhere"}}, "'headers' must not contain host"),
        ({"headers": {"Sec-WebSocket-Key": "x"}}, "'headers' must not contain Sec-WebSocket-Key"),
        ({"token": "s3cret\nX-Admin: 1"}, "'token' contains a line break"),
    ],
)
def test_wrong_headers_are_refused_where_they_are_given(scheme, given, problem):
    with pytest.raises(accord.AccordError) as refused:
        accord.http.UrlTarget(f"{scheme}://127.0.0.1:1/acp", **given)
    assert str(refused.value).startswith(problem)
    assert "blue" not in str(refused.value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("transport", [HttpTransport, WebSocketTransport])
def test_a_transport_of_ones_own_refuses_wrong_headers_too(transport):
    with pytest.raises(accord.AccordError, match="the value of X-Team in 'headers' contains a line break"):
        transport("http://127.0.0.1:1/acp", headers={"X-Team": "blue\r\nX-Admin: 1"})


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_a_404_names_the_path_that_was_asked_for_and_the_usual_one(server, scheme):
    url = server.url.replace("http", scheme, 1).replace("/acp", "/agents/mine")
    with pytest.raises(accord.ConnectionClosed) as raised:
        async with accord.connect(url):
            pass
    hint = "(no agent is served at the path /agents/mine; agents are usually served at /acp)"
    assert "the server answered 404" in str(raised.value)
    assert str(raised.value).endswith(hint)


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_a_redirect_says_to_give_the_url_of_the_agent(scheme):
    async def redirect(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 307 Elsewhere\r\nLocation: /agents/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(redirect, "127.0.0.1", 0) as server, asyncio.timeout(DEADLINE):
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(accord.ConnectionClosed) as raised:
            async with accord.connect(f"{scheme}://127.0.0.1:{port}/agents"):
                pass
    hint = "(redirects are not followed, so give the agent's own URL; agents are usually served at /acp)"
    assert str(raised.value).endswith(f"the server answered 307 {hint}")
