"""What the checks find in a trace, by the messages that show it."""

import sys

import pytest

from accord_tools.inspector.trace_search import TraceFindings
from tests.inspector.recording import Recording


def judged(index):
    findings = TraceFindings(index)
    while findings.is_behind:
        findings.step()
    return findings


def test_a_fault_is_found_at_the_message_that_shows_it(recording, indexed):
    recording.opening()
    before = judged(indexed(recording))
    fault = recording.request("in", 1, "fs/read_text_file", {"sessionId": "s1", "path": "/notes.md"})
    findings = judged(indexed(recording))
    assert fault in findings.rows
    assert findings.worst(fault) == "fail"
    assert "did not declare fs.readTextFile" in findings.plain(fault)[0]["message"]
    assert len(findings) > len(before)


def test_a_run_shows_the_worst_of_its_messages(recording, indexed):
    recording.opening()
    fault = recording.request("in", 1, "fs/read_text_file", {"sessionId": "s1", "path": "/notes.md"})
    findings = judged(indexed(recording))
    assert findings.worst(fault - 1, 2) == "fail"
    assert findings.worst(fault + 1, 5) == ""


def test_a_trace_that_begins_after_the_handshake_is_not_judged(recording, indexed):
    recording.turn(2)
    assert len(judged(indexed(recording))) == 0


@pytest.mark.parametrize("link", [1, "editor"])
def test_a_trace_of_several_connections_is_not_judged(tmp_path, indexed, link):
    recording = Recording(tmp_path / "serve.jsonl", role="agent")
    recording.request("in", 1, "initialize", {}, link=link)
    assert len(judged(indexed(recording))) == 0


def test_an_open_request_says_who_waits_for_whom_and_how_long(recording, indexed):
    recording.opening()
    prompt = recording.prompt(2, "Hello")
    permission = recording.request("in", 9, "session/request_permission", {"sessionId": "s1", "options": []})
    recording.line("in", after=4.0, stderr="still here")
    findings = judged(indexed(recording))
    (shown,) = [it for it in findings.plain(permission) if it["id"] == "open request"]
    assert shown["message"].startswith(
        "session/request_permission of the agent has no answer of the client: open for 4.0 s"
    )
    assert (shown["severity"], shown["side"]) == ("note", "client")
    assert "waits for its user" in shown["fix"]
    assert findings.plain(prompt)[-1]["side"] == "agent"
    assert findings.shows(prompt)


def test_an_answered_request_is_not_open(recording, indexed):
    recording.opening()
    recording.turn(2)
    findings = judged(indexed(recording))
    assert [
        row for row in range(len(indexed(recording))) if any(it["id"] == "open request" for it in findings.plain(row))
    ] == []


def test_without_the_checker_only_open_requests_are_shown(recording, indexed, monkeypatch):
    monkeypatch.setitem(sys.modules, "accord_check", None)  # as Python marks a module that cannot be imported
    recording.opening()
    fault = recording.request("in", 1, "fs/read_text_file", {"sessionId": "s1", "path": "/notes.md"})
    findings = judged(indexed(recording))
    assert len(findings) == 0
    assert [it["id"] for it in findings.plain(fault)] == ["open request"]
    assert not findings.is_behind
