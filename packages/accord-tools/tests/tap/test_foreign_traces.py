"""Exports without secrets, spans of OpenTelemetry, and the traces of other programs."""

import io
import json
import sqlite3

import pytest

from accord import trace
from accord.errors import AccordError
from accord.trace.foreign_traces import import_trace
from accord.trace.otlp import as_otlp
from accord.trace.trace_entries import entries
from accord.trace.trace_redaction import Redaction
from tests.tap.traces import CONVERSATION, chunk, events, frame, request, update, write

HEADER = trace.TraceHeader(1, "2026-11-22T10:00:00.000+00:00", "tap", command=("agent", "--api-key", "s3cret", "--acp"))
GITHUB = "ghp_" + "a1" * 18
SECRETS = {
    "a token in a prompt": (request(1, "session/prompt", prompt=[{"type": "text", "text": f"use {GITHUB}"}]), GITHUB),
    "a bearer in an answer": (frame(id=1, result={"content": "Authorization: Bearer abcdef0123456789"}), "abcdef0123"),
    "a member": (request(1, "_x", apiKey="s3cret"), "s3cret"),
    "a variable": (request(1, "session/new", mcpServers=[{"env": [{"name": "A", "value": "s3cret"}]}]), "s3cret"),
    "a URL": (chunk("see https://ada:s3cret@e.example/?q=s3cret"), "s3cret"),
}


@pytest.mark.parametrize(("content", "secret"), SECRETS.values(), ids=SECRETS)
def test_an_export_replaces_what_it_recognises_and_counts_it(content, secret):
    redaction = Redaction()
    (event,) = redaction.events([trace.TraceEvent(0, "in", content)])
    assert secret not in event.frame.decode()
    assert json.loads(event.frame)
    assert sum(redaction.counts.values()) >= 1


def test_the_options_of_commands_are_hidden_in_the_header_and_in_events():
    redaction = Redaction()
    process = {"event": "started", "command": ["agent", "--token=s3cret", f"--x={GITHUB}"]}
    (event,) = redaction.events([trace.TraceEvent(0, "in", process=process)])
    header = redaction.header(HEADER)
    assert event.process["command"] == ["agent", "--token=***", "--x=***"]
    assert header.command == ("agent", "--api-key", "***", "--acp")
    assert header.redacted == {"options": 2, "tokens": 1}


def test_a_shape_keeps_the_course_of_a_conversation_and_no_text():
    redaction = Redaction(shape=True)
    shaped = list(redaction.events(events()))
    before, after = list(entries(events())), list(entries(shaped))
    same = ("kind", "method", "update", "session", "status")
    assert [[getattr(it, name) for name in same] for it in after] == [
        [getattr(it, name) for name in same] for it in before
    ]
    assert [it.duration for it in after] == [it.duration for it in before]
    prompt = after[5]
    assert prompt.text == "xxx xx"
    written = b"".join(event.frame or (event.stderr or "").encode() for event in shaped)
    for text in (b"Fix", b"main.py", b"print", b"rate limit", b"/project"):
        assert text not in written


DEEP = b'{"jsonrpc":"2.0","method":"_x","params":' + b'{"a":' * 10_000 + b'"text"' + b"}" * 10_001


@pytest.mark.parametrize("content", [DEEP, b"\xff not text", b'{"a":"\\ud83d"}', b"7"])
def test_no_frame_is_too_odd_for_an_export(content):
    for shape in (False, True):
        (event,) = Redaction(shape=shape).events([trace.TraceEvent(0, "in", content)])
        assert event.frame is not None
        assert b"not text" not in event.frame or not shape


def test_an_exported_trace_reads_like_one_and_says_what_was_replaced(accord, tmp_path):
    write(tmp_path / "wire.jsonl", header=HEADER, secrets=True)
    done = accord("export", "wire.jsonl", "-o", "out.jsonl")
    assert done.stderr == "accord trace export: replaced 1 options\n"
    header = trace.read_header(tmp_path / "out.jsonl")
    assert (header.redacted, header.masked) == ({"options": 1}, True)
    before, after = (list(trace.read(tmp_path / name)) for name in ("wire.jsonl", "out.jsonl"))
    assert [(it.time, it.frame, it.stderr, it.process) for it in after] == [
        (it.time, it.frame, it.stderr, it.process) for it in before
    ]
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600
    accord("export", "wire.jsonl", "--shape", "-o", "out.jsonl.gz")
    assert len(list(trace.read(tmp_path / "out.jsonl.gz"))) == len(before)


