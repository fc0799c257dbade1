"""`accord_check.judge`: what it takes, and what a finding says."""

from __future__ import annotations

import pytest

from accord.trace import TraceEvent, TraceFile
from accord_check import Judge, judge
from accord_check.trace_judge import conversations
from tests.check.healthy import Talk, drop, healthy, moved, put, says, text

STATUSES = "pending, in_progress, completed, failed"


def broken():
    talk = healthy()
    put("tool", "params.update.locations[0].line", 0)(talk)
    return talk


def test_a_finding_names_its_clause_its_page_its_events_and_what_to_do():
    talk = broken()
    [finding] = judge(talk.events())
    assert (finding.id, finding.severity, finding.level) == ("lines.agent-counts-from-one", "fail", "MUST")
    assert (finding.side, finding.session, finding.count) == ("agent", "s1", 1)
    assert finding.message == "a location's line is 0"
    assert finding.clause == "numbers lines from 1, in locations and in file requests"
    assert finding.expected == "the agent numbers lines from 1, in locations and in file requests"
    assert finding.fix == "count lines from 1"
    assert finding.url == "https://agentclientprotocol.com/protocol/v1/overview#argument-requirements"
    assert finding.events == (talk.place("tool") + 1,)


def test_the_same_fault_is_one_finding_with_its_count_and_its_first_events():
    talk = healthy()
    for number in range(20):
        says("chunk", "agent", f"progress {number}%".encode())(talk)
    [finding] = judge(talk.events())
    assert (finding.id, finding.count, len(finding.events)) == ("stdio.stdout-only-messages", 20, 5)


@pytest.mark.parametrize("recorder", ["client", "agent"])
def test_the_judge_finds_out_which_side_is_the_agent(recorder):
    events = broken().events()
    if recorder == "agent":
        events = [TraceEvent(it.time, "in" if it.direction == "out" else "out", it.frame) for it in events]
    [finding] = judge(events)
    assert (finding.side, finding.id) == ("agent", "lines.agent-counts-from-one")


def test_what_comes_before_the_first_message_is_judged_once_the_sides_are_known():
    events = [TraceEvent(0.0, "in", b"Welcome!"), *healthy().events()]
    [finding] = judge(events)
    assert (finding.side, finding.id, finding.events) == ("agent", "stdio.stdout-only-messages", (1,))


def test_a_trace_that_never_tells_the_sides_is_judged_as_that_of_a_client():
    [finding] = judge([TraceEvent(0.0, "in", b"Welcome!")])
    assert finding.side == "agent"
    [finding] = judge([TraceEvent(0.0, "in", b"Welcome!")], client="in")
    assert finding.side == "client"


def test_notes_count_as_events_and_are_not_judged():
    talk = broken()
    events = talk.events()
    events.insert(0, TraceEvent(0.0, "in", note="ignored: something"))
    assert [finding.events for finding in judge(events)] == [(talk.place("tool") + 2,)]


def test_the_judge_of_a_live_connection_tells_findings_as_they_appear():
    talk = broken()
    judging = Judge()
    for number, event in enumerate(talk.events()):
        judging.feed(event)
        assert bool(judging.findings) == (number >= talk.place("tool"))
    judging.end()
    assert len(judging.findings) == 1


def test_anything_can_be_judged_without_an_exception():
    bodies = [b"", b"null", b"[1]", b'{"id":[]}', b'{"jsonrpc":"2.0","method":7}', b"\xff\xfe", b'{"result":1}' * 2]
    bodies += [b'{"jsonrpc":"2.0","id":{"a":1},"method":"session/new","params":{"mcpServers":[[]],"cwd":{}}}']
    bodies += [b'{"jsonrpc":"2.0","id":1,"result":{"sessions":[1],"configOptions":[{}],"modes":[]}}']
    bodies += [
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":[],"update":{"sessionUpdate":"plan"}}}'
    ]
    bodies += [b"[" * 100_000, b'{"error":{},"id":1e400}']
    for direction in ("in", "out"):
        assert judge([*healthy().events()[:4], *(TraceEvent(9.0, direction, body) for body in bodies)])  # type: ignore[arg-type]


def write(path, *talks):
    with path.open("wb") as file:
        for talk in talks:
            recorder = TraceFile(file, role="client")
            for event in talk.events():
                recorder(event)


def test_several_recordings_in_one_file_are_several_conversations(tmp_path):
    path = tmp_path / "wire.jsonl"
    late = healthy()
    moved("chunk3", "prompt3/answer")(late)
    write(path, broken(), late)
    first, second = conversations(path)
    assert (first.title, second.title) == ("conversation 1", "conversation 2")
    [finding] = judge(second.events, second.client)
    lines = path.read_text().splitlines()
    places = [lines[second.lines[number - 1] - 1] for number in finding.events]
    assert "stopReason" in places[0]
    assert "agent_message_chunk" in places[1]


