"""The plugin for pytest, in test runs of its users."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from accord.trace import TraceFile
from tests.check.healthy import healthy, put, without

FAULTY = Path(__file__).with_name("faulty_agent.py")


ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "accord_check.pytest_plugin"}
"""Variables that load no plugin but ours: others cost half of the time of a run."""


def run_pytest(folder, text, *arguments, variables=ALONE):
    """Run pytest on this text of a test file in a folder; return its output."""
    (folder / "test_mine.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "COLUMNS": "300", **variables},
    )
    return done.stdout + done.stderr


@pytest.fixture
def run(tmp_path):
    return functools.partial(run_pytest, tmp_path)


def written(path, *mutations):
    talk = healthy()
    for mutation in mutations:
        mutation(talk)
    recorder = TraceFile(path, role="client")
    for event in talk.events():
        recorder(event)
    recorder.close()


ASSERTING = """
def test_a_conformant_trace(assert_conformant):
    assert_conformant('conformant.jsonl', strict=True)

def test_a_faulty_trace(assert_conformant):
    assert_conformant('faulty.jsonl')

def test_its_agent(assert_conformant):
    assert_conformant('faulty.jsonl', of='agent')

def test_its_client(assert_conformant):
    assert_conformant('faulty.jsonl', of='client')

def test_without_the_fault(assert_conformant):
    assert_conformant('faulty.jsonl', ignore=['lines.agent-counts-from-one'])

def test_a_trace_from_the_middle(assert_conformant):
    assert_conformant('middle.jsonl')

def test_an_agent(acp_agent):
    pass
"""


@pytest.fixture(scope="module")
def asserted(tmp_path_factory):
    """The output of a run without an agent."""
    folder = tmp_path_factory.mktemp("asserted")
    written(folder / "conformant.jsonl")
    written(folder / "faulty.jsonl", put("tool", "params.update.locations[0].line", 0))
    written(folder / "middle.jsonl", without("initialize", "initialize/answer"))
    return run_pytest(folder, ASSERTING)


@pytest.mark.parametrize("name", ["a_conformant_trace", "its_client", "without_the_fault"])
def test_a_trace_passes_if_what_is_asked_of_it_has_no_fault(asserted, name):
    assert f"PASSED test_mine.py::test_{name}\n" in asserted


@pytest.mark.parametrize("name", ["a_faulty_trace", "its_agent"])
def test_a_trace_with_a_fault_fails_with_the_fault(asserted, name):
    fault = "agent lines.agent-counts-from-one: a location's line is 0"
    assert f"FAILED test_mine.py::test_{name} - Failed: {fault}" in asserted


def test_a_trace_that_begins_after_the_handshake_is_skipped(asserted):
    assert "not judged: the trace begins after the handshake" in asserted


def test_without_an_agent_nothing_is_added(asserted):
    assert "give --acp-agent COMMAND, or acp_agent in the configuration" in asserted
    assert "2 failed, 3 passed, 2 skipped" in asserted


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


CLIENT = """
def test_mine(acp_client, tmp_path):
    session = acp_client.new_session(tmp_path)
    assert session.prompt("hello").text == "Done."
"""


def test_a_test_talks_to_the_agent_and_its_conversation_is_judged(run):
    only = ("-k", "test_mine", "--acp-agent")
    said = run(CLIENT, *only, f"{sys.executable} {FAULTY}")
    assert " passed" in said
    assert " error" not in said
    said = run(CLIENT, *only, f"{sys.executable} {FAULTY} 'greets on stdout'")
    assert "1 passed" in said
    assert "ERROR test_mine.py::test_mine - Failed: agent stdio.stdout-only-messages" in said


def test_checks_are_chosen_by_their_level_and_by_their_id(run):
    agent = f"{sys.executable} {FAULTY}"
    said = run("", "--acp-agent", agent, "-m", "acp(level='SHOULD')")
    assert "acp::initialize.agent-states-info" in said
    assert "acp::wire.utf-8" not in said
    said = run("", "--acp-agent", agent, "-m", "acp(id='wire.utf-8')")
    assert "1 passed" in said


IMPORTS = """
import sys

def test_mine():
    loaded = sorted(name for name in sys.modules if name.startswith("accord"))
    lazy = ["accord.errors", "accord.installation"]
    assert loaded == ["accord", *lazy, "accord_check", "accord_check.pytest_plugin"]
"""


@pytest.mark.usefixtures("fresh_programs")
def test_the_plugin_is_loaded_by_itself_and_imports_nothing_of_accord_until_it_is_used(run):
    assert "1 passed" in run(IMPORTS, variables={})


def test_a_project_that_still_names_the_plugin_gets_it_once(run, tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["accord_check.pytest_plugin"]\n')
    assert "1 passed" in run("def test_mine(assert_conformant): ...\n", variables={})
