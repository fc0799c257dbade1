"""Watching a link: statistics, observers, the trace file, trace contexts and spans."""

from __future__ import annotations

import asyncio
import io
import json
import sys

import pytest

from accord import trace, v1
from accord.engine.handlers import Handlers
from accord.engine.lanes import WEIGHT
from accord.engine.spans import Spans
from accord.errors import AccordError, DecodeError, PeerError, RequestError
from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame
from accord.testing import connected
from tests.interaction.staging import ask, prompt_params, says, tell, text_of
from tests.interaction.versions import spoken

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def updates():
    client = Handlers()

    @client.on(spoken.SessionNotification)
    def update(notification): ...

    return client


# Statistics


@pytest.mark.needs("output that is taken at once")
@pytest.mark.uvloop
async def test_statistics_count_what_was_sent_received_and_odd(connect):
    client, may_go_on = updates(), asyncio.Event()

    @client.on_request("_example.com/work")
    async def work(params):
        await may_go_on.wait()

    async with connect.as_agent(client) as (script, peer):
        before = peer.connection.statistics()
        asking = asyncio.create_task(peer.request_raw("_example.com/ask"))
        call = await script.receive_raw()
        script.send(says("x"), tell("_example.com/unknown"), ask("_example.com/work", 1), {"jsonrpc": "2.0"})
        script.send({"jsonrpc": "2.0", "id": 99, "result": {}})
        script.send_raw(b"hello")
        await script.expect_error(None)
        await script.expect_silence()
        counted = peer.connection.statistics()
        assert (counted.frames_in - before.frames_in, counted.frames_out - before.frames_out) == (7, 3)
        said = {way: sum(len(frame) for w, frame in script.conversation if w == way) for way in ("in", "out")}
        assert counted.bytes_in - before.bytes_in == said["out"]
        assert counted.bytes_out - before.bytes_out == said["in"]
        assert (counted.pending, counted.handling, counted.queued, counted.unsent) == (1, 1, 0, 0)
        assert (counted.ignored, counted.malformed, counted.pollution, counted.strays) == (1, 2, 1, 1)
        may_go_on.set()
        await script.expect_result(1)
        script.answer(json.loads(call))
        await asking
        counted = peer.connection.statistics()
        assert (counted.pending, counted.handling) == (0, 0)


async def test_statistics_count_what_waits_for_its_handler(connect):
    client, may_go_on = Handlers(), asyncio.Event()

    @client.on(spoken.SessionNotification)
    async def update(notification):
        await may_go_on.wait()

    async with connect.as_agent(client) as (script, peer):
        script.send(says("running"), says("waiting"), says("waiting"))
        await script.expect_silence()
        size = len(json.dumps(says("waiting")["params"], separators=(",", ":")))
        assert peer.connection.statistics().queued == 2 * (size + WEIGHT)
        may_go_on.set()
        await script.expect_silence()
        assert peer.connection.statistics().queued == 0


# Observers


async def test_observers_see_every_frame_in_the_order_of_the_wire_before_it_is_handled(connect):
    client, log = Handlers(), []

    @client.on(spoken.SessionNotification)
    def update(notification):
        log.append(f"handled {text_of(notification)}")

    @client.on_request("_example.com/work")
    def work(params):
        log.append("worked")
        return {}

    async with connect.as_agent(client) as (script, peer):
        events = []

        def observe(event):
            events.append(event)
            log.append(f"{event.direction} {type(event.message).__name__}")

        peer.connection.observe(observe)
        script.send(says("one"), ask("_example.com/work", 1), says("two"))
        await script.expect_result(1)
        assert log == [
            "in NotificationFrame", "handled one", "in RequestFrame", "worked", "out ResponseFrame",
            "in NotificationFrame", "handled two",
        ]  # fmt: skip
        assert [event.frame for event in events] == [
            frame for _, frame in (*script.conversation[:2], script.conversation[3], script.conversation[2])
        ]
        assert [event.time for event in events] == sorted(event.time for event in events)
        assert isinstance(events[1].message, RequestFrame)
        assert isinstance(events[2].message, ResponseFrame)


async def test_several_observers_see_the_same_and_one_that_fails_harms_nobody(connect, caplog):
    async with connect.as_agent(updates()) as (script, peer):
        seen = []

        def fail(event):
            raise ValueError("no")

        peer.connection.observe(fail)
        peer.connection.observe(seen.append)
        script.send(says("x"))
        await script.expect_silence()
        assert len(seen) == 3
        assert "an observer of the connection failed" in caplog.text


