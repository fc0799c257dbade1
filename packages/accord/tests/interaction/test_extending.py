"""Messages of one's own, methods by name, and whatever has no handler."""

from __future__ import annotations

import asyncio

import pytest

from accord.engine.handlers import Handlers
from accord.errors import ConnectionClosed, EncodeError, PeerError, ProtocolError
from accord.schema.base import Model, Notification, Request
from tests.interaction.staging import ask, chunk, declaring, prompt_params, tell, text_of
from tests.interaction.versions import spoken


class Greeting(Model):
    text: str
    times_greeted: int = 1


class Greet(Request[Greeting], method="_example.com/greet"):
    name: str


class Wave(Notification, method="_example.com/wave"):
    hand: str = "left"


class Count(Request[int], method="_example.com/count"):
    upto: int


def greeter(handlers, stage):
    @handlers.on(Greet)
    async def greet(request, context):
        await context.peer.notify(Wave(hand="right"))
        back = await context.peer.request(Greet(name="agent"))
        return Greeting(text=f"Hello, {request.name}; {back.text}")

    @handlers.on(Wave)
    def wave(notification):
        stage.tell("waved", hand=notification.hand)

    @handlers.on(Count)
    def count(request):
        return request.upto + 1


@pytest.mark.uvloop
@pytest.mark.requirement("extension.request-answered")
async def test_messages_of_ones_own_are_sent_and_handled_like_built_in_ones(connect):
    client, waved = Handlers(), []
    client.on(Wave)(lambda notification: waved.append(notification.hand))
    client.on(Greet)(lambda request: Greeting(text=f"hello, {request.name}"))
    async with connect(greeter, client) as link:
        await link.client.notify(Wave())
        assert await link.told("waved") == {"hand": "left"}
        answer = await link.client.request(Greet(name="Ada"))
        assert answer == Greeting(text="Hello, Ada; hello, agent")
        assert waved == ["right"]
        assert await link.client.request(Count(upto=41)) == 42


async def test_messages_of_ones_own_are_checked_like_built_in_ones(connect):
    async with connect.as_client(greeter) as script:
        error = await script.expect_error(script.call("_example.com/greet", {"name": 5}), -32602)
        assert error["data"]["path"] == "$.name"
        error = await script.expect_error(script.call("_example.com/greet"), -32602)
        script.tell("_example.com/wave", {"hand": 5})
        await script.expect_silence()


async def test_an_answer_to_a_message_of_ones_own_is_checked_too(connect):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request(Greet(name="Ada")))
        script.answer(await script.expect("_example.com/greet"), {"text": None})
        await asyncio.wait([asking])
        assert isinstance(asking.exception(), ProtocolError)
        assert "_example.com/greet" in str(asking.exception())


@pytest.mark.requirement("extension.method-underscore")
def test_a_method_of_ones_own_begins_with_an_underscore():
    class Loud(Request[Greeting], method="example.com/shout"):
        name: str

    with pytest.raises(ValueError, match="must begin with an underscore"):
        Handlers().on(Loud)


def test_a_message_without_a_method_is_refused():
    class Nameless(Request[Greeting]):
        name: str

    with pytest.raises(TypeError, match="has no method"):
        Handlers().on(Nameless)


@pytest.mark.uvloop
async def test_a_hundred_requests_at_once_each_get_their_own_answer(connect):
    client = Handlers()
    client.on(Greet)(lambda request: Greeting(text=f"hello, {request.name}"))
    async with connect(greeter, client) as link:
        names = [f"name {number}" for number in range(100)]
        answers = await asyncio.gather(*(link.client.request(Greet(name=name)) for name in names))
        assert [answer.text for answer in answers] == [f"Hello, {name}; hello, agent" for name in names]
        assert await asyncio.gather(*(link.client.request(Count(upto=n)) for n in range(100))) == [*range(1, 101)]


