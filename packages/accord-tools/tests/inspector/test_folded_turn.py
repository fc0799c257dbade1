"""What a turn amounts to as of a message, and where its time went."""

import pytest

from accord_tools.inspector import folded_turn
from accord_tools.inspector.api import conversation_at, spans_of
from accord_tools.inspector.folded_turn import Folds, settings_at


def items(index, row, folds=None):
    number = index.columns.session[row]
    shown = (folds or Folds(index)).at(number, index.sessions[number].turn_at(row), row + 1).plain()
    return shown["items"]


def summary(item):
    if item["type"] == "message":
        return item["speaker"], "".join(block["text"] for block in item["content"])
    if item["type"] == "tool":
        return "tool", item["call"]["status"]
    return item["type"], item.get("answer", item.get("detail"))


def test_a_turn_amounts_to_messages_tool_calls_questions_and_its_end(recording, indexed):
    recording.opening()
    recording.turn(2)
    index = indexed(recording)
    shown = items(index, 16)
    assert [summary(item) for item in shown] == [
        ("user", "Change the notes"),
        ("thought", "Let me think."),
        ("tool", "completed"),
        ("permission", "selected yes"),
        ("request", "4 characters"),
        ("agent", "I have changed **the** notes."),
        ("end", "end_turn"),
    ]
    question = shown[3]
    assert question["chosen"] == "yes"
    assert question["took"] == pytest.approx(2.0)
    assert shown[2]["call"]["content"][0]["newText"] == "two\n"
    assert (shown[5]["rows"], shown[5]["count"]) == ([13, 15], 3)


def test_the_state_is_that_as_of_the_message(recording, indexed):
    recording.opening()
    recording.turn(2)
    index = indexed(recording)
    assert [summary(item)[0] for item in items(index, 7)] == ["user", "thought", "tool", "permission"]
    assert summary(items(index, 9)[2]) == ("tool", "in_progress")
    assert summary(items(index, 14)[-1]) == ("agent", "I have changed **the** ")


def test_moving_back_and_forth_gives_what_a_fresh_fold_gives(recording, indexed, monkeypatch):
    monkeypatch.setattr(folded_turn, "EVERY", 7)
    recording.opening()
    recording.prompt(2, "Count")
    for number in range(60):
        recording.says("s1", f"{number} ")
        recording.update("s1", "tool_call", toolCallId=f"c{number}", title=f"call {number}")
    index = indexed(recording)
    folds = Folds(index)
    for row in (120, 30, 31, 124, 5, 90, 4):
        assert items(index, row, folds) == items(index, row)


def test_sessions_do_not_mix(recording, indexed):
    recording.opening()
    recording.prompt(2, "first", session="s1")
    recording.prompt(3, "second", session="s2")
    recording.says("s1", "for the first")
    recording.says("s2", "for the second")
    index = indexed(recording)
    assert [summary(item) for item in items(index, 6)] == [("user", "first"), ("agent", "for the first")]
    assert [summary(item) for item in items(index, 7)] == [("user", "second"), ("agent", "for the second")]


def test_a_message_of_no_session_belongs_to_that_of_the_latest_turn(recording, indexed):
    recording.opening()
    recording.prompt(2, "first", session="s1")
    recording.prompt(3, "second", session="s2")
    recording.prompt(4, "third", session="s1")
    row = recording.line("out", frame={"jsonrpc": "2.0", "method": "_note"})
    index = indexed(recording)
    assert conversation_at(index, Folds(index), row)["name"] == "s1"


