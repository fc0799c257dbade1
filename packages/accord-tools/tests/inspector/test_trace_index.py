"""The index of a trace: pairs, runs, turns, and what it does while the file grows."""

import gzip
import json

import pytest

from accord.errors import AccordError, DecodeError
from accord_tools.inspector.api import summary_of
from accord_tools.inspector.message_rows import Fields, detail_of, row_of, rows_of_runs
from accord_tools.inspector.trace_index import TraceIndex
from accord_tools.inspector.trace_lines import TraceReader
from tests.inspector.recording import Recording


def words(index):
    return [(row[Fields.WHAT], row[Fields.DETAIL]) for row in rows_of_runs(index, 0, 500)]


def test_rows_say_what_was_meant(recording, indexed):
    recording.opening()
    recording.turn(2)
    assert words(indexed(recording)) == [
        ("initialize", "version 1 editor 2"),
        ("initialize ✓", "version 1"),
        ("session/new", "/home/ada"),
        ("session/new ✓", "s1"),
        ("session/prompt", "Change the notes"),
        ("agent_thought_chunk", "Let me think."),
        ("tool_call", "edit Edit notes.md → pending"),
        ("session/request_permission", "Edit notes.md: Allow, Reject"),
        ("session/request_permission ✓", "selected yes"),
        ("tool_call_update", "Edit notes.md → in_progress"),
        ("fs/read_text_file", "/home/ada/notes.md"),
        ("fs/read_text_file ✓", "4 characters"),
        ("tool_call_update", "Edit notes.md → completed"),
        ("agent_message_chunk", "I have changed **the** notes."),
        ("session/prompt ✓", "end_turn"),
    ]


def test_a_row_says_what_an_extension_says_about_an_update(recording, indexed):
    failure = {"id": "f", "title": "Slow down", "severity": "error", "actions": ["retry"]}
    recording.update("s1", "session_info_update", _meta={"jetbrains": {"air": {"sessionFailure": failure}}})
    recording.update("s1", "async_task_spawned", asyncTaskId="t", name="make test")
    recording.update("s1", "async_task_spawned", name=7)
    assert words(indexed(recording))[:2] == [
        ("session_info_update", "Slow down: You can: try again"),
        ("async_task_spawned", "In the background: make test"),
    ]


def test_a_request_and_its_answer_point_at_each_other(recording, indexed):
    recording.opening()
    asked = recording.prompt(2, "Hello")
    recording.error("in", 2, -32603, "no model")
    index = indexed(recording)
    assert index.columns.pair[asked] == asked + 1
    assert index.columns.pair[asked + 1] == asked
    assert index.columns.latency(asked) == pytest.approx(0.1)
    assert row_of(index, asked + 1)[Fields.DETAIL] == "-32603 no model"
    assert index.turns[-1].error


def test_both_sides_may_use_the_same_ids(recording, indexed):
    ours = recording.request("out", 7, "session/list", {})
    theirs = recording.request("in", 7, "fs/read_text_file", {"sessionId": "s1", "path": "/a"})
    recording.answer("out", 7, {"content": ""})
    recording.answer("in", 7, {"sessions": []})
    pair = indexed(recording).columns.pair
    assert (pair[ours], pair[theirs]) == (3, 2)


def test_the_answer_that_opens_a_session_gives_its_request_the_session(recording, indexed):
    recording.opening("s9")
    index = indexed(recording)
    assert [index.session_names[number] for number in index.columns.session] == ["", "", "s9", "s9"]


def test_chunks_of_one_message_are_one_run_and_polls_of_a_terminal_another(recording, indexed):
    recording.opening()
    for number in range(30):
        recording.says("s1", f"{number} ")
    for number in range(5):
        recording.request("in", number, "terminal/output", {"sessionId": "s1", "terminalId": "t"})
        recording.answer("out", number, {"output": ""})
    recording.says("s2", "another session")
    recording.says("s1", "again")
    index = indexed(recording)
    assert [row[Fields.RUN] for row in rows_of_runs(index, 4, 10)] == [30, 10, 1, 1]
    assert [index.run_of(row) for row in (4, 33, 34, 43, 44)] == [4, 4, 5, 5, 6]


def test_turns_end_with_their_stop_reason(recording, indexed):
    recording.opening()
    recording.turn(2)
    recording.turn(3)
    recording.prompt(4, "The last one goes on")
    turns = indexed(recording).turns
    assert [(turn.kind, turn.stop) for turn in turns] == [
        ("opening", ""), ("prompt", "end_turn"), ("prompt", "end_turn"), ("prompt", "")]  # fmt: skip
    assert turns[-1].end is None


