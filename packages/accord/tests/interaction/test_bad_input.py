"""Bad input never ends a connection, and always gets the right answer."""

from __future__ import annotations

import asyncio
import json

import pytest

from accord.engine.handlers import Handlers
from accord.errors import ProtocolError
from accord.testing import Faults, FaultyTransport, connected
from tests.interaction import staging
from tests.interaction.staging import ask, prompt_params, says, tell, text_of
from tests.interaction.versions import spoken

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602

NOT_JSON = {
    "words": b"Loading the model, please wait...",
    "a cut object": b'{"jsonrpc":"2.0","id":1,"method":"session/new"',
    "two objects": b'{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}',
    "a number that is none": b'{"jsonrpc":"2.0","id":1,"method":"_x","params":{"a":NaN}}',
    "single quotes": b"{'jsonrpc':'2.0'}",
    "a lonely brace": b"{",
    "a colour code": b"\x1b[31mwarning\x1b[0m",
    "no text": b"\xff\xfe\x00\x01",
}

NO_MESSAGE = {
    "an empty object": {},
    "no version": {"id": 1, "method": "_x"},
    "another version": {"jsonrpc": "1.0", "id": 1, "method": "_x"},
    "a version that is a number": {"jsonrpc": 2.0, "id": 1, "method": "_x"},
    "a notification without a version": {"method": "session/update", "params": {}},
    "params in an array": {"jsonrpc": "2.0", "id": 1, "method": "_x", "params": [1]},
    "params that are a string": {"jsonrpc": "2.0", "id": 1, "method": "_x", "params": "a"},
    "params that are a number": {"jsonrpc": "2.0", "method": "_x", "params": 5},
    "params that are true": {"jsonrpc": "2.0", "method": "_x", "params": True},
    "an id that is true": {"jsonrpc": "2.0", "id": True, "method": "_x"},
    "an id that is an object": {"jsonrpc": "2.0", "id": {}, "method": "_x"},
    "an id that is an array": {"jsonrpc": "2.0", "id": [1], "method": "_x"},
    "an id that is null": {"jsonrpc": "2.0", "id": None, "method": "_x"},
    "an id with a fraction": {"jsonrpc": "2.0", "id": 1.5, "method": "_x"},
    "a method that is a number": {"jsonrpc": "2.0", "id": 1, "method": 5},
    "a method that is an object": {"jsonrpc": "2.0", "method": {}},
    "only a version": {"jsonrpc": "2.0"},
    "only params": {"jsonrpc": "2.0", "params": {}},
    "a string": "hello",
    "a number": 42,
    "true": True,
    "null": None,
}

BATCHES = {
    "an empty array": [],
    "an array of calls": [ask("_example.com/one", 1), ask("_example.com/two", 2)],
    "an array in an array": [[]],
    "an array of nonsense": [1, None],
}


def asks_back(handlers, stage):
    """Asks the client, and tells what came of it."""

    @handlers.on_request("_example.com/go")
    async def go(params, context):
        try:
            got = await context.peer.request_raw("_example.com/asked-back")
        except ProtocolError as error:
            return {"problem": str(error)}
        return {"got": got}

    @handlers.on_request("_example.com/hello")
    def hello(params):
        return {"hello": True}

    @handlers.on_request("_example.com/statistics")
    def statistics(params, context):
        counted = context.peer.connection.statistics()
        return {name: getattr(counted, name) for name in ("malformed", "pollution", "strays", "ignored")}


def readable_id(value):
    """The id that an error answer to this value carries: its own where it is one."""
    return 1 if isinstance(value, dict) and value.get("id") == 1 and value["id"] is not True else None


async def lives(script):
    """The link goes on, and nothing was said that nobody has read."""
    await script.expect_silence()


# Not JSON