def test_an_export_does_not_destroy_its_own_source(accord, tmp_path):
    path = write(tmp_path / "wire.jsonl")
    before = path.read_bytes()
    assert "choose another file" in accord("export", "wire.jsonl", "-o", "./wire.jsonl", code=2).stderr
    assert path.read_bytes() == before


def spans_of(conversation=CONVERSATION, **options):
    file = io.BytesIO()
    writer = trace.TraceFile(file, header=HEADER, began=0.0)
    for event in events(conversation):
        writer(event)
    file.seek(0)
    (resource,) = as_otlp(HEADER, entries(trace.read(file)), **options)["resourceSpans"]
    return resource["scopeSpans"][0]["spans"]


def attributes(span):
    return {it["key"]: next(iter(it["value"].values())) for it in span["attributes"]}


def test_turns_tools_and_permissions_are_spans_below_each_other():
    spans = spans_of()
    by_name = {span["name"]: span for span in reversed(spans)}
    turn, tool = by_name["invoke_agent a"], by_name["execute_tool edit"]
    permission, file = by_name["acp.permission"], by_name["fs/read_text_file"]
    assert tool["parentSpanId"] == file["parentSpanId"] == turn["spanId"]
    assert permission["parentSpanId"] == tool["spanId"]
    assert len({span["traceId"] for span in (turn, tool, permission, file)}) == 1
    assert len({span["spanId"] for span in spans}) == len(spans)
    known = attributes(turn)
    assert known["gen_ai.operation.name"] == "invoke_agent"
    assert (known["gen_ai.agent.name"], known["gen_ai.conversation.id"]) == ("a", "s1")
    assert (known["acp.stop_reason"], known["rpc.method"]) == ("end_turn", "session/prompt")
    assert int(turn["endTimeUnixNano"]) - int(turn["startTimeUnixNano"]) == 6_500_000_000
    assert [it["name"] for it in turn["events"]] == ["acp.first_update", "acp.first_text"]
    assert attributes(permission)["acp.permission.outcome"] == "selected yes"
    failed = by_name["session/load"]
    assert (failed["status"]["code"], attributes(failed)["error.type"]) == (2, "-32002")
    assert spans == spans_of()


def test_content_is_in_spans_only_if_it_was_asked_for():
    assert "Fix it" not in json.dumps(spans_of())
    turn = next(span for span in spans_of(content=True) if span["name"].startswith("invoke_agent"))
    assert "Fix it" in attributes(turn)["gen_ai.input.messages"]
    assert "I will look." in attributes(turn)["gen_ai.output.messages"]


def test_a_turn_is_a_part_of_the_trace_that_its_prompt_names():
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    prompt = request(1, "session/prompt", sessionId="s", prompt=[], _meta={"traceparent": parent})
    call = update("s", "tool_call", toolCallId="t", kind="read")
    turn, tool = spans_of([(0.0, "out", {"frame": prompt}), (1.0, "in", {"frame": call})])
    assert (turn["traceId"], turn["parentSpanId"]) == ("a" * 32, "b" * 16)
    assert (tool["traceId"], tool["parentSpanId"]) == ("a" * 32, turn["spanId"])


def wire(found):
    return [(it.direction, json.loads(it.frame)) for it in found if it.frame]


EXPECTED = [
    ("out" if way == "out" else "in", json.loads(what["frame"])) for _, way, what in CONVERSATION if "frame" in what
]


def as_toad(path):
    # Toad 0.6.20 logs what it sends as Python writes it.
    lines = [f"[client] {message}" if way == "out" else f"[agent] {json.dumps(message)}" for way, message in EXPECTED]
    path.write_text("\n".join(["some other line", *lines, "[error] no such file", ""]))


def as_zed(path):
    ways = {"out": "outgoing", "in": "incoming"}
    path.write_text(json.dumps([{"_direction": ways[way], "_type": "request", **message} for way, message in EXPECTED]))


def as_bare(path):
    path.write_text("".join(json.dumps(message) + "\n" for _, message in EXPECTED))