async def test_observers_hear_what_became_of_odd_frames(connect):
    async with connect.as_agent() as (script, peer):
        seen = []
        peer.connection.observe(lambda event: seen.append(event.note or type(event.message)))
        script.send_raw(b"hello")
        script.send([], tell("_example.com/unknown"), {"jsonrpc": "2.0", "id": 99, "result": {}})
        await script.expect_error(None)
        await script.expect_silence()
        notes = [it for it in seen if isinstance(it, str)]
        assert [note.partition(":")[0] for note in notes] == [
            "malformed",
            "malformed",
            "_example.com/unknown ignored",
            "an answer to no open request",
        ]
        assert seen[:2] == [Malformed, notes[0]]


# The trace file


async def test_a_trace_file_holds_the_wire_byte_for_byte_and_reads_back(connect, tmp_path):
    path = tmp_path / "link.jsonl"
    async with connect.as_agent(updates()) as (script, peer):
        writer = trace.TraceFile(path, role="client", peer="script")
        peer.connection.observe(writer)
        script.send(says("ümlaut\n\u2028 end"), ask("_example.com/work", 1))
        await script.expect_error(1)
        script.send_raw(b"not json \xff", b'{ "jsonrpc" : "2.0", "method":"_example.com/spaced"}', b"[1, 2]")
        await script.expect_error(None)
        await script.expect_silence()
        writer.close()

        lines = path.read_bytes().splitlines()
        header = json.loads(lines[0])
        assert header["accord-trace"] == 1
        assert (header["role"], header["peer"]) == ("client", "script")
        assert header["started"].endswith("+00:00")

        recorded = [json.loads(line) for line in lines[1:]]
        assert {it["dir"] for it in recorded} == {"in", "out"}
        times = [it["t"] for it in recorded]
        assert times == sorted(times)
        assert recorded[0]["frame"] == says("ümlaut\n\u2028 end")
        assert b'"frame":{ "jsonrpc" : "2.0", "method":"_example.com/spaced"}' in lines[6]
        assert {"not json \ufffd", "not json \\ufffd"} & {it.get("text") for it in recorded}

        events = list(trace.read(path))
        assert len(events) == len(recorded)
        assert [event.direction for event in events] == [it["dir"] for it in recorded]
        assert isinstance(events[0].message, NotificationFrame)
        assert [event.note for event in events if event.note] == [it["note"] for it in recorded if "note" in it]


def written(*frames):
    file = io.BytesIO()
    writer = trace.TraceFile(file)
    for frame in frames:
        writer(trace.TraceEvent(1.0, "in", frame))
    file.seek(0)
    return file


ODD_BUT_READ = {
    "bytes that are no text": b'{"jsonrpc":"2.0","method":"_x","params":{"text":"\xff"}}',
    "half of an emoji": b'{"jsonrpc":"2.0","method":"_x","params":{"text":"\\ud83d"}}',
    "a number beyond all bounds": b'{"jsonrpc":"2.0","method":"_x","params":{"n":1e999}}',
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"_x"}',
    "newlines between members": b'{"jsonrpc":"2.0",\n"method":"_x"}',
    "a deep nest": b'{"jsonrpc":"2.0","method":"_x","params":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
}


@pytest.mark.parametrize("frame", ODD_BUT_READ.values(), ids=ODD_BUT_READ)
def test_a_trace_file_with_an_odd_frame_reads_back(frame):
    before = trace.TraceEvent(1.0, "in", frame).message
    (event,) = trace.read(written(frame))
    assert type(event.message) is type(before)
    if isinstance(before, NotificationFrame):
        assert event.message.method == before.method


def test_a_trace_file_whose_last_line_was_cut_off_reads_back_without_it():
    file = written(b'{"jsonrpc":"2.0","method":"_a"}', b'{"jsonrpc":"2.0","method":"_b"}')
    cut = io.BytesIO(file.getvalue()[:-10])
    assert [event.message.method for event in trace.read(cut)] == ["_a"]


@pytest.mark.parametrize("content", [b"", b"{}\n", b'{"accord-trace":2}\n', b"hello\n", b'{"accord-trace":1}\nhello\n'])
def test_what_is_no_trace_file_is_refused(content):
    with pytest.raises(DecodeError):
        list(trace.read(io.BytesIO(content)))


# Trace contexts