@pytest.mark.requirement("jsonrpc.error.parse", "jsonrpc.answer.null-id-when-unknown")
@pytest.mark.cases
@pytest.mark.parametrize("frame", list(NOT_JSON.values()), ids=list(NOT_JSON))
async def test_an_agent_answers_what_is_not_json_with_a_parse_error(connect, frame):
    async with connect.as_client(asks_back) as script:
        script.send_raw(frame)
        error = await script.expect_error(None, PARSE_ERROR)
        assert error["message"].startswith("Parse error")
        await lives(script)


@pytest.mark.parametrize("frame", list(NOT_JSON.values()), ids=list(NOT_JSON))
async def test_a_client_never_answers_what_is_not_json_but_reports_it(connect, frame, caplog):
    async with connect.as_agent() as (script, peer):
        script.send_raw(frame)
        await lives(script)
        assert peer.connection.statistics().pollution == 1
        assert peer.connection.pollution == [frame.decode("utf-8", "replace")]
        assert "wrote a line to standard output that is not JSON" in caplog.text


@pytest.mark.parametrize("params", [b"5", b"[]", b'"text"'])
async def test_an_update_whose_params_are_no_object_never_reaches_a_handler_without_a_class(connect, params):
    client, seen = Handlers(), []
    client.on_notification("session/update")(seen.append)
    async with connect.as_agent(client) as (script, peer):
        script.send_raw(b'{"jsonrpc":"2.0","method":"session/update","params":' + params + b"}")
        await script.expect_error(None, INVALID_REQUEST)
        script.tell("session/update", {"sessionId": "s"})
        await lives(script)
        assert seen == [{"sessionId": "s"}]
        assert peer.connection.statistics().malformed == 1


async def test_pollution_is_reported_once_and_kept_in_part(connect, caplog):
    async with connect.as_agent() as (script, peer):
        script.send_raw(*(f"line {number} {'x' * 2000}".encode() for number in range(100)))
        await lives(script)
        assert caplog.text.count("wrote a line to standard output that is not JSON") == 1
        assert peer.connection.statistics().pollution == 100
        assert len(peer.connection.pollution) == 20
        assert all(len(text) <= 500 for text in peer.connection.pollution)


async def test_pollution_between_good_messages_costs_none_of_them(connect):
    client, texts = Handlers(), []

    @client.on(spoken.SessionNotification)
    def update(notification):
        texts.append(text_of(notification))

    async with connect.as_agent(client) as (script, peer):
        asking = asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go")))
        call = await script.expect("session/prompt")
        for frame in NOT_JSON.values():
            script.send(says("x"))
            script.send_raw(frame)
        script.answer(call, spoken.ending())
        assert spoken.end_of(await asking) == "end_turn"
        assert texts == ["x"] * len(NOT_JSON)


# JSON, and no message


@pytest.mark.requirement("jsonrpc.error.invalid-request", "jsonrpc.answer.null-id-when-unknown")
@pytest.mark.cases
@pytest.mark.parametrize("value", NO_MESSAGE.values(), ids=NO_MESSAGE)
async def test_an_agent_answers_what_is_no_message_as_an_invalid_request(connect, value):
    async with connect.as_client(asks_back) as script:
        script.send_raw(json.dumps(value).encode())
        await script.expect_error(readable_id(value), INVALID_REQUEST)
        await lives(script)


@pytest.mark.requirement("jsonrpc.error.invalid-request", "jsonrpc.answer.null-id-when-unknown")
@pytest.mark.parametrize("value", NO_MESSAGE.values(), ids=NO_MESSAGE)
async def test_a_client_answers_what_is_no_message_as_an_invalid_request(connect, value):
    async with connect.as_agent() as (script, peer):
        script.send_raw(json.dumps(value).encode())
        await script.expect_error(readable_id(value), INVALID_REQUEST)
        await lives(script)
        assert peer.connection.statistics().malformed == 1


