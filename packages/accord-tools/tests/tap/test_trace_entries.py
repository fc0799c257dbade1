"""What the events of a trace mean, the filter language, and the figures of a trace."""

import pytest

from accord.trace import TraceEvent
from accord.trace.query import FilterError, parse_filter
from accord.trace.statistics import figures
from accord.trace.trace_entries import entries
from tests.tap.traces import chunk, events, frame, request, update


def numbers(text):
    passes = parse_filter(text)
    return [entry.number for entry in entries(events()) if passes(entry)]


def test_an_answer_has_the_method_session_and_duration_of_its_request():
    answer = list(entries(events()))[15]
    assert (answer.kind, answer.method, answer.session, answer.text) == ("answer", "session/prompt", "s1", "end_turn")
    assert answer.duration == pytest.approx(6.5)
    assert answer.request.number == 6


def test_both_sides_may_use_the_same_ids():
    found = list(entries(events()))
    assert (found[2].method, found[10].method) == ("initialize", "fs/read_text_file")


def test_ids_of_several_links_and_of_components_are_kept_apart():
    sent = [TraceEvent(0, "out", request(1, f"_m{link}"), link=link) for link in (1, 2)]
    answered = [TraceEvent(1, "in", frame(id=1, result={}), link=link) for link in (2, 1)]
    assert [entry.method for entry in entries(sent + answered)] == ["_m1", "_m2", "_m2", "_m1"]
    hops = [
        TraceEvent(0, "out", request(1, "_a"), hop=("client", "proxy")),
        TraceEvent(0, "out", request(1, "_b"), hop=("proxy", "agent")),
        TraceEvent(1, "in", frame(id=1, result={}), hop=("agent", "proxy")),
        TraceEvent(1, "in", frame(id=1, result={}), hop=("proxy", "client")),
    ]
    assert [entry.method for entry in entries(hops)] == ["_a", "_b", "_b", "_a"]


MEANINGS = {
    "a prompt": (request(1, "session/prompt", prompt=[{"type": "text", "text": "Hi"}]), "Hi"),
    "a chunk": (chunk("Hello"), "Hello"),
    "an image": (update("s", "agent_message_chunk", content={"type": "image", "data": "x"}), "[image]"),
    "a tool call": (update("s", "tool_call", kind="edit", title="Edit x", status="pending"), "edit Edit x → pending"),
    "a plan": (update("s", "plan", entries=[{"content": "Look", "status": "completed"}]), "1 of 1 steps"),
    "a state of version 2": (update("s", "state_update", state="idle", stopReason="end_turn"), "idle end_turn"),
    "a mode": (update("s", "current_mode_update", currentModeId="plan"), "plan"),
    "a file": (request(1, "fs/read_text_file", path="/a.py"), "/a.py"),
    "a command": (request(1, "terminal/create", command="ls", args=["-l"]), "ls -l"),
    "params that are a list": (b'{"jsonrpc":"2.0","method":"_x","params":[1]}', ""),
    "no message": (b"hello", "JSON is malformed"),
}


@pytest.mark.parametrize(("content", "text"), MEANINGS.values(), ids=MEANINGS)
def test_a_message_has_a_meaning_in_words(content, text):
    (entry,) = entries([TraceEvent(0, "in", content)])
    assert text in entry.text


def test_a_change_of_a_tool_call_is_shown_with_the_call_s_title():
    texts = [entry.text for entry in entries(events()) if entry.update == "tool_call_update"]
    assert texts == ["Edit main.py → completed"]


