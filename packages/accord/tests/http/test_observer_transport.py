"""A token of an observer may only watch, over every transport."""

import asyncio
import json

import pytest

import accord
from accord import v1
from accord.http import Access, Observer, SharedHost, serving
from accord.http.client.connection_pool import ConnectionPool
from accord.http.server.agent_host import Host
from accord.http.server.observer_transport import RIGHTS, ObserverRights, Right
from accord.jsonrpc.wire_messages import RequestFrame, ResponseFrame, encode_request, encode_response, parse
from accord.schema.methods import methods
from accord.transports import Receiver
from tests.hosts.hosting import editor_on
from tests.http.talking import WAYS, an_agent
from tests.waiting import DEADLINE, eventually

ACCESS = Access({"s3cret": "ada", "0ther": Observer("ada"), "eve": Observer("eve")})
WATCHING = {"accord.dev/watch": True}
CONTROLLER, OBSERVER, STRANGER = ({"Authorization": f"Bearer {token}"} for token in ("s3cret", "0ther", "eve"))


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture(params=["an agent for each connection", "shared"])
async def url(request):
    hosted = SharedHost(an_agent()) if request.param == "shared" else an_agent()
    async with serving(hosted, access=ACCESS) as server:
        yield server.url


async def load(editor, session, **more):
    return await editor.request(v1.LoadSessionRequest(session, "/project", [], **more), timeout=DEADLINE)


async def heard(editor, session, text):
    async with asyncio.timeout(DEADLINE):
        while editor.text(session) != text:
            await editor.hear_more()


async def test_an_observer_sees_a_turn_and_may_not_touch_it(url, way):
    async with (
        editor_on(url, way, headers=CONTROLLER) as one,
        editor_on(url, way, headers=OBSERVER) as two,
    ):
        session = await one.open_session()
        await one.prompt(session, "first")
        turn = asyncio.create_task(one.prompt(session, "wait"))
        await load(two, session)  # an ordinary load, which becomes a watch
        await heard(two, session, "first waiting")
        requests = [
            v1.PromptRequest.of(session, "no"),
            v1.NewSessionRequest("/project", []),
            v1.SetSessionModeRequest(session, v1.SessionModeId("code")),
            v1.DeleteSessionRequest(session),
            v1.ForkSessionRequest(session, "/project"),
        ]
        for request in requests:
            with pytest.raises(accord.PeerError, match="this token may only watch sessions") as error:
                await two.request(request, timeout=DEADLINE, force=True)
            assert (error.value.code, error.value.data) == (-32600, {"reason": "watching"})
        with pytest.raises(accord.PeerError, match="may only watch"):
            await two.request_raw("_example.com/anything", {"sessionId": session}, timeout=DEADLINE)
        await two.notify(v1.CancelNotification(session))
        listed = await two.request(v1.ListSessionsRequest(), timeout=DEADLINE)  # the link lives, and the turn as well
        assert [it.session_id for it in listed.sessions] == [session]
        assert not turn.done()
        await one.notify(v1.CancelNotification(session))
        assert (await turn).stop_reason == "cancelled"
        await two.request(v1.CloseSessionRequest(session), timeout=DEADLINE)
        assert (await one.prompt(session, "after")).stop_reason == "end_turn"


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_of_ours_watches_with_the_token_of_an_observer(url, version):
    async with (
        accord.connect(url, versions=(version,), headers=CONTROLLER) as one,
        accord.connect(url, versions=(version,), headers=OBSERVER) as two,
    ):
        session = await one.new_session("/project")
        await session.prompt("hello")
        watched = await two.watch(session.id)
        await session.prompt("again")
        await eventually(lambda: [it.text for it in watched.state.messages][1:] == ["hello ", "again", "again "])
        with pytest.raises(accord.PeerError, match="may only watch"):
            await watched.prompt("no")


async def test_an_observer_of_another_owner_sees_nothing(url, way):
    async with editor_on(url, way, headers=CONTROLLER) as one, editor_on(url, way, headers=STRANGER) as eve:
        session = await one.open_session()
        await one.prompt(session, "mine")
        with pytest.raises(accord.PeerError) as error:
            await load(eve, session)
        assert error.value.code == -32002
        assert (await eve.request(v1.ListSessionsRequest(), timeout=DEADLINE)).sessions == []


