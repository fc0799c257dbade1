"""An agent behaves over WebSocket, HTTP/1.1 and HTTP/2 as it does over a pipe."""

import asyncio
import sys

import pytest

import accord
from accord import v1
from accord.http import Access, HttpTransport, serving
from accord.testing import ScriptedPeer
from tests.http.talking import an_agent, editor_of, nobody_is_connected, transport_to
from tests.waiting import DEADLINE


@pytest.mark.requirement(
    "http.client-speaks-both", "http.lifecycle-kept", "websocket.same-endpoint", "http.version-two"
)
async def test_a_prompt_is_answered_after_its_last_update(server, way):
    async with editor_of(transport_to(server.url, way)) as editor:
        session = await editor.open_session()
        assert (await editor.prompt(session, "one two three")).stop_reason == "end_turn"
        assert editor.text(session) == "one two three "
        # What is the same on every link: the second prompt finds the first one's session.
        await editor.prompt(session, "four")
        assert editor.text(session) == "one two three four "


async def test_many_updates_arrive_in_order_and_complete(server, way):
    async with editor_of(transport_to(server.url, way)) as editor:
        sessions = [await editor.open_session() for _ in range(3)]
        await asyncio.gather(*(editor.prompt(session, "count 500") for session in sessions))
        for session in sessions:
            assert editor.text(session) == "".join(f"{number} " for number in range(500))


async def test_the_agent_asks_and_is_answered(server, way):
    async with editor_of(transport_to(server.url, way)) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "ask")
        assert editor.text(session) == "allowed"


async def test_a_turn_is_cancelled(server, way):
    async with editor_of(transport_to(server.url, way)) as editor:
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, "wait"))
        await editor.first_words.wait()
        await editor.notify(v1.CancelNotification(session))
        assert (await turn).stop_reason == "cancelled"


@pytest.mark.requirement("http.sessions-outlive-connections")
async def test_a_session_outlives_its_connection(server, way):
    async with editor_of(transport_to(server.url, way)) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "remember this")
    async with editor_of(transport_to(server.url, way)) as editor:
        await editor.request(v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)
        assert editor.text(session) == "remember this "
        await editor.prompt(session, "more")
        assert editor.text(session) == "remember this more "


async def test_a_big_message_passes(server, way):
    async with editor_of(transport_to(server.url, way)) as editor:
        session = await editor.open_session()
        word = "x" * 3_000_000
        await editor.prompt(session, word)
        assert editor.text(session) == f"{word} "


@pytest.mark.requirement("websocket.cleaned-up", "http.delete-ends-connection")
async def test_a_connection_is_forgotten_when_its_client_has_gone(server, way):
    async with editor_of(transport_to(server.url, way)) as editor:
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, "wait"))
        await editor.first_words.wait()
        assert server.app.connections == 1
    with pytest.raises(accord.ConnectionClosed):
        await turn
    await nobody_is_connected(server)


async def test_clients_are_told_when_their_server_ends(way):
    async with serving(an_agent()) as server:
        transport = transport_to(server.url, way)
        async with editor_of(transport) as editor:
            session = await editor.open_session()
            turn = asyncio.create_task(editor.prompt(session, "wait"))
            await editor.first_words.wait()
            await server.app.close()
            with pytest.raises(accord.ConnectionClosed):
                await turn
            assert (await editor.connection.closed()).reason in ("peer_closed", "broken")


async def test_a_refused_tcp_connection_is_one_clear_error(way):
    async with serving(an_agent()) as server:
        url = server.url
    with pytest.raises(accord.ConnectionClosed, match=r"127\.0\.0\.1") as caught:
        async with editor_of(transport_to(url, way)):
            pass
    assert caught.value.reason == "broken"


async def test_a_server_with_tokens_requires_one(way):
    async with serving(an_agent(), access=Access({"s3cret": "ada"})) as server:
        with pytest.raises(accord.ConnectionClosed, match="401"):
            async with editor_of(transport_to(server.url, way)):
                pass
        headers = {"Authorization": "Bearer s3cret"}
        async with editor_of(transport_to(server.url, way, headers=headers)) as editor:
            assert await editor.open_session()


async def test_a_user_cannot_load_the_sessions_of_another(way):
    async with serving(an_agent(), access=Access({"a": "ada", "b": "bob"})) as server:
        async with editor_of(transport_to(server.url, way, headers={"Authorization": "Bearer a"})) as ada:
            session = await ada.open_session()
            await ada.prompt(session, "mine")
        async with editor_of(transport_to(server.url, way, headers={"Authorization": "Bearer b"})) as bob:
            assert (await bob.request(v1.ListSessionsRequest(), timeout=DEADLINE)).sessions == []
            with pytest.raises(accord.PeerError):
                await bob.request(v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)


async def test_a_command_has_a_process_for_each_connection(way):
    command = [sys.executable, "-c", "from accord_tools.demo import demo_agent; demo_agent(pace=0).run()"]
    async with (
        serving(command) as server,
        editor_of(transport_to(server.url, way)) as one,
        editor_of(transport_to(server.url, way)) as two,
    ):
        for editor in one, two:
            session = await editor.open_session()
            assert (await editor.prompt(session, "hello")).stop_reason == "end_turn"
            assert editor.text(session)


async def test_an_agent_that_dies_ends_its_connection_only(way):
    script = "import sys; sys.stdin.readline(); sys.exit(3)"
    async with serving([sys.executable, "-c", script]) as server:
        with pytest.raises((accord.ConnectionClosed, accord.PeerError)):
            async with editor_of(transport_to(server.url, way)):
                pass
        await nobody_is_connected(server)


async def test_accord_connect_takes_a_url(server, way):
    url = server.url.replace("http", "ws", 1) if way == "websocket" else server.url
    async with accord.connect(url) as remote:
        session = await remote.new_session("/project")
        assert (await session.prompt("hello you")).text == "hello you "


async def test_malformed_text_is_answered_and_the_connection_stays_open(server, way):
    async with ScriptedPeer(transport_to(server.url, way), deadline=DEADLINE) as script:
        await script.request("initialize", {"protocolVersion": 1})
        script.send_raw(b'{"jsonrpc":"2.0", oops}')
        await script.expect_error(None, -32700)
        assert (await script.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]


async def test_a_request_before_initialize_is_refused_and_the_connection_stays_open(server, way):
    async with ScriptedPeer(transport_to(server.url, way), deadline=DEADLINE) as script:
        early = script.call("session/new", {"cwd": "/project", "mcpServers": []})
        await script.expect_error(early, -32600)
        await script.request("initialize", {"protocolVersion": 1})
        assert (await script.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]


async def test_a_server_off_the_loopback_requires_tokens():
    with pytest.raises(accord.AccordError, match="token"):
        async with serving(an_agent(), host="0.0.0.0"):
            pass


async def test_an_invalid_url_is_one_clear_error():
    with pytest.raises(accord.AccordError, match="ftp"):
        accord.http.connect_transport("ftp://x")


def test_a_transport_that_was_never_started_can_be_closed():
    async def main():
        assert (await HttpTransport("http://127.0.0.1:1/acp").close()).reason == "closed"

    asyncio.run(main())
