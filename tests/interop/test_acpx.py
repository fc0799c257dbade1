"""acpx drives the built-in agent and examples: one-shot prompts, permissions, and every command about sessions."""

import json
import os
import signal
from dataclasses import replace

import pytest
from benchmarks.build import Unavailable
from interop.acpx import Acpx, installed
from interop.examples import example, framework_example
from interop.peers import DEMO, command

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture
def acpx_with(tmp_path):
    """`acpx_with(command)`: acpx with this agent, in an empty folder and at an empty home."""
    started = []

    def acpx_with(agent):
        folder, home = tmp_path / "work", tmp_path / "home"
        folder.mkdir()
        home.mkdir()
        started.append(Acpx([token.replace("{data}", str(tmp_path)) for token in agent], folder, home))
        return started[-1]

    yield acpx_with
    for acpx in started:
        close_sessions(acpx)


def close_sessions(acpx):
    for name in (it.get("name") for it in told(acpx, "sessions", "list", "--local") if not it.get("closed")):
        acpx("sessions", "close", *([name] if name else []))


@pytest.fixture
def acpx(acpx_with):
    try:
        installed()
    except Unavailable as missing:
        pytest.skip(str(missing))
    return acpx_with(command(DEMO, "agent"))


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


def test_an_unknown_session_is_not_resumed(acpx):
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


def test_a_prompt_comes_from_a_file_and_options_are_set_before_it(acpx):
    (acpx.folder / "prompt.txt").write_text("say good day")
    said = acpx("--format", "json", "exec", "--config-option", "length=short", "--file", "prompt.txt")
    assert said.code == 0, said
    [asked] = [it["params"] for it in lines(said) if it.get("method") == "session/set_config_option"]
    assert (asked["configId"], asked["value"]) == ("length", "short")
    assert "".join(text_of(it) for it in lines(said)) == "good day"