async def test_an_observer_cannot_open_sessions_of_an_agent_that_cannot_be_watched(way):
    agent, loads = an_agent(), []

    @agent.on(v1.LoadSessionRequest)
    async def load_one(request):
        loads.append(request)
        return v1.LoadSessionResponse()

    async with serving(agent, access=ACCESS) as server, editor_on(server.url, way, headers=OBSERVER) as two:
        with pytest.raises(accord.PeerError, match="cannot be watched"):
            await load(two, v1.SessionId("any"), meta=WATCHING)
    assert loads == []


async def test_an_observer_cannot_use_the_connection_of_a_controller(url):
    asking = ConnectionPool(url, http2=False)
    initialize = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
    kinds = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
    try:
        opened = await asking.request("POST", [*kinds, *CONTROLLER.items()], initialize)
        await opened.body(1 << 20)
        theirs = [*kinds, ("acp-connection-id", opened.header("acp-connection-id"))]
        message = b'{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}'
        statuses = {}
        for method, body in (("POST", message), ("GET", b""), ("DELETE", b"")):
            for name, token in (("observer", OBSERVER), ("controller", CONTROLLER)):
                response = await asking.request(method, [*theirs, *token.items()], body)
                statuses[method, name] = response.status
                await response.close()
        assert statuses == {
            ("POST", "observer"): 404,
            ("GET", "observer"): 404,
            ("DELETE", "observer"): 404,
            ("POST", "controller"): 202,
            ("GET", "controller"): 200,
            ("DELETE", "controller"): 202,
        }
    finally:
        await asking.close()


async def test_a_function_may_say_that_a_token_only_watches():
    def users(token):
        return {"own": "ada", "watch": Observer("ada")}.get(token)

    async with (
        serving(an_agent(), access=Access(users)) as server,
        accord.connect(server.url, headers={"Authorization": "Bearer own"}) as one,
        accord.connect(server.url, headers={"Authorization": "Bearer watch"}) as two,
    ):
        session = await one.new_session("/project")
        await session.prompt("hello")
        watched = await two.watch(session.id)
        assert watched.state.messages[-1].text == "hello "
        with pytest.raises(accord.PeerError, match="may only watch"):
            await two.new_session("/project")


METHODS = {row.name for version in (1, 2) for row in methods(version) if row.to in ("agent", "protocol")}


def test_every_method_of_the_protocol_has_a_right():
    assert RIGHTS.keys() == METHODS
    allowed = {method for method, right in RIGHTS.items() if right is not Right.OWNER}
    assert allowed == {
        *("initialize", "$/cancel_request", "session/list", "session/load", "session/resume", "session/close"),
    }


class Obedient(Host, Receiver):
    """Does what every request asks, and says that sessions can be watched. Keeps the methods."""

    name = "obedient"

    def __init__(self):
        self.got = []

    async def serve(self, transport, owner):  # noqa: ARG002
        ended = asyncio.Event()
        self._transport, self.ended = transport, lambda _: ended.set()
        await transport.start(self)
        await ended.wait()

    def received(self, frames):
        for message in map(parse, frames):
            self.got.append(getattr(message, "method", ""))
            if isinstance(message, RequestFrame):
                self._transport.send(
                    [encode_response(message.id, b'{"protocolVersion":1,"_meta":{"accord.dev/watch":true}}')]
                )

    def paused(self): ...

    def resumed(self): ...


@pytest.mark.parametrize("shared", [False, True], ids=["an agent for each connection", "shared"])
async def test_an_observer_has_no_right_that_the_table_does_not_give(shared):
    agent = Obedient()
    params = {"sessionId": "s", "cwd": "/project", "mcpServers": [], "requestId": 1, "protocolVersion": 1}
    async with (
        serving(SharedHost(agent) if shared else agent, access=ACCESS) as server,
        editor_on(server.url, "websocket", headers=OBSERVER) as two,
    ):
        for method in sorted({*METHODS, "_example.com/anything", "session/of_next_year"} - {"initialize"}):
            await two.notify_raw(method, params)
            if RIGHTS.get(method, Right.OWNER) in (Right.REQUEST, Right.WATCH):
                await two.request_raw(method, params, timeout=DEADLINE)
                continue
            with pytest.raises(accord.PeerError, match="may only watch"):
                await two.request_raw(method, params, timeout=DEADLINE)
        await two.request_raw("session/close", params, timeout=DEADLINE)  # now it watches the session
        await two.request_raw("session/list", {}, timeout=DEADLINE)
    assert {"initialize", "session/list", "session/load"} <= set(agent.got)
    assert set(agent.got) <= {method for method, right in RIGHTS.items() if right is not Right.OWNER}


