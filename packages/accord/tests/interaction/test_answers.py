"""Every request gets exactly one answer, whatever its handler does; and what the answer says when it is an error."""

from __future__ import annotations

import asyncio
import functools

import pytest

from accord.engine.handlers import Handlers
from accord.errors import PeerError, RequestError
from tests.interaction.versions import spoken

INTERNAL, CANCELLED = -32603, -32800


class Stop(BaseException):
    """As far from an ordinary exception as it gets without ending the program."""


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("not even this")


class Slippery(dict):
    def items(self):
        raise RuntimeError("not even this")


def raising(error):
    def misbehave(params, context):
        raise error

    return misbehave


def returning(value):
    def misbehave(params, context):
        return value

    return misbehave


def endless():
    ring = []
    ring.append(ring)
    return ring


MISBEHAVIOURS = {
    "raises": (raising(ValueError("secret")), INTERNAL),
    "raises what cannot be printed": (raising(Unprintable()), INTERNAL),
    "raises an assertion": (raising(AssertionError()), INTERNAL),
    "raises StopIteration": (raising(StopIteration()), INTERNAL),
    "raises StopAsyncIteration": (raising(StopAsyncIteration()), INTERNAL),
    "raises GeneratorExit": (raising(GeneratorExit()), INTERNAL),
    "raises a bare BaseException": (raising(Stop()), INTERNAL),
    "raises a group": (raising(BaseExceptionGroup("several", [Stop(), ValueError()])), INTERNAL),
    "raises CancelledError": (raising(asyncio.CancelledError()), CANCELLED),
    "raises TimeoutError": (raising(TimeoutError()), INTERNAL),
    "lets a peer's error through": (raising(PeerError("fs/read_text_file", -32002, "not there", {"a": 1})), INTERNAL),
    "raises an error of its choosing": (raising(RequestError(-32002, "not there", {"uri": "x"})), -32002),
    "chooses an error with data that is no JSON": (raising(RequestError(-32002, "not there", object())), -32002),
    "chooses an error with endless data": (raising(RequestError(-32002, "not there", endless())), -32002),
    "chooses an error with a nonsensical code": (raising(RequestError("E42", "not there")), INTERNAL),
    "chooses an error with a nonsensical message": (raising(RequestError(-32002, object())), INTERNAL),
    "returns what is no JSON": (returning(object()), INTERNAL),
    "returns a function": (returning(print), INTERNAL),
    "returns a class": (returning(spoken.PromptResponse), INTERNAL),
    "returns what has no end": (returning(endless()), INTERNAL),
    "returns keys that are no strings": (returning({(1, 2): 3}), INTERNAL),
    "returns something deep inside that is no JSON": (returning({"a": [{"b": object()}]}), INTERNAL),
    "returns a generator": (returning(number for number in range(3)), INTERNAL),
    "returns what fails while it is written": (returning(Slippery(a=1)), None),
}

KINDS = {
    "def": lambda misbehave: misbehave,
    "async def": lambda misbehave: _async(misbehave),
    "async def that waits first": lambda misbehave: _async(misbehave, waits=True),
    "def that returns a coroutine": lambda misbehave: lambda params, context: _async(misbehave)(params, context),
    "partial": lambda misbehave: functools.partial(_called, misbehave),
}


def _async(misbehave, *, waits=False):
    async def handler(params, context):
        if waits:
            await asyncio.sleep(0)
        return misbehave(params, context)

    return handler


def _called(misbehave, params, context):
    return misbehave(params, context)


def misbehaving(handlers, stage):
    """Each misbehaviour in each kind of handler."""
    for kind, make in KINDS.items():
        for name, (misbehave, _) in MISBEHAVIOURS.items():
            handlers.on_request(f"_example.com/{kind}/{name}")(make(misbehave))


@pytest.mark.cases
@pytest.mark.requirement("jsonrpc.answer.exactly-one", "jsonrpc.answer.result-or-error", "jsonrpc.error.internal")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MISBEHAVIOURS)
async def test_a_request_has_one_answer_though_its_handler(connect, kind, name):
    code = MISBEHAVIOURS[name][1]
    async with connect.as_client(misbehaving) as script:
        answer = await script.expect_answer(script.call(f"_example.com/{kind}/{name}"))
        assert set(answer) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        if code is not None:
            assert answer["error"]["code"] == code
            assert "secret" not in str(answer)
        await script.expect_silence()


