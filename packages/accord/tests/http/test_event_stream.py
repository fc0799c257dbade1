"""Broken streams are resumed; one that cannot be ends the connection with the reason."""

import asyncio

import pytest

import accord
from accord import v1
from accord.http import App, HttpTransport, serving
from accord.http.server.streams import Streams
from accord.transports import End
from tests.http.talking import an_agent, editor_of, transport_to
from tests.waiting import DEADLINE


async def cut(server):
    """Break all streams that are open, without a word."""
    (link,) = server.app._links.values()
    for reader in list(link._readers.values()):
        reader.leave()
    return link


@pytest.mark.parametrize("http2", [False, True])
async def test_streams_that_broke_deliver_everything_once_and_in_order(http2):
    async with serving(an_agent()) as server, editor_of(HttpTransport(server.url, http2=http2)) as editor:
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, "count 2000"))
        for _ in range(4):
            await editor.first_words.wait()
            await cut(server)
            editor.first_words.clear()
        assert (await turn).stop_reason == "end_turn"
        assert editor.text(session) == "".join(f"{number} " for number in range(2000))


async def test_messages_sent_while_no_stream_was_open_arrive_later():
    async with serving(an_agent()) as server, editor_of(HttpTransport(server.url)) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "before")
        await cut(server)
        await editor.prompt(session, "after")
        assert editor.text(session) == "before after "


async def test_a_stream_that_cannot_be_resumed_ends_the_connection_with_the_reason():
    async with serving(an_agent()) as server, editor_of(HttpTransport(server.url)) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "before")
        (link,) = server.app._links.values()
        stream = link.streams.sessions[session]
        stream.dropped = stream.handed_out + 1  # as if more had been sent, and not been kept
        stream.handed_out += 1
        await cut(server)
        end = await editor.connection.closed()
        assert end.reason == "broken"
        assert "410" in end.detail
        assert "no longer kept" in end.detail


async def test_a_connection_that_the_server_forgot_ends_at_the_client():
    async with serving(an_agent()) as server, editor_of(HttpTransport(server.url)) as editor:
        await editor.open_session()
        link = await cut(server)
        server.app._links.clear()
        assert (await editor.connection.closed()).reason == "peer_closed"
        link.finish(End("peer_closed"))


@pytest.mark.parametrize("http2", [False, True])
async def test_an_agent_whose_client_does_not_read_is_paused_and_resumed(http2):
    """The server keeps no more than the mark for a client that is there but does not take anything."""
    most = 0

    class Watched(Streams):
        def put(self, frame, sent):
            nonlocal most
            put = super().put(frame, sent)
            most = max(most, self.waiting_bytes)
            return put

    async with serving(an_agent()) as server:
        transport = HttpTransport(server.url, http2=http2)
        async with editor_of(transport) as editor:
            session = await editor.open_session()
            (link,) = server.app._links.values()
            watched = Watched()
            watched.__dict__.update(link.streams.__dict__)
            link.streams = watched
            transport.pause_reading()
            word = "x" * 100_000
            turn = asyncio.create_task(editor.prompt(session, " ".join([word] * 150)))
            async with asyncio.timeout(DEADLINE):
                while not link._full:  # noqa: ASYNC110 - nothing tells that it has stopped
                    await asyncio.sleep(0)
            transport.resume_reading()
            await turn
            assert len(editor.text(session)) == 150 * 100_001
            assert most < 4 * 1024 * 1024


async def test_an_unused_connection_is_closed():
    async with serving(an_agent()) as server, editor_of(HttpTransport(server.url, reconnect_within=0)) as editor:
        await editor.open_session()
        (link,) = server.app._links.values()
        now = asyncio.get_running_loop().time()
        assert link.problem(now + 10_000) is None  # its streams are read
        link._readers.clear()
        assert "no stream and sent no request" in link.problem(now + 10_000)
        server.app._close_unused(now + 10_000)
        assert link.end.reason == "unresponsive"


async def test_a_connection_whose_client_reads_nothing_has_a_problem_after_a_while():
    async with serving(an_agent()) as server, editor_of(HttpTransport(server.url)) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "one")
        (link,) = server.app._links.values()
        link.send([b'{"jsonrpc":"2.0","method":"_x/y"}'])
        now = asyncio.get_running_loop().time()
        assert "the client read nothing" in link.problem(now + 10_000)


@pytest.mark.requirement("http.cookies-returned")
async def test_cookies_of_any_response_are_sent_with_later_requests(way):
    asked = []

    class Balancer(App):
        """Sets a cookie, as a load balancer does."""

        async def __call__(self, scope, receive, send):
            async def send_with_cookie(message):
                if message["type"] in ("http.response.start", "websocket.accept"):
                    message = {**message, "headers": [*message["headers"], (b"set-cookie", b"home=seven; Path=/")]}
                await send(message)

            if scope["type"] != "lifespan":
                asked.append(dict(scope["headers"]).get(b"cookie", b"").decode())
            await super().__call__(scope, receive, send_with_cookie)

    async with serving(Balancer(an_agent())) as server:
        url = server.url.replace("http", "ws", 1) if way == "websocket" else server.url
        target = accord.http.UrlTarget(url, **({"http2": True} if way == "http2" else {}))
        for _ in range(2):
            async with accord.connect(target) as remote:
                await remote.new_session("/project")
    first, *later = asked
    assert first == ""
    assert later
    assert set(later) == {"home=seven"}


@pytest.mark.requirement("http.connection-header", "http.session-header", "http.version-header", "http.post.sends-json")
@pytest.mark.requirement("http.get.accepts-events")
async def test_the_client_sends_the_headers_of_the_specification():
    seen = []

    class Watching(App):
        async def __call__(self, scope, receive, send):
            if scope["type"] == "http":
                seen.append((scope["method"], {name.decode(): value.decode() for name, value in scope["headers"]}))
            await super().__call__(scope, receive, send)

    async with serving(Watching(an_agent())) as server, editor_of(transport_to(server.url, "http1")) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "hello")
        await editor.request(v1.CloseSessionRequest(session), timeout=DEADLINE)
    (first_method, first), *later = seen
    assert (first_method, first["content-type"]) == ("POST", "application/json")
    assert "acp-connection-id" not in first
    assert all(headers["acp-connection-id"] and headers["acp-protocol-version"] == "1" for _, headers in later)
    assert all(headers["content-type"] == "application/json" for method, headers in seen if method == "POST")
    assert all("text/event-stream" in headers["accept"] for method, headers in seen if method == "GET")
    of_session = [method for method, headers in later if headers.get("acp-session-id") == session]
    assert sorted(of_session) == ["GET", "POST", "POST"]
    assert later[-1][0] == "DELETE"
