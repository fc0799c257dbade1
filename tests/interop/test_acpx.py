"""acpx drives the built-in agent: one-shot prompts, permissions, and every command about sessions."""

import json
import os
import signal

import pytest
from benchmarks.build import Unavailable
from interop.acpx import Acpx, installed
from interop.peers import DEMO, command

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture
def acpx(tmp_path):
    try:
        installed()
    except Unavailable as missing:
        pytest.skip(str(missing))
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    agent = [token.replace("{data}", str(tmp_path)) for token in command(DEMO, "agent")]
    acpx = Acpx(agent, folder, home)
    yield acpx
    for name in (it.get("name") for it in told(acpx, "sessions", "list", "--local") if not it.get("closed")):
        acpx("sessions", "close", *([name] if name else []))


def lines(said):
    return [json.loads(line) for line in said.out.splitlines()]


def told(acpx, *arguments):
    said = acpx("--format", "json", *arguments)
    assert said.code == 0, said
    return json.loads(said.out)


def test_a_prompt_is_answered(acpx):
    said = acpx("--format", "quiet", "exec", "say good day")
    assert (said.code, said.out.strip()) == (0, "good day")


def test_the_wire_is_what_it_expects(acpx):
    said = acpx("--format", "json", "exec", "/plan")
    kinds = [it["params"]["update"]["sessionUpdate"] for it in lines(said) if it.get("method") == "session/update"]
    assert said.code == 0
    assert "plan" in kinds
    assert lines(said)[-1]["result"] == {"stopReason": "end_turn"}


def test_an_edit_that_is_allowed_is_made_and_one_that_is_denied_is_not(acpx):
    page = acpx.folder / "a.txt"
    page.write_text("one\n")
    assert acpx("--approve-all", "exec", "/edit a.txt").code == 0
    assert page.read_text() == "one\nAnd once more.\n"
    acpx("--approve-reads", "--non-interactive-permissions", "deny", "exec", "/edit a.txt")
    assert page.read_text() == "one\nAnd once more.\n"


def test_a_command_runs_in_its_terminal(acpx):
    said = acpx("--approve-all", "exec", "/run touch made")
    assert said.code == 0, said
    assert (acpx.folder / "made").exists()


def test_an_error_of_the_agent_is_shown(acpx):
    said = acpx("exec", "/error")
    assert said.code == 1
    assert "This error was asked for" in said.out + said.err


def test_a_session_is_kept_asked_changed_shown_and_closed(acpx):
    created = acpx("--format", "quiet", "sessions", "new", "--name", "first")
    session_id = created.out.strip().splitlines()[-1]
    assert "remember me" in acpx("prompt", "-s", "first", "say remember me").out
    assert acpx("set-mode", "-s", "first", "auto").code == 0
    assert acpx("set", "-s", "first", "length", "short").code == 0
    assert "mode: auto" in acpx("status", "-s", "first").out
    assert session_id in acpx("sessions", "list").out
    assert session_id in acpx("sessions", "show", "first").out
    assert "remember me" in acpx("sessions", "history", "first").out
    assert "remember me" in acpx("sessions", "read", "first").out
    assert session_id in acpx("sessions", "ensure", "--name", "first").out
    assert acpx("sessions", "close", "first").code == 0


def test_a_session_outlives_every_agent_that_had_it(acpx):
    created = told(acpx, "sessions", "ensure", "--name", "first")  # the agent that makes it ends with this command
    assert created["created"]
    session_id = created["acpxSessionId"]
    assert "Ada" in acpx("prompt", "-s", "first", "my name is Ada").out
    first = told(acpx, "sessions", "show", "first")
    assert (first["acpSessionId"], first["closed"]) == (session_id, False)
    again = told(acpx, "sessions", "ensure", "--name", "first")
    assert (again["created"], again["acpxSessionId"]) == (False, session_id)
    assert acpx("sessions", "close", "first").code == 0
    assert told(acpx, "sessions", "show", "first")["closed"]
    [listed] = told(acpx, "sessions", "list")["sessions"]  # by yet another agent
    assert (listed["sessionId"], listed["cwd"]) == (session_id, str(acpx.folder))
    assert listed["title"] == "my name is Ada"
    assert told(acpx, "sessions", "list", "--filter-cwd", str(acpx.home))["sessions"] == []
    reopened = told(acpx, "sessions", "ensure", "--name", "first", "--resume-session", session_id)
    assert (reopened["created"], reopened["acpxSessionId"]) == (True, session_id)
    assert "You are Ada." in acpx("prompt", "-s", "first", "what is my name").out
    second = told(acpx, "sessions", "show", "first")
    assert (second["acpSessionId"], second["closed"]) == (session_id, False)
    assert second["pid"] != first["pid"]


def test_a_session_goes_on_after_its_agent_was_killed(acpx):
    acpx("sessions", "new", "--name", "first")
    assert "Ada" in acpx("prompt", "-s", "first", "my name is Ada").out
    before = told(acpx, "sessions", "show", "first")
    os.kill(before["pid"], signal.SIGKILL)
    assert "You are Ada." in acpx("prompt", "-s", "first", "what is my name").out
    after = told(acpx, "sessions", "show", "first")
    assert after["acpSessionId"] == before["acpSessionId"]
    assert after["pid"] != before["pid"]


def test_a_session_that_nobody_has_is_not_resumed(acpx):
    said = acpx("sessions", "new", "--name", "first", "--resume-session", "nobody")
    assert said.code != 0
    assert "nobody" in said.out + said.err


def test_a_running_turn_is_cancelled(acpx):
    acpx("sessions", "new", "--name", "slow")
    assert acpx("prompt", "-s", "slow", "--no-wait", "/slow 600").code == 0
    for _ in range(30):  # it is queued, and begins when the agent is there
        if "cancel requested" in (said := acpx("cancel", "-s", "slow")).out:
            break
    assert "cancel requested" in said.out, said
    assert "still here" in acpx("prompt", "-s", "slow", "say still here").out