def traced(handlers, stage):
    """Asks back from every kind of handler."""

    def asks(path):
        async def handler(request, context):
            await context.peer.request_raw("_example.com/ready")
            asking = spoken.question(request.session_id, path)
            async with asyncio.TaskGroup() as group:
                group.create_task(context.peer.request(asking, force=True))
            return spoken.ended("end_turn")

        return handler

    handlers.on(spoken.PromptRequest)(asks("/from-prompt"))

    @handlers.on_request("_example.com/set")
    def set_mode(params, context):
        stage.tell("mode set")

    @handlers.on(spoken.AuthenticateRequest)
    def authenticate(request, context):
        async def later():
            await context.peer.request(spoken.question("s", "/later"), force=True)

        return later()

    @handlers.on_notification("_example.com/news")
    async def news(params, context):
        await context.peer.request(spoken.question("s", "/from-news"), force=True)

    @handlers.on(spoken.NewSessionRequest)
    async def new(request, context):
        asking = spoken.question("s", "/own", meta={"traceparent": "mine", "a": 1})
        await context.peer.request(asking, force=True)
        return spoken.NewSessionResponse(session_id=spoken.SessionId("s"))


async def answers_file(script, path):
    read = await script.expect(spoken.question_method)
    assert spoken.topic_on_the_wire(read["params"]) == path
    script.answer(read, spoken.telling())
    return read["params"].get("_meta")


@pytest.mark.requirement("meta.trace-keys-reserved")
async def test_a_trace_context_goes_along_with_the_requests_of_its_handler(connect):
    async with connect.as_client(traced) as script:
        meta = {"traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2", "other": 5}
        asked = script.call("session/prompt", prompt_params() | {"_meta": meta})
        script.answer(await script.expect("_example.com/ready"))
        carried = await answers_file(script, "/from-prompt")
        assert carried == {"traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2"}
        await script.expect_result(asked)


async def test_a_trace_context_goes_along_also_from_what_a_def_handler_returned(connect):
    async with connect.as_client(traced) as script:
        asked = script.call(spoken.login_method, {"methodId": "m", "_meta": {"traceparent": PARENT}})
        assert await answers_file(script, "/later") == {"traceparent": PARENT}
        await script.expect_result(asked)


async def test_a_trace_context_never_reaches_another_request(connect):
    async with connect.as_client(traced) as script:
        mode = {"sessionId": "s", "modeId": "m", "_meta": {"traceparent": PARENT}}
        await script.request("_example.com/set", mode)
        first = script.call("session/prompt", prompt_params())
        ready = await script.expect("_example.com/ready")
        await script.request("_example.com/set", mode)
        script.answer(ready)
        assert await answers_file(script, "/from-prompt") is None
        await script.expect_result(first)
        script.tell("_example.com/news")
        assert await answers_file(script, "/from-news") is None


async def test_what_an_author_puts_into_meta_stays(connect):
    async with connect.as_client(traced) as script:
        asked = script.call("session/new", {"cwd": "/", "mcpServers": [], "_meta": {"traceparent": PARENT, "a": 2}})
        assert await answers_file(script, "/own") == {"traceparent": "mine", "a": 1}
        await script.expect_result(asked)


@pytest.mark.requirement("meta.nothing-assumed")
@pytest.mark.parametrize("meta", [5, "x", [], None, {}, {"traceparent": 5}, {"traceparent": None, "tracestate": []}])
async def test_nothing_is_assumed_about_meta(connect, meta):
    client = Handlers()

    @client.on(spoken.QuestionRequest)
    async def read(request, context):
        await context.peer.request(spoken.ListSessionsRequest(), force=True)
        return spoken.told("text")

    async with connect.as_agent(client) as (script, _):
        asked = script.call(spoken.question_method, spoken.question_params("s", "/f", _meta=meta))
        listing = await script.expect("session/list")
        assert "_meta" not in listing["params"]
        script.answer(listing, {"sessions": []})
        assert await script.expect_result(asked) == spoken.telling("text")


# Spans


