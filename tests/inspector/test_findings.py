"""What the checks find in a trace, by the messages that show it."""

import pytest

from accord.inspector.findings import TraceFindings
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