def plain(handlers, stage):
    @handlers.on_request("_example.com/plain")
    def plain(params):
        return {"got": params}

    @handlers.on_request("session/new")
    async def new(params, context):
        return {"sessionId": f"s{context.request_id}"}

    @handlers.on_notification("_example.com/note")
    async def note(params, context):
        await context.peer.notify_raw("_example.com/noted", params)

    @handlers.on_other
    async def other(method, params, context):
        if context.request_id is None:
            stage.tell("other", method=method, params=params)
            return None
        return {"method": method, "params": params}


@pytest.mark.uvloop
async def test_methods_are_handled_by_name_in_plain_values(connect):
    client, noted = Handlers(), asyncio.Queue()
    client.on_notification("_example.com/noted")(noted.put_nowait)
    async with connect(plain, client) as link:
        assert await link.client.request_raw("_example.com/plain", {"a": [1, None, "x"]}) == {
            "got": {"a": [1, None, "x"]}
        }
        assert await link.client.request_raw("_example.com/plain") == {"got": {}}
        session = await link.client.request(spoken.NewSessionRequest(cwd="/", mcp_servers=[]))
        assert session.session_id.startswith("s")
        await link.client.notify_raw("_example.com/note", {"b": {}})
        assert await noted.get() == {"b": {}}


async def test_what_has_no_handler_goes_to_the_one_for_others(connect):
    async with connect(plain) as link:
        got = await link.client.request_raw("_example.com/whatever", {"a": 1})
        assert got == {"method": "_example.com/whatever", "params": {"a": 1}}
        await link.client.notify_raw("session/flown", {"b": 2})
        assert await link.told("other") == {"method": "session/flown", "params": {"b": 2}}


async def test_a_handler_of_its_own_comes_before_the_one_for_others(connect):
    client, others = Handlers(), []

    @client.on_other
    def other(method, params, context):
        others.append(method)

    client.on(Wave)(lambda _: None)
    client.on_request("_example.com/plain")(lambda params: params)
    async with connect.as_agent(client) as (script, _):
        script.send(tell("_example.com/wave"), tell("_example.com/other"))
        assert await script.request("_example.com/plain") == {}
        assert others == ["_example.com/other"]


async def test_a_handler_that_is_given_later_takes_the_place_of_one_that_was_asked_already(connect):
    client, later = Handlers(), Handlers()
    client.on(Count)(lambda _: 1)
    client.on_request("_example.com/plain")(lambda _: {"by": "first"})
    later.on(Count)(lambda _: 2)
    async with connect.as_agent(client) as (script, link):
        assert await script.request("_example.com/count", {"upto": 0}) == 1
        assert await script.request("_example.com/plain") == {"by": "first"}
        link.handle(later)
        assert await script.request("_example.com/count", {"upto": 0}) == 2
        assert await script.request("_example.com/plain") == {"by": "first"}


async def test_a_handler_may_be_a_method_a_partial_or_an_object(connect):
    class Desk:
        def __init__(self):
            self.seen = []

        async def on_request(self, params, context):
            self.seen.append(("method", params, context.request_id))
            return {}

        def __call__(self, params):
            self.seen.append(("object", params))

    desk, client = Desk(), Handlers()
    client.on_request("_example.com/method")(desk.on_request)
    client.on_request("_example.com/object")(desk)
    async with connect.as_agent(client) as (script, _):
        await script.request("_example.com/method")
        await script.request("_example.com/object")
        assert desk.seen == [("method", {}, 1), ("object", {})]


async def test_registering_gives_the_function_back_and_the_last_one_counts(connect):
    client = Handlers()

    @client.on_request("_example.com/plain")
    def first(params):
        return 1

    @client.on_request("_example.com/plain")
    def second(params):
        return 2

    assert (first(None), second(None)) == (1, 2)
    async with connect.as_agent(client) as (script, _):
        assert await script.request("_example.com/plain") == 2


@declaring(spoken.AgentCapabilities(meta={"example.com": {"greets": True}}))
def advertises(handlers, stage): ...


@pytest.mark.requirement("extension.advertised", "meta.is-object")
async def test_extensions_are_announced_in_the_meta_of_capabilities(connect):
    async with connect(advertises) as link:
        assert link.client.capabilities.declared.meta == {"example.com": {"greets": True}}