def as_database(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (id INTEGER, name TEXT, agent_command TEXT, started_at INTEGER)")
        database.execute(
            "CREATE TABLE messages (session_id INTEGER, seq INTEGER, timestamp INTEGER, direction TEXT, raw TEXT)"
        )
        database.execute("INSERT INTO sessions VALUES (1, 'old', 'agent --acp', 1000), (2, 'new', 'agent --acp', 2000)")
        ways = {"out": "editor-to-agent", "in": "agent-to-editor"}
        rows = [(2, number, 2000 + number, ways[way], json.dumps(it)) for number, (way, it) in enumerate(EXPECTED)]
        database.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", rows)
    database.close()


OTHERS = {"toad": as_toad, "zed": as_zed, "bare": as_bare, "devtools database": as_database}


@pytest.mark.parametrize(("name", "make"), OTHERS.items(), ids=OTHERS)
def test_a_trace_of_another_program_becomes_one_of_ours(accord, tmp_path, name, make):
    make(tmp_path / "other")
    accord("import", "other", "-o", "wire.jsonl")
    header = trace.read_header(tmp_path / "wire.jsonl")
    assert header.imported == name
    assert wire(trace.read(tmp_path / "wire.jsonl")) == EXPECTED


def test_a_trace_survives_the_way_to_acp_devtools_and_back(accord, tmp_path):
    write(tmp_path / "wire.jsonl", header=HEADER)
    accord("export", "wire.jsonl", "--format", "devtools", "-o", "out.json")
    exported = json.loads((tmp_path / "out.json").read_text())
    assert (exported["version"], exported["session"]["clientName"]) == (1, "zed")
    assert {it["kind"] for it in exported["messages"]} == {"request", "response", "error", "notification"}
    assert exported["messages"][0]["timestamp"] == 1795341600100
    accord("import", "out.json", "-o", "back.jsonl")
    before, after = list(trace.read(tmp_path / "wire.jsonl")), list(trace.read(tmp_path / "back.jsonl"))
    assert wire(after) == wire(before)
    times = [it.time for it in before if it.frame]
    assert [it.time for it in after] == pytest.approx([time - times[0] for time in times], abs=0.001)


def passed(kind, time, sender, to, **members):
    return {"type": kind, "ts": time, "protocol": "acp", "from": sender, "to": to, **members}


def test_a_trace_of_the_rust_conductor_keeps_its_components(tmp_path):
    lines = [
        passed("request", 0.5, "Client", "Proxy", id=1, method="initialize", params={"protocolVersion": 1}),
        passed("request", 0.6, "Proxy", "Agent", id=2, method="initialize", params={}),
        passed("response", 0.7, "Agent", "Proxy", id=2, is_error=False, payload={"a": 1}),
        passed("response", 0.8, "Proxy", "Client", id=1, is_error=True, payload={"code": 1}),
        passed("notification", 0.9, "Agent", "Proxy", method="session/update", params={}),
    ]
    (tmp_path / "chain.jsons").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = import_trace(tmp_path / "chain.jsons")
    assert (found.format, found.role) == ("conductor", "conductor")
    assert [(it.time, it.direction, it.hop) for it in found.events] == [
        (0.5, "out", ("Client", "Proxy")),
        (0.6, "out", ("Proxy", "Agent")),
        (0.7, "in", ("Agent", "Proxy")),
        (0.8, "in", ("Proxy", "Client")),
        (0.9, "in", ("Agent", "Proxy")),
    ]
    assert [it.method for it in entries(found.events)] == ["initialize"] * 4 + ["session/update"]
    assert json.loads(found.events[3].frame)["error"] == {"code": 1}


@pytest.mark.parametrize(
    "content",
    [b"", b"hello\n", b"[]", b"7", b'{"messages":[]}', b'{"accord-trace":1}\n', b"[[[[", b'{"x":1}\n'],
    ids=str,
)
def test_what_is_no_known_trace_is_refused(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(AccordError):
        import_trace(tmp_path / "other")


def test_a_session_that_a_database_lacks_is_refused(tmp_path):
    as_database(tmp_path / "db")
    assert import_trace(tmp_path / "db", session=1).events == []
    with pytest.raises(AccordError, match=r"no session 9 in .*; it has \[1, 2\]"):
        import_trace(tmp_path / "db", session=9)
