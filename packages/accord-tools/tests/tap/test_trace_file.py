"""What a trace records beside frames, and files that are compressed or still growing."""

import gzip
import io
import json

import pytest

from accord import trace
from accord.errors import DecodeError

HELLO = b'{"jsonrpc":"2.0","method":"_hello"}'


def lines(content):
    return [json.loads(line) for line in content.splitlines()]


def recorded(*events, **options):
    file = io.BytesIO()
    writer = trace.TraceFile(file, began=0.0, **options)
    for event in events:
        writer(event)
    return file.getvalue()


EVENTS = {
    "a line of standard error": ({"stderr": "Traceback: ümlaut"}, {"stderr": "Traceback: ümlaut"}),
    "an event of the process": ({"process": {"event": "exited", "code": 3}},) * 2,
    "a frame on one of several links": ({"frame": HELLO, "link": 7}, {"frame": json.loads(HELLO), "link": 7}),
    "a frame on a link with a name": ({"frame": HELLO, "link": "a"}, {"frame": json.loads(HELLO), "link": "a"}),
}


@pytest.mark.parametrize(("given", "written"), EVENTS.values(), ids=EVENTS)
def test_an_event_is_written_as_the_format_says_and_reads_back(given, written):
    content = recorded(trace.TraceEvent(1.5, "in", **given))
    assert lines(content)[1] == {"t": 1.5, "dir": "in", **written}
    (event,) = trace.read(io.BytesIO(content))
    assert {name: getattr(event, name) for name in given} == given


def test_what_is_no_text_does_not_make_a_line_unreadable():
    content = recorded(trace.TraceEvent(0.0, "in", process={"event": "started", "command": ["\ud83d"]}))
    (event,) = trace.read(io.BytesIO(content))
    assert event.process == {"event": "started", "command": ["?"]}


def test_urls_in_standard_error_lose_their_secrets():
    content = recorded(trace.TraceEvent(0.0, "in", stderr="see https://ada:secret@example.com/?token=secret"))
    assert lines(content)[1]["stderr"] == "see https://***@example.com/?token=***"


def test_the_header_tells_what_was_started_and_where():
    header = trace.TraceHeader(1, "2026-11-22T10:00:00.000+00:00", "tap", command=("agent", "--acp"), cwd="/project")
    content = recorded(header=header)
    assert lines(content)[0] == {
        "accord-trace": 1,
        "started": "2026-11-22T10:00:00.000+00:00",
        "role": "tap",
        "masked": True,
        "command": ["agent", "--acp"],
        "cwd": "/project",
    }
    assert trace.read_header(io.BytesIO(content)).command == ("agent", "--acp")


def test_a_reader_ignores_keys_and_events_that_it_does_not_know():
    content = b'{"accord-trace":1,"weather":"fine"}\n{"t":1,"dir":"in","weather":[1]}\n'
    (event,) = trace.read(io.BytesIO(content))
    assert (event.frame, event.note, event.stderr, event.process) == (None, None, None, None)


@pytest.mark.parametrize("line", [b'{"dir":"in"}', b'{"t":1,"dir":"up"}', b'{"t":1,"dir":"in","stderr":7}'])
def test_a_damaged_line_is_refused_with_its_number(line):
    with pytest.raises(DecodeError, match="at line 2"):
        list(trace.read(io.BytesIO(b'{"accord-trace":1}\n' + line + b"\n")))


def test_a_compressed_trace_reads_like_a_plain_one(tmp_path):
    content = recorded(trace.TraceEvent(0.0, "in", HELLO))
    (tmp_path / "wire.jsonl.gz").write_bytes(gzip.compress(content))
    assert [event.frame for event in trace.read(tmp_path / "wire.jsonl.gz")] == [HELLO]
    assert trace.read_header(tmp_path / "wire.jsonl.gz").version == 1


def test_a_compressed_trace_that_was_cut_off_reads_up_to_there(tmp_path):
    events = [trace.TraceEvent(0.0, "in", b'{"jsonrpc":"2.0","id":%d,"method":"_m"}' % n) for n in range(5_000)]
    whole = gzip.compress(recorded(*events))
    (tmp_path / "wire.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    assert 0 < len(list(trace.read(tmp_path / "wire.jsonl.gz"))) < 5_000


def test_a_growing_trace_is_followed_line_by_line_and_to_its_end(tmp_path):
    path = tmp_path / "wire.jsonl"
    content = recorded(trace.TraceEvent(0.0, "in", HELLO), trace.TraceEvent(1.0, "in", stderr="done"))
    first, second = content.index(b'{"t":0') + 10, content.index(b'{"t":1') + 10
    going_on = [True, True, False]
    path.write_bytes(content[:first])
    seen = []
    for event in trace.follow(path, lambda: going_on.pop(0)):
        seen.append(event and (event.frame or event.stderr))
        if event is None:
            path.write_bytes(content[:second] if len(going_on) == 2 else content)
    assert seen == [None, HELLO, None, "done"]