async def test_a_handler_knows_its_request_s_id_and_whether_it_is_cancelled(connect):
    client, contexts = Handlers(), []

    @client.on_request("_example.com/plain")
    def plain(params, context):
        contexts.append((context.request_id, context.cancelled))

    @client.on_notification("_example.com/note")
    def note(params, context):
        contexts.append((context.request_id, context.cancelled))

    async with connect.as_agent(client) as (script, _):
        script.send(tell("_example.com/note"), ask("_example.com/plain", "x"))
        await script.expect_result("x")
        assert contexts == [(None, False), ("x", False)]


@pytest.mark.parametrize(
    "send",
    [
        lambda peer: peer.request_raw("_example.com/ask", {"a": object()}),
        lambda peer: peer.notify_raw("_example.com/note", {"a": object()}),
        lambda peer: peer.request(Greet(name=object())),
        lambda peer: peer.notify(Wave(hand=object())),
    ],
    ids=["request_raw", "notify_raw", "request", "notify"],
)
async def test_what_cannot_be_written_is_refused_here_and_nothing_is_sent(connect, send):
    async with connect.as_agent() as (script, peer):
        with pytest.raises(EncodeError):
            await send(peer)
        await script.expect_silence()
        assert peer.connection.statistics().pending == 0


async def test_an_unknown_method_of_the_other_side_is_an_error_of_the_peer(connect):
    async with connect(greeter) as link:
        with pytest.raises(PeerError) as caught:
            await link.client.request_raw("_example.com/unknown")
        assert (caught.value.code, caught.value.data) == (-32601, {"method": "_example.com/unknown"})
        with pytest.raises(PeerError):
            await link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go"))


async def test_older_names_of_methods_are_handled_too(connect):
    client, seen = Handlers(), []

    @client.on(spoken.ProxySuccessorRequest)
    def successor(request):
        seen.append(request.method)
        return {}

    async with connect.as_agent(client) as (script, _):
        for method in ("proxy/successor", "_proxy/successor"):
            await script.expect_answer(script.call(method, {"method": "x"}))
        assert seen == ["x", "x"]


@pytest.mark.needs("updates of version 1")
async def test_an_older_form_of_an_update_is_read(connect):
    client, modes = Handlers(), []
    client.on(spoken.SessionNotification)(lambda notification: modes.append(notification.update.current_mode_id))
    async with connect.as_agent(client) as (script, _):
        for key in ("currentModeId", "modeId"):
            script.tell(
                "session/update", {"sessionId": "s", "update": {"sessionUpdate": "current_mode_update", key: "m"}}
            )
        await script.expect_silence()
        assert modes == ["m", "m"]


async def test_a_null_result_stands_for_one_without_fields(connect):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request(spoken.AuthenticateRequest(method_id=spoken.AuthMethodId("m"))))
        call = await script.expect(spoken.login_method)
        script.send({"jsonrpc": "2.0", "id": call["id"], "result": None})
        assert await asking == spoken.AuthenticateResponse()


async def test_raw_and_typed_see_the_same_message(connect):
    client, texts = Handlers(), []
    client.on(spoken.SessionNotification)(lambda notification: texts.append(text_of(notification)))

    async with connect(says_it_twice, client) as link:
        assert await link.client.request_raw("session/prompt", prompt_params()) == spoken.ending()
        assert texts == ["typed", "raw"]


def says_it_twice(handlers, stage):
    @handlers.on(spoken.PromptRequest)
    async def prompt(request, context):
        await context.peer.notify(chunk("typed", request.session_id))
        update = spoken.chunk_on_the_wire("raw")
        await context.peer.notify_raw("session/update", {"sessionId": request.session_id, "update": update})
        return spoken.ended("end_turn")


async def test_closed_links_refuse_messages_of_ones_own_too(connect):
    async with connect.as_agent() as (_, peer):
        await peer.close()
        with pytest.raises(ConnectionClosed):
            await peer.request(Greet(name="Ada"))


async def test_a_connection_takes_params_that_are_encoded_already(connect):
    async with connect(greeter) as link:
        assert bytes(await link.connection.call(Count.__method__, b'{"upto":41}')) == b"42"