@pytest.mark.needs("bad text that reaches the agent")
async def test_a_bad_request_with_the_id_of_an_unanswered_one_does_not_answer_that_one(connect):
    async with connect.as_client(asks_back) as script:
        script.send(ask("_example.com/go", 7))
        asked_back = await script.expect("_example.com/asked-back")
        script.send({"jsonrpc": "2.0", "id": 7, "method": "_x", "params": [1]})
        await script.expect_error(None, INVALID_REQUEST)
        script.answer(asked_back, {"well": True})
        assert await script.expect_result(7) == {"got": {"well": True}}


@pytest.mark.requirement("jsonrpc.error.invalid-request")
@pytest.mark.parametrize("value", BATCHES.values(), ids=BATCHES)
async def test_an_array_gets_one_answer_that_says_there_are_no_batches(connect, value):
    async with connect.as_agent() as (script, _):
        script.send_raw(json.dumps(value).encode())
        error = await script.expect_error(None, INVALID_REQUEST)
        assert "batches" in error["message"]
        await lives(script)


@pytest.mark.uvloop
async def test_an_agent_goes_on_through_everything_bad_at_once(connect):
    async with connect.as_client(asks_back) as script:
        values = [*NO_MESSAGE.values(), *BATCHES.values()]
        frames = [*NOT_JSON.values(), *(json.dumps(value).encode() for value in values)]
        script.send_raw(*frames)
        ids = [None] * len(NOT_JSON) + [readable_id(value) for value in values]
        codes = [(await script.expect_error(request_id))["code"] for request_id in ids]
        assert codes == [PARSE_ERROR] * len(NOT_JSON) + [INVALID_REQUEST] * (len(NO_MESSAGE) + len(BATCHES))
        assert await script.request("_example.com/hello") == {"hello": True}
        counted = await script.request("_example.com/statistics")
        assert counted["malformed"] == (len(frames) if connect.has("bad text that reaches the agent") else 0)


# Shaped like an answer, and wrong


WRONG_ANSWERS = {
    "both a result and an error": {"result": {}, "error": {"code": 1, "message": "no"}},
    "neither a result nor an error": {},
    "another version": {"jsonrpc": "1.0", "result": {}},
    "no version": {"jsonrpc": None, "result": {}},
}


@pytest.mark.needs("one way for all requests")
@pytest.mark.parametrize("wrong", WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
async def test_a_wrong_answer_fails_its_request_and_is_never_answered(connect, wrong):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go")))
        other = asyncio.create_task(peer.request_raw("_example.com/other"))
        call = await script.expect("session/prompt")
        await script.expect("_example.com/other")
        script.send({"jsonrpc": "2.0", "id": call["id"], **wrong})
        await asyncio.wait([asking])
        assert isinstance(asking.exception(), ProtocolError)
        assert "session/prompt" in str(asking.exception())
        await lives(script)
        assert not other.done()
        assert peer.connection.statistics().malformed == 1
        script.send(staging.result(call["id"] + 1, fine=True))
        assert await other == {"fine": True}


STRAYS = {
    "an unknown id": {"id": 99, "result": {}},
    "an error under an unknown id": {"id": 99, "error": {"code": 1, "message": "no"}},
    "the right number as a string": {"id": "2", "result": {}},
    "an error under null": {"id": None, "error": {"code": -32700, "message": "what?"}},
}


@pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)
async def test_an_answer_to_nothing_is_counted_and_never_answered(connect, stray):
    async with connect.as_agent() as (script, peer):
        notes = []
        peer.connection.observe(lambda event: notes.append(event.note))
        asking = asyncio.create_task(peer.request_raw("_example.com/ask"))
        call = await script.expect("_example.com/ask")
        assert call["id"] == 2  # `initialize` was 1
        script.send({"jsonrpc": "2.0", **stray})
        await lives(script)
        assert not asking.done()
        assert peer.connection.statistics().strays == 1
        assert f"an answer to no open request: {stray['id']!r}" in notes
        script.answer(call)
        await asking