def test_each_hop_of_a_chain_is_a_conversation(tmp_path):
    path = tmp_path / "chain.jsonl"
    recorder = TraceFile(path, role="conductor")
    for event in broken().events():
        hop = ("editor", "proxy") if event.direction == "out" else ("proxy", "editor")
        recorder(TraceEvent(event.time, event.direction, event.frame, hop=hop))
        hop = ("proxy", "agent") if event.direction == "out" else ("agent", "proxy")
        recorder(TraceEvent(event.time, event.direction, event.frame, hop=hop))
    recorder.close()
    found = conversations(path)
    assert [one.title for one in found] == ["editor and proxy", "proxy and agent"]
    assert [[finding.id for finding in judge(one.events, one.client)] for one in found] == [
        ["lines.agent-counts-from-one"]
    ] * 2


def test_one_bad_update_is_one_finding_for_each_fault():
    """Another validator reports 33 lines for this: one for each branch of the union."""
    talk = healthy()
    drop("tool2", "params.update.title")(talk)
    put("tool2", "params.update.status", "done")(talk)
    assert [(finding.id, finding.message) for finding in judge(talk.events())] == [
        ("lint.schema.misfit", "session/update tool_call: update.title is missing"),
        (
            "lint.schema.damaged",
            f"session/update tool_call: update.status - expected one of {STATUSES}, got 'done'",
        ),
    ]


CROSSED = "prompt.cancel.permissions-cancelled"
ALLOWED = {"outcome": "selected", "optionId": "yes"}


def crossing(talk, recorder, seconds):
    """What the judge finds if the last question before the cancel came so many seconds before it."""
    asked, cancel = talk.place("ask2"), talk.place("cancel")
    events = []
    for place, event in enumerate(talk.events()):
        time = 0.0 if place < asked else 1.0 + seconds if place >= cancel else 1.0
        direction = event.direction
        if recorder == "agent":
            direction = "in" if direction == "out" else "out"
        events.append(TraceEvent(time, direction, event.frame))
    return [finding.id for finding in judge(events)]


@pytest.mark.parametrize(
    ("recorder", "seconds", "is_found"), [("client", 0.01, 1), ("agent", 0.01, 0), ("agent", 2, 1)]
)
def test_a_question_that_may_have_crossed_the_cancel_is_judged_only_in_what_the_client_recorded(
    recorder, seconds, is_found
):
    talk = healthy()
    put("ask2/answer", "result.outcome", ALLOWED)(talk)
    assert crossing(talk, recorder, seconds).count(CROSSED) == is_found


def test_a_question_before_one_that_the_client_answered_did_not_cross_its_cancel():
    talk = healthy()
    put("ask2/answer", "result.outcome", ALLOWED)(talk)
    talk.agent("later", "session/request_permission", talk["ask2"].message["params"], id=11)
    talk.answer("later", {"outcome": ALLOWED})
    moved("later", "ask2")(talk)
    moved("later/answer", "later")(talk)
    assert crossing(talk, "agent", 0.01).count(CROSSED) == 1


@pytest.mark.parametrize(("code", "ids"), [(-32800, []), (-32603, ["lint.prompt.held-cancelled"])])
def test_a_cancel_that_ended_a_waiting_prompt_is_not_that_of_the_next_work(code, ids):
    talk = Talk()
    info = {"name": "peer", "version": "1"}
    talk.client("hello", "initialize", {"protocolVersion": 2, "capabilities": {}, "info": info}, id=0)
    talk.answer("hello", {"protocolVersion": 2, "capabilities": {"session": {}}, "info": info})
    talk.client("new", "session/new", {"cwd": "/work", "mcpServers": []}, id=1)
    talk.answer("new", {"sessionId": "s1"})
    talk.client("first", "session/prompt", {"sessionId": "s1", "prompt": [text("slow")], "idempotencyKey": "1"}, id=2)
    talk.client("cancel", "session/cancel", {"sessionId": "s1"})
    talk.refuse("first", code, "cancelled")
    talk.client("next", "session/prompt", {"sessionId": "s1", "prompt": [text("go")], "idempotencyKey": "2"}, id=3)
    talk.update("echo", "user_message", messageId="u1", content=[text("go")])
    talk.answer("next", {"messageId": "u1"})
    talk.update("running", "state_update", state="running")
    talk.update("end", "state_update", state="idle", stopReason="end_turn")
    events = [TraceEvent(float(place), it.direction, it.frame) for place, it in enumerate(talk.events())]
    assert [finding.id for finding in judge(events)] == ids