@pytest.fixture
def exported():
    """Makes spans that stay here."""
    pytest.importorskip("opentelemetry.sdk", reason="needs pip install opentelemetry-sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    exporter.spans = Spans(provider.get_tracer("test"))
    return exporter


def asking_back():
    agent, client = Handlers(), Handlers()

    @agent.on(spoken.PromptRequest)
    async def prompt(request, context):
        if request.prompt[0].text == "fail":
            raise ValueError("no")
        await context.peer.request(spoken.question(request.session_id, "/f"), force=True)
        return spoken.ended("end_turn")

    @client.on(spoken.QuestionRequest)
    async def read(request):
        return spoken.told("text")

    return agent, client


async def test_each_request_is_a_span_on_both_sides_and_they_hang_together(exported):
    agent, client = asking_back()
    async with connected(agent, client, spans=exported.spans) as link:
        await link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go"))
    spans = [span for span in exported.get_finished_spans() if span.name != "initialize"]
    told = [(span.name, span.kind.name, span.attributes["accord.role"]) for span in spans]
    assert told == [
        ("fs/read_text_file", "SERVER", "client"),
        ("fs/read_text_file", "CLIENT", "agent"),
        ("session/prompt", "SERVER", "agent"),
        ("session/prompt", "CLIENT", "client"),
    ]
    read_served, read_asked, prompt_served, prompt_asked = spans
    assert prompt_asked.parent is None
    assert prompt_served.parent.span_id == prompt_asked.context.span_id
    assert read_asked.parent.span_id == prompt_served.context.span_id
    assert read_served.parent.span_id == read_asked.context.span_id
    assert len({span.context.trace_id for span in spans}) == 1
    assert prompt_served.attributes["accord.session"] == "s"
    assert prompt_served.attributes["rpc.method"] == "session/prompt"


async def test_a_turn_s_span_names_its_conversation_how_it_ended_and_what_it_used(exported):
    agent = Handlers()

    @agent.on(v1.PromptRequest)
    async def prompt(request):
        return v1.PromptResponse("max_tokens", usage=v1.Usage(total_tokens=10, input_tokens=7, output_tokens=3))

    async with connected(agent, Handlers(), spans=exported.spans) as link:
        await link.client.request(v1.PromptRequest.of(v1.SessionId("s"), "go"))
    served, asked = [span.attributes for span in exported.get_finished_spans() if span.name == "session/prompt"]
    for attributes in (served, asked):
        assert attributes["gen_ai.operation.name"] == "invoke_agent"
        assert attributes["gen_ai.conversation.id"] == "s"
        assert attributes["acp.stop_reason"] == "max_tokens"
        assert attributes["gen_ai.response.finish_reasons"] == ("max_tokens",)
        assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (7, 3)


async def test_a_failure_is_a_failed_span_on_both_sides(exported):
    agent, client = asking_back()
    async with connected(agent, client, spans=exported.spans) as link:
        with pytest.raises(PeerError):
            await link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "fail"))
    spans = [span for span in exported.get_finished_spans() if span.name == "session/prompt"]
    assert [span.status.status_code.name for span in spans] == ["ERROR", "ERROR"]


async def test_a_span_records_an_error_s_text_without_the_secrets_of_its_urls_and_cut(exported):
    agent, client = Handlers(), Handlers()
    text = "no access to https://ada:s3cret@example.com/?key=s3cret " + "x" * 1_000_000

    @agent.on(spoken.PromptRequest)
    async def prompt(request):
        raise RequestError(-32000, text)

    async with connected(agent, client, spans=exported.spans) as link:
        with pytest.raises(PeerError):
            await link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go"))
        answered = asyncio.get_running_loop().create_future()
        link.client.post(spoken.PromptRequest.of(spoken.SessionId("s"), "go")).then(answered.set_result)
        assert isinstance(await answered, PeerError)
    spans = [span for span in exported.get_finished_spans() if span.name == "session/prompt"]
    assert len(spans) == 4
    for span in spans:
        [event] = span.events
        assert event.name == "exception"
        assert "https://***@example.com/?key=***" in event.attributes["exception.message"]
        assert "s3cret" not in span.to_json()
        assert len(span.to_json()) < 40_000


async def test_requests_at_the_same_time_have_spans_of_their_own(exported):
    agent, client = asking_back()
    async with connected(agent, client, spans=exported.spans) as link:
        await asyncio.gather(
            *(link.client.request(spoken.PromptRequest.of(spoken.SessionId(str(number)), "go")) for number in range(5))
        )
    spans = {span.context.span_id: span for span in exported.get_finished_spans() if span.name != "initialize"}
    assert len(spans) == 20
    assert len({span.context.trace_id for span in spans.values()}) == 5
    for span in spans.values():
        if span.parent is not None:
            assert spans[span.parent.span_id].attributes["accord.session"] == span.attributes["accord.session"]


def test_a_missing_extra_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(AccordError, match=r"pip install .*\[otel\]"):
        Spans()