async def test_a_second_answer_to_the_same_request_changes_nothing(connect):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request_raw("_example.com/ask"))
        call = await script.expect("_example.com/ask")
        script.send(staging.result(call, number=1), staging.result(call, number=2))
        assert await asking == {"number": 1}
        await lives(script)
        assert peer.connection.statistics().strays == 1


async def test_an_id_that_is_a_whole_number_with_a_point_is_that_number(connect):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request_raw("_example.com/ask"))
        call = await script.expect("_example.com/ask")
        script.send_raw(b'{"jsonrpc":"2.0","id":%d.0,"result":{"fine":true}}' % call["id"])
        assert await asking == {"fine": True}


async def test_an_agent_never_answers_what_is_shaped_like_an_answer(connect):
    async with connect.as_client(asks_back) as script:
        script.send(*({"jsonrpc": "2.0", **stray} for stray in STRAYS.values()))
        script.send(*({"jsonrpc": "2.0", "id": 77, **wrong} for wrong in WRONG_ANSWERS.values()))
        await lives(script)
        asked = script.call("_example.com/go")
        call = await script.expect("_example.com/asked-back")
        script.send({"jsonrpc": "2.0", "id": call["id"], "result": 1, "error": {"code": 1, "message": "no"}})
        assert "problem" in await script.expect_result(asked)


async def test_a_result_that_makes_no_sense_fails_its_request_alone(connect):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request(spoken.NewSessionRequest(cwd="/", mcp_servers=[])))
        script.answer(await script.expect("session/new"), {"sessionId": 5})
        await asyncio.wait([asking])
        assert isinstance(asking.exception(), ProtocolError)
        assert "$.sessionId" in str(asking.exception())
        await lives(script)


# Unknown and unfit


@pytest.mark.requirement("jsonrpc.error.method-not-found", "extension.request-unknown")
@pytest.mark.parametrize("method", ["session/fly", "_example.com/unknown", "", "$/unknown", "rpc.discover"])
async def test_an_unknown_method_is_named_in_the_answer(connect, method):
    async with connect.as_agent() as (script, _):
        asked = script.call(method, {})
        error = await script.expect_error(asked, METHOD_NOT_FOUND)
        assert error == {"code": METHOD_NOT_FOUND, "message": "Method not found", "data": {"method": method}}
        await lives(script)


@pytest.mark.requirement(
    "jsonrpc.notification.never-answered", "extension.notification-unknown", "protocol.unknown-dollar-ignored"
)
@pytest.mark.parametrize("method", ["session/flown", "_example.com/unknown", "$/unknown", "$/progress"])
async def test_an_unknown_notification_is_ignored_and_traced(connect, method):
    async with connect.as_agent() as (script, peer):
        notes = []
        peer.connection.observe(lambda event: notes.append(event.note))
        script.tell(method, {})
        await lives(script)
        assert peer.connection.statistics().ignored == 1
        assert f"{method} ignored: it has no handler" in notes


def strict(handlers, stage):
    @handlers.on(spoken.NewSessionRequest)
    def new(request):
        return spoken.NewSessionResponse(session_id=spoken.SessionId("s"))

    @handlers.on(spoken.PromptRequest)
    async def prompt(request):
        return spoken.ended("end_turn")

    @handlers.on(spoken.CancelNotification)
    def cancel(notification):
        stage.tell("cancelled")


@pytest.mark.requirement("jsonrpc.error.invalid-params")
@pytest.mark.cases
@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("session/new", None, "$.cwd"),
        ("session/new", {}, "$.cwd"),
        ("session/new", {"cwd": 5, "mcpServers": []}, "$.cwd"),
        ("session/new", {"cwd": "/", "mcpServers": [{"type": "http", "name": 5}]}, "$.mcpServers[0].name"),
        ("session/prompt", {"sessionId": "s", "prompt": "go"}, "$.prompt"),
        ("session/prompt", {"sessionId": "s", "prompt": [{"type": "text"}]}, "$.prompt[0].text"),
        ("session/prompt", {"sessionId": None, "prompt": []}, "$.sessionId"),
    ],
    ids=str,
)
async def test_params_that_do_not_fit_are_refused_with_their_place(connect, method, params, path):
    async with connect.as_client(strict) as script:
        error = await script.expect_error(script.call(method, params), INVALID_PARAMS)
        assert error["data"]["path"] == path
        assert error["data"]["problem"]
        assert error["message"].startswith("Invalid params")
        await lives(script)