HOSTILE = {
    "a deep nest": b'{"jsonrpc":"2.0","method":"session/update","params":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001,
    "half of an emoji": b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"\\ud83d"}}',
    "no text": b"\xff\xfe",
    "wrong types": frame(method="session/update", params={"sessionId": 7, "update": {"sessionUpdate": [1]}}),
    "an update that is a number": b'{"jsonrpc":"2.0","method":"session/update","params":{"update":7}}',
    "a plan that is a text": update("s", "plan", entries="x"),
    "a tool call of numbers": update("s", "tool_call", title=1, kind=2, locations=[3], content=[{"path": 4}]),
    "an outcome that is a list": frame(id=1, result={"outcome": [1]}),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_no_message_is_too_odd_for_an_entry_and_the_filters(content):
    (entry,) = entries([TraceEvent(0, "in", content)])
    for text in ("x", "method:x", "kind:x", "session:x", "status:x", "dur:>1s", "tool:x", "path:x"):
        parse_filter(text)(entry)
    assert figures([entry]).events == 1


FILTERS = {
    "": list(range(1, 21)),
    "method:prompt": [6, 16, 19],
    "method:prompt kind:request": [6, 19],
    "kind:tool_call": [9, 14],
    "kind:tool_call -kind:update": [9],
    "dir:agent kind:request": [2, 4, 6, 17, 19],
    "turn": [16],
    "kind:agent_message_chunk look": [8],
    "session:s9": [17, 18],
    "dir:out -kind:request": [11, 13],
    "status:error": [18],
    "status:completed": [14],
    "status:end_turn": [16],
    "dur:>2s": [13, 16],
    "dur:<150ms": [3, 5, 11, 18],
    "tool:edit": [9, 12],
    "path:*.py": [10],
    "path:/project/main.py": [10],
    "kind:stderr": [15],
    "kind:process": [1, 20],
    '"rate limit"': [15],
    'RATE -"not there"': [15],
}


@pytest.mark.parametrize(("text", "expected"), FILTERS.items(), ids=FILTERS)
def test_a_filter_lets_these_messages_pass(text, expected):
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("methd:x", "unknown filter methd:; did you mean method?"),
        ("dur:soon", "dur: must be like dur:>2s or dur:<10ms, got 'soon'"),
        ("dir:up", "dir: must be agent, client, in or out, got 'up'"),
        ("tool:", "tool: needs a value, such as tool:edit"),
        ("turn:3", "turn: is a filter of the page"),
        ("http://x", 'quote it: "http://x"'),
    ],
)
def test_a_filter_that_cannot_be_read_is_refused_with_what_to_do(text, says):
    with pytest.raises(FilterError) as refused:
        parse_filter(text)
    assert says in str(refused.value)


def test_the_figures_say_where_the_time_of_a_turn_went():
    found = figures(entries(events()))
    first, second = found.turns
    assert (first.prompt, first.outcome, first.updates, first.tools) == ("Fix it", "end_turn", 4, 1)
    assert first.ended - first.began == pytest.approx(6.5)
    assert first.first_update == pytest.approx(0.5)
    assert (first.longest_silence, first.user, first.client) == pytest.approx((5.0, 5.0, 0.1))
    assert second.ended is None
    (open_one,) = found.unanswered
    assert (open_one.method, open_one.asked_by, open_one.waits_for) == ("session/prompt", "client", "agent")
    assert (open_one.number, open_one.since, open_one.waited) == pytest.approx((19, 9.0, 0.5))
    assert (found.errors, found.stderr, found.sessions) == (1, 1, ["s1", "s9"])
    assert found.methods["session/prompt"].percentile(50) == pytest.approx(6.5)
    assert found.methods["agent_message_chunk"].messages == 2


def test_an_open_request_in_an_agents_trace_was_asked_by_the_other_side():
    asked = [
        TraceEvent(1.0, "in", request(1, "session/prompt")),
        TraceEvent(3.0, "out", request(1, "fs/read_text_file")),
    ]
    found = figures(entries(asked), "agent").unanswered
    assert [(it.method, it.asked_by, it.waits_for, it.waited) for it in found] == [
        ("session/prompt", "client", "agent", 2.0),
        ("fs/read_text_file", "agent", "client", 0.0),
    ]