def test_a_cancelled_turn_marks_its_unfinished_tool_calls(recording, indexed):
    recording.opening()
    recording.prompt(2, "Go")
    recording.update("s1", "tool_call", toolCallId="c", title="slow", status="in_progress")
    recording.line("out", frame={"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}})
    last = recording.stop(2, "cancelled")
    assert [summary(item)[0] for item in items(indexed(recording), last)] == ["user", "tool", "cancel", "end"]
    assert summary(items(indexed(recording), last)[1]) == ("tool", "cancelled")


@pytest.mark.parametrize(("version", "status"), [(1, "cancelled"), (2, "failed")])
def test_a_call_that_its_cancelled_turn_ended_is_cancelled_where_an_agent_cannot_say_so(
    recording, indexed, version, status
):
    recording.opening(version=version)
    recording.prompt(2, "Go")
    recording.update("s1", "tool_call", toolCallId="broken", title="quick", status="failed")
    recording.update("s1", "tool_call", toolCallId="c", title="slow", status="in_progress")
    recording.line("out", frame={"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}})
    recording.update("s1", "tool_call_update", toolCallId="c", status="failed")
    last = recording.stop(2, "cancelled")
    index = indexed(recording)
    shown = [summary(item) for item in items(index, last)]
    assert [it[1] for it in shown if it[0] == "tool"] == ["failed", status]
    assert [span[5] for span in spans_of(index, 1)["spans"] if span[0] == "tool"] == ["failed", status]


def test_an_error_ends_the_turn(recording, indexed):
    recording.opening()
    recording.prompt(2, "Go")
    last = recording.error("in", 2, -32603, "no model")
    assert summary(items(indexed(recording), last)[-1]) == ("error", "-32603 no model")


def test_a_message_of_version_2_grows_by_its_id(recording, indexed):
    recording.opening(version=2)
    recording.prompt(2, "Go")
    recording.answer("in", 2, {})
    for text in ("Hel", "lo"):
        recording.update("s1", "agent_message_chunk", messageId="m1", content={"type": "text", "text": text})
    last = recording.update("s1", "state_update", state="idle", stopReason="end_turn")
    assert ("agent", "Hello") in [summary(item) for item in items(indexed(recording), last)]


def test_settings_are_those_before_the_message(recording, indexed):
    recording.opening()
    recording.prompt(2, "Go")
    recording.update("s1", "current_mode_update", currentModeId="code")
    recording.update("s1", "plan", entries=[{"content": "Read", "priority": "high", "status": "in_progress"}])
    recording.update("s1", "plan", entries=[{"content": "Read", "priority": "high", "status": "completed"}])
    index = indexed(recording)
    assert settings_at(index, 1, 5)["mode"] == "ask"
    assert settings_at(index, 1, 6)["mode"] == "code"
    assert [settings_at(index, 1, row)["plan"] for row in (6, 7, 8)] == [
        [],
        [{"content": "Read", "priority": "high", "status": "in_progress"}],
        [{"content": "Read", "priority": "high", "status": "completed"}],
    ]


def test_the_time_of_a_turn_is_shared_out(recording, indexed):
    recording.opening()
    recording.turn(2)
    found = spans_of(indexed(recording), 1)
    shares = found["shares"]
    assert sum(shares.values()) == pytest.approx(found["end"] - found["begin"])
    # The permission took two seconds; the file a tenth; the tool ran a tenth before it and a tenth after it.
    assert (shares["user"], shares["client"], shares["tool"]) == pytest.approx((2.0, 0.1, 0.2))
    assert found["firstUpdate"] == pytest.approx(0.1)
    assert found["firstText"] == pytest.approx(2.8)
    assert found["longestSilence"] == [pytest.approx(2.0), 8]
    assert [span[0] for span in found["spans"]] == ["thought", "tool", "user", "client", "text"]
    assert found["prompt"] == "Change the notes"


def test_a_change_of_an_earlier_turn_says_what_it_changes_and_where_that_began(recording, indexed):
    recording.opening(version=2)
    recording.prompt(2, "First")
    began = recording.update("s1", "agent_message", messageId="m1", content=[{"type": "text", "text": "Draft"}])
    call = recording.update("s1", "tool_call_update", toolCallId="c1", title="Build", status="in_progress")
    recording.update("s1", "state_update", state="idle", stopReason="end_turn")
    recording.prompt(3, "Second")
    recording.update("s1", "agent_message", messageId="m1", content=[{"type": "text", "text": "Final"}])
    recording.update("s1", "tool_call_update", toolCallId="c1", status="completed")
    last = recording.update("s1", "agent_message", messageId="m2", content=[{"type": "text", "text": "New"}])
    index = indexed(recording)
    message, tool, new = items(index, last)[1:]
    first = index.turn_of(began).prompt
    assert (summary(message), message["beganAt"], message["beganIn"]) == (("agent", "Final"), began, first)
    assert (tool["call"]["title"], tool["call"]["status"], tool["beganAt"]) == ("Build", "completed", call)
    assert "beganAt" not in new
    assert summary(items(index, call)[1]) == ("agent", "Draft")