def test_turns_of_version_2_end_when_the_session_is_idle(recording, indexed):
    recording.opening(version=2)
    recording.prompt(2, "Hello")
    recording.answer("in", 2, {"messageId": "m1"})
    recording.update("s1", "state_update", state="running")
    idle = recording.update("s1", "state_update", state="idle", stopReason="end_turn")
    turn = indexed(recording).turns[-1]
    assert (turn.end, turn.stop) == (idle, "end_turn")


def test_an_agents_own_trace_has_its_directions_the_other_way_round(tmp_path, indexed):
    recording = Recording(tmp_path / "agent.jsonl", role="agent")
    recording.request("in", 0, "initialize", {"protocolVersion": 1})
    assert indexed(recording).columns.to_agent[0] == 1


def test_components_of_a_chain_are_in_order_from_client_to_agent(tmp_path, indexed):
    recording = Recording(tmp_path / "chain.jsonl", role="conductor")
    recording.line("out", frame={"id": 1, "method": "initialize"}, **{"from": "rules", "to": "agent"})
    recording.line("out", frame={"id": 1, "method": "initialize"}, **{"from": "client", "to": "rules"})
    recording.line("in", frame={"id": 1, "result": {}}, **{"from": "agent", "to": "rules"})
    index = indexed(recording)
    assert summary_of(index)["components"] == ["client", "rules", "agent"]
    assert list(index.columns.pair) == [2, -1, 0]


def test_messages_of_several_connections_are_kept_apart(tmp_path, indexed):
    recording = Recording(tmp_path / "serve.jsonl", role="agent")
    for link in (1, 2):
        recording.request("in", 1, "session/list", {}, link=link)
    for link in (2, 1):
        recording.answer("out", 1, {"sessions": []}, link=link)
    assert list(indexed(recording).columns.pair) == [3, 2, 1, 0]


def test_standard_error_and_processes_are_rows(recording, indexed):
    recording.line("in", stderr="Traceback: no such model")
    recording.line("in", process={"exited": 1})
    recording.line("in", note="malformed: not JSON")
    assert [what for what, _ in words(indexed(recording))] == ["stderr", "process", "note"]
    assert words(indexed(recording))[0][1] == "Traceback: no such model"


def test_an_index_grows_with_its_file_and_waits_for_the_end_of_a_line(recording, indexed):
    recording.opening()
    index = indexed(recording)
    assert len(index) == 4
    recording.raw(b'{"t":9,"dir":"in","frame":{"jsonrpc":"2.0","me')
    index.grow_whole()
    assert len(index) == 4
    recording.raw(
        b'thod":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"plan","entries":[]}}}}\n'
    )
    index.grow_whole()
    assert words(index)[-1] == ("plan", "0 of 0 steps")


def test_small_slices_give_the_same_index_as_one_large_slice(recording, indexed):
    recording.opening()
    for number in range(2, 6):
        recording.turn(number)
    whole = indexed(recording)
    index = TraceIndex(TraceReader(recording.path))
    while index.grow(most=100):
        pass
    assert index.columns.offset == whole.columns.offset
    assert index.columns.pair == whole.columns.pair
    index.reader.close()


def test_a_compressed_trace_is_read(recording, indexed, tmp_path):
    recording.opening()
    packed = tmp_path / "wire.jsonl.gz"
    packed.write_bytes(gzip.compress(recording.path.read_bytes()))
    index = TraceIndex(TraceReader(packed))
    index.grow_whole()
    assert words(index) == words(indexed(recording))
    index.reader.close()


def test_a_file_that_is_not_a_trace_is_refused(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"jsonrpc":"2.0"}\n')
    index = TraceIndex(TraceReader(path))
    with pytest.raises(DecodeError, match="not an Accord trace"):
        index.grow()
    index.reader.close()


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(AccordError, match="cannot read the trace"):
        TraceReader(tmp_path)


def test_the_detail_of_a_message_has_its_text_as_it_was_written(recording, indexed):
    recording.opening()
    recording.raw(b'{"t":5,"dir":"in","frame":{ "jsonrpc" : "2.0", "method":"x", "params":{"b":1,"a":2} }}\n')
    detail = detail_of(indexed(recording), 4)
    assert detail["raw"] == '{ "jsonrpc" : "2.0", "method":"x", "params":{"b":1,"a":2} }'
    assert json.loads(detail["raw"])["method"] == "x"