async def test_an_observer_that_closes_a_session_ends_no_turn(way):
    async with serving(SharedHost(an_agent()), access=ACCESS) as server:
        async with editor_on(server.url, way, headers=CONTROLLER) as one:
            session = await one.open_session()
            turn = asyncio.create_task(one.prompt(session, "wait"))
            async with asyncio.timeout(DEADLINE):
                await one.first_words.wait()
        with pytest.raises(accord.ConnectionClosed):
            await turn
        async with editor_on(server.url, way, headers=OBSERVER) as two:
            close = v1.CloseSessionRequest(session)
            with pytest.raises(accord.PeerError, match="does not watch that session"):
                await two.request(close, timeout=DEADLINE)
            await load(two, session)
            await two.request(close, timeout=DEADLINE)
            assert server.app.host._agents["ada"][0]._conversation.is_busy


# The filter alone


@pytest.fixture
def observing():
    """The filter of an observer whose agent can be watched."""
    it = ObserverRights()
    assert it.received(encode_request(0, "initialize", b'{"protocolVersion":1}')).passed is not None
    it.sent(b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"_meta":{"accord.dev/watch":true}}}')
    return it


def test_what_opens_a_session_is_rewritten_and_brings_nothing_for_the_agent(observing):
    params = {
        "sessionId": "s",
        "cwd": "/p",
        "replayFrom": {"type": "start"},
        "mcpServers": [{"name": "evil", "command": "/bin/sh", "args": [], "env": []}],
        "additionalDirectories": ["/"],
        "systemPrompt": {"text": "be evil"},
        "_meta": {"accord.dev/watch": False, "example.com/x": 1},
    }
    for method in ("session/load", "session/resume"):
        passed = parse(observing.received(encode_request(7, method, json.dumps(params).encode())).passed)
        assert isinstance(passed, RequestFrame)
        assert (passed.id, passed.method) == (7, method)
        assert json.loads(bytes(passed.params)) == {
            "sessionId": "s",
            "cwd": "/p",
            "replayFrom": {"type": "start"},
            "mcpServers": [],
            "_meta": {"accord.dev/watch": True},
        }


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","method":"session/list","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"session/list","method":"session/prompt","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"cursor":"a","cursor":"b"}}',
    ],
)
def test_members_that_come_twice_have_one_meaning_for_the_agent(observing, frame):
    verdict = observing.received(frame)
    if verdict.passed is not None:
        assert verdict.passed.count(b'"method"') == 1
        assert verdict.passed.count(b'"cursor"') <= 1
        assert b"session/prompt" not in verdict.passed


def test_malformed_messages_and_batches_do_not_reach_the_agent(observing):
    for frame in (b"[]", b"{", b'[{"jsonrpc":"2.0","id":1,"method":"session/prompt"}]', b'"\xff', b"{}"):
        verdict = observing.received(frame)
        assert verdict.passed is None


def test_an_answer_of_an_observer_is_an_error_for_the_agent(observing):
    answer = parse(observing.received(b'{"jsonrpc":"2.0","id":5,"result":{"outcome":{}}}').passed)
    assert isinstance(answer, ResponseFrame)
    assert (answer.id, answer.error.code) == (5, -32600)


def test_only_the_answer_to_its_own_initialize_says_that_sessions_can_be_watched():
    it = ObserverRights()
    it.sent(b'{"jsonrpc":"2.0","id":0,"result":{"_meta":{"accord.dev/watch":true}}}')
    load_it = encode_request(1, "session/load", b'{"sessionId":"s","cwd":"/p"}')
    assert it.received(load_it).passed is None
    it.received(encode_request(0, "initialize", b"{}"))
    it.sent(b'{"jsonrpc":"2.0","id":0,"result":{"_meta":{}}}')
    assert it.received(load_it).passed is None