@pytest.mark.requirement("jsonrpc.notification.never-answered")
async def test_a_notification_whose_params_do_not_fit_is_ignored_and_traced(connect):
    client, texts = Handlers(), []

    @client.on(spoken.SessionNotification)
    def update(notification):
        texts.append(text_of(notification))

    async with connect.as_agent(client) as (script, peer):
        notes = []
        peer.connection.observe(lambda event: notes.append(event.note))
        script.send(tell("session/update", sessionId=5), says("fine"), tell("session/update"))
        await lives(script)
        assert texts == ["fine"]
        assert peer.connection.statistics().ignored == 2
        assert any(note and note.startswith("session/update ignored: ") and "$.sessionId" in note for note in notes)


@pytest.mark.requirement("jsonrpc.error.invalid-request")
async def test_an_id_that_is_being_worked_on_is_refused_under_null_and_free_afterwards(connect):
    client, finish = Handlers(), asyncio.Event()

    @client.on_request("_example.com/work")
    async def work(params):
        await finish.wait()
        return params

    async with connect.as_agent(client) as (script, _):
        script.send(ask("_example.com/work", "a", first=True), ask("_example.com/work", "a", first=False))
        error = await script.expect_error(None, INVALID_REQUEST)
        assert "'a'" in error["message"]
        await lives(script)
        finish.set()
        assert await script.expect_result("a") == {"first": True}
        script.send(ask("_example.com/work", "a", again=True))
        assert await script.expect_result("a") == {"again": True}


@pytest.mark.requirement("jsonrpc.answer.id-echoed")
@pytest.mark.parametrize("request_id", [0, -1, 1, 2**53, "", "1", "null", "ö\n\\", 10**30], ids=repr)
async def test_any_id_comes_back_as_it_was(connect, request_id):
    client = Handlers()
    client.on_request("_example.com/work")(lambda params: params)
    async with connect.as_agent(client) as (script, _):
        script.send(ask("_example.com/work", request_id))
        assert await script.expect_result(request_id) == {}


@pytest.mark.cases
@pytest.mark.parametrize("kind", ["request", "notification"])
async def test_no_depth_of_nesting_ends_the_link(connect, kind):
    client = Handlers()
    client.on_request("_example.com/work")(lambda _: None)
    client.on_notification("_example.com/news")(lambda _: None)
    async with connect.as_agent(client) as (script, _):
        for depth in [*range(900, 1000), 5_000, 200_000]:
            nested = b'{"a":' * depth + b"1" + b"}" * depth
            if kind == "request":
                script.send_raw(b'{"jsonrpc":"2.0","id":%d,"method":"_example.com/work","params":%b}' % (depth, nested))
                answer = await script.receive()
                assert answer["id"] == depth
                assert "result" in answer or answer["error"]["code"] in (INVALID_REQUEST, INVALID_PARAMS)
            else:
                script.send_raw(b'{"jsonrpc":"2.0","method":"_example.com/news","params":%b}' % nested)
                script.call("_example.com/work", id="next")
                while (await script.receive())["id"] != "next":
                    pass
        await lives(script)


# Over the limit

LIMIT = {"limit": 10_000}
TOO_LONG = "x" * 20_000


