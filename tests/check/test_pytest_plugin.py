"""The plugin for pytest, in test runs of its users."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from accord.trace import TraceFile
from tests.check.healthy import healthy, put

FAULTY = Path(__file__).with_name("faulty_agent.py")


@pytest.fixture
def run(tmp_path):
    """Runs pytest on this text of a test file; returns its output."""

    def run(text, *arguments):
        (tmp_path / "test_mine.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "accord.pytest_plugin", "-p", "no:cacheprovider", "-rA"]
        done = subprocess.run(
            [*command, *arguments], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=100
        )
        return done.stdout + done.stderr

    return run


def written(path, *mutations):
    talk = healthy()
    for mutation in mutations:
        mutation(talk)
    recorder = TraceFile(path, role="client")
    for event in talk.events():
        recorder(event)
    recorder.close()


ASSERTING = "def test_mine(assert_conformant):\n    assert_conformant('wire.jsonl'{})\n"


def test_a_conformant_trace_passes(run, tmp_path):
    written(tmp_path / "wire.jsonl")
    assert "1 passed" in run(ASSERTING.format(", strict=True"))


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ("", "1 failed"),
        (", of='agent'", "1 failed"),
        (", of='client'", "1 passed"),
        (", ignore=['lines.agent-counts-from-one']", "1 passed"),
    ],
)
def test_a_trace_with_a_fault_fails_with_the_fault(run, tmp_path, options, outcome):
    written(tmp_path / "wire.jsonl", put("tool", "params.update.locations[0].line", 0))
    said = run(ASSERTING.format(options))
    assert outcome in said
    assert ("agent lines.agent-counts-from-one: a location's line is 0" in said) == ("failed" in outcome)


def test_each_check_of_an_agent_is_a_test(run):
    text = "def test_mine(acp_agent):\n    assert 'faulty_agent' in acp_agent[1]\n"
    said = run(text, "--acp-agent", f"{sys.executable} {FAULTY} 'greets on stdout'")
    assert "PASSED test_mine.py::test_mine" in said
    assert "PASSED acp::wire.utf-8" in said or "acp::wire.utf-8" in said
    assert "1 failed" in said
    assert "a line that is not JSON: 'Welcome!'" in said
    assert "skipped" in said


def test_an_agent_that_cannot_be_judged_fails_every_check(run):
    said = run("", "--acp-agent", "no-such-agent")
    assert "the agent could not be judged: cannot start no-such-agent" in said
    assert " passed" not in said


def test_without_an_agent_nothing_is_added(run):
    said = run("def test_mine(acp_agent): ...\ndef test_other(): ...\n")
    assert "1 passed, 1 skipped" in said