@pytest.mark.uvloop
@pytest.mark.requirement("jsonrpc.answer.exactly-one", "jsonrpc.answer.id-echoed")
async def test_a_link_outlives_every_misbehaviour_also_many_at_once(connect):
    async with connect.as_client(misbehaving) as script:
        methods = [f"_example.com/{kind}/{name}" for kind in KINDS for name in MISBEHAVIOURS]
        script.send(*({"jsonrpc": "2.0", "id": method, "method": method} for method in methods))
        answers = [(await script.receive())["id"] for _ in methods]
        assert sorted(answers) == sorted(methods)
        await script.expect_silence()


@pytest.mark.cases
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name, (_, code) in MISBEHAVIOURS.items() if code == INTERNAL])
async def test_debugging_never_costs_the_answer(connect, kind, name):
    async with connect.as_client(misbehaving, debug=True) as script:
        error = await script.expect_error(script.call(f"_example.com/{kind}/{name}"), INTERNAL)
        assert error["message"] == "Internal error"
        await script.expect_silence()


@pytest.mark.cases
@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("error", [Stop(), GeneratorExit(), asyncio.CancelledError(), ValueError()], ids=repr)
async def test_a_notification_s_handler_that_fails_costs_only_its_own_notification(connect, suspends, error):
    client, seen, both = Handlers(), [], asyncio.Event()

    def news(params):
        seen.append(params["number"])
        if params["number"] == 1:
            raise error
        if len(seen) == 3:
            both.set()

    async def news_async(params):
        news(params)

    client.on_notification("_example.com/news")(news_async if suspends else news)
    async with connect.as_agent(client) as (script, _):
        script.send(
            *({"jsonrpc": "2.0", "method": "_example.com/news", "params": {"number": number}} for number in (0, 1, 2))
        )
        await both.wait()
        assert seen == [0, 1, 2]
        await script.expect_silence()


def exits(handlers, stage):
    @handlers.on_request("_example.com/exit")
    async def leave(params):
        raise SystemExit(7)

    @handlers.on_request("_example.com/exit-def")
    def leave_directly(params):
        raise SystemExit(7)

    @handlers.on_request("_example.com/interrupt")
    async def interrupt(params):
        raise KeyboardInterrupt


@pytest.mark.needs("a process")
@pytest.mark.parametrize(("method", "exit_code"), [("exit", 7), ("exit-def", 7), ("interrupt", 130)])
async def test_a_handler_that_ends_the_program_is_answered_for_first(connect, method, exit_code):
    async with connect.as_client(exits) as script:
        await script.expect_error(script.call(f"_example.com/{method}"), INTERNAL)
        end = await script.expect_end()
        assert (end.reason, end.exit_code) in {("process_ended", exit_code), ("process_ended", -2)}


# Wrong types


def mistaken(handlers, stage):
    @handlers.on(spoken.PromptRequest)
    async def prompt(request):
        return {
            "wrong class": spoken.NewSessionResponse(session_id=spoken.SessionId("s")),
            "a dictionary": spoken.ending(),
            "nothing": None,
            "an unknown word": spoken.ended("exhausted"),
        }[request.prompt[0].text]

    @handlers.on(spoken.AuthenticateRequest)
    async def authenticate(request):
        return None

    @handlers.on_request("_example.com/nothing")
    def nothing(params):
        return None


@pytest.mark.needs("the agent in this program")
@pytest.mark.parametrize(
    "what",
    [
        "wrong class",
        "a dictionary",
        "nothing",
        pytest.param("an unknown word", marks=pytest.mark.needs("closed sets of words")),
    ],
)
async def test_a_result_that_is_not_what_the_protocol_says_is_an_internal_error(connect, what, caplog):
    async with connect.as_client(mistaken) as script:
        params = {"sessionId": "s", "prompt": [{"type": "text", "text": what}]}
        await script.expect_error(script.call("session/prompt", params), INTERNAL)
        await script.expect_silence()
        assert "the handler of session/prompt failed" in caplog.text


async def test_returning_nothing_answers_where_no_field_is_required(connect):
    async with connect.as_client(mistaken) as script:
        assert await script.request(spoken.login_method, {"methodId": "m"}) == {}
        assert await script.request("_example.com/nothing") is None


