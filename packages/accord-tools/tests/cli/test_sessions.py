"""`accord sessions`, `accord run --continue` and `--session` with the start of an id."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

NOTING = Path(__file__).with_name("noting_agent.py")

LISTING = """
import accord
from accord import v1

agent = accord.Agent("listing", capabilities=lambda offers: offers)
IDS = ["abc-1", "abc-2", "xyz-3"]


@agent.on(v1.ListSessionsRequest)
def sessions(request, context):
    return v1.ListSessionsResponse([v1.SessionInfo(v1.SessionId(it), request.cwd or "/x") for it in IDS])


@agent.on_prompt
async def reply(turn):
    await turn.say("Hi")
"""


@pytest.fixture
def demo(user):
    """The built-in agent with a store, by its name."""
    store = str(user.home / "sessions.db")
    user.said("agents", "add", "demo", "--", sys.executable, "-m", "accord", "demo", "--pace", "0", "--store", store)
    return user


def ids(user, *arguments):
    return [it["sessionId"] for it in json.loads(user.said("sessions", "list", "-a", "demo", "--json", *arguments))]


def test_the_sessions_of_a_folder_are_listed_the_latest_first(demo, tmp_path):
    demo.said("run", "/title First", "-a", "demo")
    demo.said("run", "/title Second", "-a", "demo")
    demo.said("run", "/title Elsewhere", "-a", "demo", cwd=tmp_path)
    listed = demo.said("sessions", "list", "-a", "demo")
    assert [line.split()[-1] for line in listed.splitlines()] == ["TITLE", "Second", "First"]
    assert "Elsewhere" in demo.said("sessions", "list", "-a", "demo", "--all")
    assert len(ids(demo)) == 2
    assert len(ids(demo, "--all")) == 3
    assert len(ids(demo, "--cwd", str(tmp_path))) == 1
    demo.said("agents", "default", "demo")
    assert demo.said("sessions") == listed


def test_continue_takes_the_latest_session_of_the_folder(demo, tmp_path):
    demo.said("run", "/title Here", "-a", "demo")
    demo.said("run", "/title Elsewhere", "-a", "demo", cwd=tmp_path)
    demo.said("run", "What else?", "--continue", "-a", "demo")
    [session] = ids(demo)
    shown = demo.said("sessions", "show", session, "-a", "demo")
    assert shown.startswith("# Here\n")
    assert "> **You:** What else?" in shown


def test_continue_without_a_session_is_refused(demo):
    assert f"no session of the folder {demo.folder} to continue" in demo.refused(
        "run", "Hi", "--continue", "-a", "demo"
    )
    assert "exclude each other" in demo.refused("run", "Hi", "--continue", "--session", "x", "-a", "demo")


def test_the_start_of_an_id_is_enough(demo):
    demo.said("run", "/title First", "-a", "demo")
    [session] = ids(demo)
    demo.said("run", "Second prompt", "--session", session[:5], "-a", "demo")
    assert "Second prompt" in demo.said("sessions", "show", session[:5], "-a", "demo")
    assert "no session has an id that starts with 'nope'" in demo.refused("sessions", "show", "nope", "-a", "demo")


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_session_is_copied_up_to_a_message(demo, version):
    of_version = ["-a", "demo", "--protocol", version]
    demo.said("run", "/title First", *of_version)
    [session] = ids(demo)
    demo.said("run", "Second prompt", "--session", session, *of_version)
    places = demo.said("sessions", "fork", session, "--at", *of_version).splitlines()[1:]
    place = next(line.split()[0] for line in places if "Second prompt" in line)
    copy = demo.said("sessions", "fork", session, "--at", place, *of_version).strip()
    assert "Second prompt" in demo.said("sessions", "show", session, *of_version)
    assert "Second prompt" not in demo.said("sessions", "show", copy, *of_version)


def test_a_start_that_several_sessions_have_is_refused(user):
    user.write("listing.py", LISTING)
    error = user.refused("run", "Hi", "--session", "abc", "--", "listing.py")
    assert "several sessions have an id that starts with 'abc': abc-1, abc-2" in error


def test_a_session_is_exported_as_json_lines_and_as_markdown(demo, tmp_path):
    demo.said("run", "/title Kept", "-a", "demo")
    [session] = ids(demo)
    lines = [json.loads(line) for line in demo.said("sessions", "export", session, "-a", "demo").splitlines()]
    assert lines[0] == {"type": "session", "sessionId": session, "cwd": str(demo.folder)}
    assert {line["type"] for line in lines[1:]} == {"update"}
    assert {"sessionUpdate": "session_info_update", "title": "Kept"} in [line["update"] for line in lines[1:]]
    file = tmp_path / "talk.md"
    export = ["sessions", "export", session, "--format", "markdown", "-o", str(file), "-a", "demo"]
    assert demo.said(*export) == ""
    assert file.read_text() == demo.said("sessions", "show", session, "-a", "demo")
    assert "File exists" in demo.refused(*export)


def test_deleting_needs_a_yes(demo):
    demo.said("run", "/title Old", "-a", "demo")
    [session] = ids(demo)
    assert "confirm with --yes" in demo.refused("sessions", "delete", session[:6], "-a", "demo", input="")
    assert ids(demo) == [session]
    assert demo.said("sessions", "delete", session[:6], "--yes", "-a", "demo") == f"Deleted {session}.\n"
    assert ids(demo) == []


def test_sessions_of_an_agent_without_a_list_are_remembered(user, tmp_path):
    log = user.folder / "log"
    agent = [sys.executable, str(NOTING), str(log)]
    assert "no session of the folder" in user.refused("run", "Hi", "--continue", "--", *agent)
    user.said("run", "Hi", "--", *agent)
    user.said("run", "Hi", "--continue", "--", *agent)
    assert log.read_text().count("session/new") == 1
    assert log.read_text().count("session/resume {'sessionId': 's'") == 1
    assert "no session of the folder" in user.refused("run", "Hi", "--continue", "--", *agent, cwd=tmp_path)
    other = [*agent[:-1], str(user.folder / "log2")]
    assert "no session of the folder" in user.refused("run", "Hi", "--continue", "--", *other)
    done = user.accord("sessions", "list", "--json", "--", *agent)
    assert [it["sessionId"] for it in json.loads(done.stdout)] == ["s"]
    assert "the agent cannot list sessions" in done.stderr


def test_a_folder_of_state_that_cannot_be_written_does_not_stop_a_turn(user):
    user.environment["XDG_STATE_HOME"] = "/dev/null/nowhere"
    assert user.said("run", "Say hello") == "hello\n"


def test_what_an_agent_cannot_do_is_said(user):
    agent = [sys.executable, str(NOTING), str(user.folder / "log")]
    for command, says in (
        (["show", "s"], "cannot load sessions"),
        (["delete", "s", "--yes"], "cannot delete sessions"),
    ):
        done = user.accord("sessions", *command, "--", *agent)
        assert done.returncode == 1
        assert says in done.stderr
    done = user.accord("sessions", "list", "--", *agent)
    assert "the agent cannot list sessions; these are those that accord run has opened" in done.stderr
    assert f"has no session of {user.folder}; --all lists those of all folders\n" in done.stdout


def test_a_session_is_forked_whole_or_at_a_place(demo):
    demo.said("run", "First prompt", "-a", "demo")
    demo.said("run", "Second prompt", "--continue", "-a", "demo")
    [session] = ids(demo)
    whole = demo.said("sessions", "fork", session, "-a", "demo").strip()
    assert "Second prompt" in demo.said("sessions", "show", whole, "-a", "demo")
    places = demo.said("sessions", "fork", session[:5], "--at", "-a", "demo")
    [place] = [line.split()[0] for line in places.splitlines() if line.endswith("before 'Second prompt'")]
    part = demo.said("sessions", "fork", session, "--at", place, "-a", "demo").strip()
    shown = demo.said("sessions", "show", part, "-a", "demo")
    assert "First prompt" in shown
    assert "Second prompt" not in shown
    refused = demo.refused("sessions", "fork", session, "--at", "nowhere", "-a", "demo")
    assert "cannot be forked at 'nowhere'; it can be at '" in refused
    assert place in refused