def text_of(message):
    match message:
        case {"params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"text": text}}}}:
            return text
    return ""


def test_what_it_does_not_lend_is_not_asked_for(acpx):
    said = acpx("--no-fs", "--no-terminal", "--format", "quiet", "exec", "/client")
    assert all(f"{what}: no" in said.out for what in ("reading files", "writing files", "terminals"))


def test_what_is_all_denied_is_refused_politely(acpx):
    said = acpx("--deny-all", "--format", "quiet", "exec", "/edit a.txt")
    assert "I changed nothing" in said.out
    assert not list(acpx.folder.iterdir())


def test_a_turn_without_an_end_is_given_up_in_time(acpx):
    assert acpx("--timeout", "3", "exec", "/slow 600").code == 3


def test_agents_of_its_configuration_are_compared_and_take_their_part_in_a_flow(acpx):
    acpx.configure(
        demo=acpx.agent, notebook=example("lasting_agent.py", str(acpx.home / "notes.db")), missing=["no-such-agent"]
    )
    assert acpx.plain("--format", "quiet", "exec", "say good day").out.strip() == "good day"
    assert acpx.plain("--format", "quiet", "notebook", "exec", "milk").out.strip() == "1. milk"
    compared = json.loads(acpx.plain("--format", "json", "compare", "demo", "notebook", "missing", "say hello").out)
    assert [(it["agent"], it["status"], it["final_message"]) for it in compared[:2]] == [
        ("demo", "ok", "hello"),
        ("notebook", "ok", "1. say hello"),
    ]
    assert compared[2]["status"] != "ok"
    flows = installed().parent / "acpx" / "dist" / "flows.js"
    (acpx.folder / "two.flow.mjs").write_text(FLOW.replace("FLOWS", flows.as_uri()))
    ran = acpx.plain("--approve-all", "--format", "json", "flow", "run", "two.flow.mjs")
    assert ran.code == 0, ran
    assert "You are Ada." in ran.out


FLOW = """
import { acp, defineFlow } from "FLOWS";

const parse = (text) => ({ text });
export default defineFlow({
  name: "two",
  startAt: "tell",
  nodes: {
    tell: acp({ prompt: () => "my name is Ada", parse }),
    ask: acp({ prompt: () => "what is my name", parse }),
  },
  edges: [{ from: "tell", to: "ask" }],
});
"""

WITH_A_PAST = {
    "demo": (lambda: command(DEMO, "agent"), ("my name is Ada", "Ada"), ("what is my name", "You are Ada.")),
    "notebook": (lambda: example("lasting_agent.py", "{data}/notes.db"), ("milk", "1. milk"), ("bread", "2. bread")),
    "pydantic_ai": (
        lambda: framework_example("pydantic_ai"),
        ("one", "You said one"),
        ("two", "You said one/two"),
    ),
}
"""How an agent is started, what it is told and says, and what it says later only if it still knows."""


@pytest.fixture(params=WITH_A_PAST)
def past(request, acpx_with):
    """acpx with each of them, and a session that has been told something; and what to ask then."""
    agent, (words, answer), later = WITH_A_PAST[request.param]
    try:
        installed()
        acpx = acpx_with(agent())
    except Unavailable as missing:
        pytest.skip(str(missing))
    told(acpx, "sessions", "new", "--name", "first")
    assert answer in acpx("prompt", "-s", "first", words).out
    return acpx, answer, *later


def test_a_session_is_exported_imported_elsewhere_and_goes_on(past, tmp_path):
    acpx, answer, words, later = past
    assert acpx("sessions", "close", "first").code == 0
    archive = tmp_path / "first.archive"
    assert acpx("sessions", "export", "first", "--output", str(archive)).code == 0
    elsewhere = replace(acpx, home=tmp_path / "elsewhere")
    elsewhere.home.mkdir()
    imported = elsewhere("sessions", "import", str(archive), "--name", "again")
    assert imported.code == 0, imported
    try:
        assert answer in elsewhere("sessions", "read", "again").out
        assert later in elsewhere("prompt", "-s", "again", words).out
        before, after = told(acpx, "sessions", "show", "first"), told(elsewhere, "sessions", "show", "again")
        assert after["acpSessionId"] == before["acpSessionId"]
    finally:
        close_sessions(elsewhere)


def test_a_closed_session_is_pruned_and_the_agent_still_has_it(past):
    acpx, _, words, later = past
    session_id = told(acpx, "sessions", "show", "first")["acpSessionId"]
    assert told(acpx, "sessions", "prune")["count"] == 0  # it is open
    assert acpx("sessions", "close", "first").code == 0
    for kept in (["--older-than", "1"], ["--before", "2001-01-01"]):
        assert told(acpx, "sessions", "prune", *kept)["count"] == 0
    for dry in (["--dry-run"], []):
        pruned = told(acpx, "sessions", "prune", "--include-history", *dry)
        assert (pruned["dryRun"], pruned["count"]) == (bool(dry), 1)
    assert told(acpx, "sessions", "list", "--local") == []
    assert session_id in [it["sessionId"] for it in told(acpx, "sessions", "list")["sessions"]]
    told(acpx, "sessions", "new", "--name", "again", "--resume-session", session_id)
    assert later in acpx("prompt", "-s", "again", words).out


def test_a_session_is_watched_and_watched_on_from_where_one_was(past):
    acpx, answer, words, later = past
    with acpx.following("sessions", "watch", "-s", "first") as events:
        seen = turn(events)
        assert answer in said_in(seen)
        assert acpx("prompt", "-s", "first", words).code == 0
        assert later in said_in(turn(events))
    with acpx.following("sessions", "watch", "-s", "first", "--cursor", seen[-1]["cursor"]) as events:
        again = said_in(turn(events))
        assert later in again
    assert acpx("sessions", "close", "first").code == 0


def turn(events):
    """The events of one turn, to its end."""
    seen = []
    for event in events:
        seen.append(event)
        if event["type"].startswith("turn_") and event["type"] != "turn_started":
            return seen
    raise AssertionError(f"it ended after {seen}")


def said_in(events):
    return "".join(text_of(it.get("message")) for it in events)