# What errors say


def failing(handlers, stage):
    @handlers.on_request("_example.com/fail")
    async def fail(params):
        raise ValueError("the secret is 42")

    @handlers.on_request("_example.com/choose")
    async def choose(params):
        raise getattr(RequestError, params["kind"])(**params["arguments"])


@pytest.mark.requirement("jsonrpc.error.internal", "jsonrpc.error.message-brief")
async def test_an_unexpected_exception_shows_no_internals(connect):
    async with connect.as_client(failing) as script:
        error = await script.expect_error(script.call("_example.com/fail"))
        assert error == {"code": INTERNAL, "message": "Internal error"}


@pytest.mark.needs("the agent in this program")
async def test_an_unexpected_exception_is_logged_with_its_traceback(connect, caplog):
    async with connect.as_client(failing) as script:
        await script.expect_error(script.call("_example.com/fail"))
        assert "the handler of _example.com/fail failed" in caplog.text
        assert "the secret is 42" in caplog.text
        assert "Traceback" in caplog.text


async def test_an_unexpected_exception_is_shown_when_debugging(connect):
    async with connect.as_client(failing, debug=True) as script:
        error = await script.expect_error(script.call("_example.com/fail"))
        assert error["code"] == INTERNAL
        assert error["data"] == {"error": "ValueError: the secret is 42"}


@pytest.mark.cases
@pytest.mark.requirement("jsonrpc.error.code-and-message")
@pytest.mark.parametrize(
    ("kind", "arguments", "error"),
    [
        ("invalid_request", {}, {"code": -32600, "message": "Invalid request"}),
        (
            "method_not_found",
            {"method": "_x"},
            {"code": -32601, "message": "Method not found", "data": {"method": "_x"}},
        ),
        (
            "invalid_params",
            {"message": "no such mode", "path": "$.modeId"},
            {"code": -32602, "message": "no such mode", "data": {"path": "$.modeId"}},
        ),
        ("internal", {"message": "sorry"}, {"code": -32603, "message": "sorry"}),
        ("auth_required", {}, {"code": -32000, "message": "Authentication required"}),
        ("not_found", {"uri": "f"}, {"code": -32002, "message": "Resource not found", "data": {"uri": "f"}}),
        ("cancelled", {}, {"code": -32800, "message": "Request cancelled"}),
    ],
)
async def test_a_handler_chooses_its_error(connect, kind, arguments, error):
    async with connect.as_client(failing) as script:
        asked = script.call("_example.com/choose", {"kind": kind, "arguments": arguments})
        assert await script.expect_error(asked) == error


def relaying(handlers, stage):
    @handlers.on_request("_example.com/relay")
    async def relay(params, context):
        return await context.peer.request_raw("_example.com/asked-back")


async def test_an_error_of_the_peer_is_told_to_it_in_words_and_never_as_ours(connect):
    async with connect.as_client(relaying) as script:
        asked = script.call("_example.com/relay")
        script.error(await script.expect("_example.com/asked-back"), -32002, "no such file", {"path": "/notes"})
        words = "_example.com/asked-back: no such file [-32002] ({'path': '/notes'})"
        assert await script.expect_error(asked) == {"code": INTERNAL, "message": words}


@pytest.mark.uvloop
async def test_an_error_reaches_the_caller_with_all_that_it_says(connect):
    async with connect(failing) as link:
        with pytest.raises(PeerError) as caught:
            await link.client.request_raw(
                "_example.com/choose", {"kind": "not_found", "arguments": {"message": "gone", "uri": "f"}}
            )
    error = caught.value
    assert (error.method, error.code, error.message, error.data) == (
        "_example.com/choose",
        -32002,
        "gone",
        {"uri": "f"},
    )


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"code": 500, "message": "odd"}, 500, "odd"),
        ({"message": "no code"}, INTERNAL, "no code"),
        ({"code": "E1", "message": 5}, INTERNAL, ""),
        ("a string", INTERNAL, "a string"),
    ],
    ids=str,
)
async def test_odd_errors_of_the_peer_are_read(connect, error, code, message):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request_raw("_example.com/ask"))
        call = await script.expect("_example.com/ask")
        script.send({"jsonrpc": "2.0", "id": call["id"], "error": error})
        await asyncio.wait([asking])
        assert (asking.exception().code, asking.exception().message) == (code, message)