@pytest.mark.needs("frames that can be skipped")
async def test_a_request_over_the_limit_is_refused_under_its_id(connect):
    async with connect.as_client(asks_back, transport=LIMIT) as script:
        script.send(ask("_example.com/hello", "large", text=TOO_LONG), ask("_example.com/hello", 2))
        error = await script.expect_error("large", INVALID_REQUEST)
        assert "20,0" in error["message"]
        assert await script.expect_result(2) == {"hello": True}


@pytest.mark.needs("frames that can be skipped")
async def test_a_notification_or_nonsense_over_the_limit_is_refused_under_null(connect):
    async with connect.as_client(asks_back, transport=LIMIT) as script:
        script.send(tell("_example.com/news", text=TOO_LONG))
        await script.expect_error(None, INVALID_REQUEST)
        script.send_raw(TOO_LONG.encode())
        await script.expect_error(None, INVALID_REQUEST)
        await lives(script)


@pytest.mark.needs("frames that can be skipped")
async def test_an_answer_over_the_limit_fails_its_request_alone(connect):
    async with connect.as_agent(transport=LIMIT) as (script, peer):
        asking = asyncio.create_task(peer.request_raw("_example.com/large"))
        other = asyncio.create_task(peer.request_raw("_example.com/small"))
        large, small = await script.expect("_example.com/large"), await script.expect("_example.com/small")
        script.send({"jsonrpc": "2.0", "result": {"text": TOO_LONG}, "id": large["id"]})
        script.answer(small, {"fine": True})
        assert await other == {"fine": True}
        await asyncio.wait([asking])
        assert isinstance(asking.exception(), ProtocolError)
        assert "over the limit" in str(asking.exception())
        await lives(script)


@pytest.mark.needs("frames that can be skipped")
async def test_a_client_refuses_calls_over_the_limit_and_leaves_long_pollution_alone(connect):
    async with connect.as_agent(transport=LIMIT) as (script, peer):
        script.send(ask("fs/write_text_file", 1, text=TOO_LONG))
        await script.expect_error(1, INVALID_REQUEST)
        script.send_raw(TOO_LONG.encode())
        await lives(script)
        assert peer.connection.statistics().malformed == 2


# The end of the input


@pytest.mark.needs("a process")
@pytest.mark.requirement("stdio.agent-on-standard-streams")
async def test_a_last_line_without_a_newline_is_handled_and_answered(connect):
    lines = [ask("initialize", 1, **spoken.hello), ask("session/prompt", 2, **prompt_params())]
    pipe = asyncio.subprocess.PIPE
    async with connect.command(strict) as (command, _):
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        output, _ = await process.communicate(b"\n".join(json.dumps(line).encode() for line in lines))
    assert [json.loads(line)["id"] for line in output.splitlines()] == [1, 2]
    assert json.loads(output.splitlines()[1])["result"] == spoken.ending()
    assert output.endswith(b"\n")
    assert process.returncode == 0


# All of it by chance


@pytest.mark.parametrize("seed", range(20))
async def test_a_link_whose_frames_are_corrupted_lives_and_every_request_ends(clock, seed):
    agent = Handlers()
    agent.on_request("_example.com/echo")(lambda params: params)

    def corrupting(transport):
        faults = Faults(corrupt=0.3, duplicate=0.1)
        return FaultyTransport(transport, incoming=faults, outgoing=faults, seed=seed)

    outcomes = []

    async def call(peer, number):
        try:
            async with asyncio.timeout(5):
                outcomes.append(await peer.request_raw("_example.com/echo", {"n": number / 7}))
        except Exception as error:
            outcomes.append(error)

    async with connected(client=agent, through=corrupting, initialize=False) as link:
        calls = [asyncio.create_task(call(link.agent, number)) for number in range(200)]
        for _ in range(100):
            await asyncio.sleep(0)  # all that can be said is said
        await clock.advance(6)
        await asyncio.gather(*calls)
        assert sum(isinstance(outcome, dict) for outcome in outcomes) > 20
        for peer in link:
            assert peer.connection.is_open
            assert peer.connection.statistics().pending == peer.connection.statistics().handling == 0
