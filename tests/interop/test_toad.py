"""Toad, an editor-side client in a terminal, with our agents: what it shows, its keys, and what goes over the wire."""

import asyncio
import sys
import uuid

import pytest
from benchmarks.build import Unavailable
from interop.conversation import MARK, PASSED, nothing_left
from interop.examples import example
from interop.peers import DEMO, command
from interop.tap import runs, tapped

from tests.waiting import wait_until

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals here"),
]


@pytest.fixture
def toad(tmp_path):
    """Toad in a folder with a file; at the end nothing that it started is left."""
    from interop.toad import installed
    from interop.toad_screen import Toad

    try:
        installed()
    except Unavailable as missing:
        pytest.skip(str(missing))
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    (work / "a.txt").write_text("one\n")
    mark = uuid.uuid4().hex
    yield Toad(work, home, {MARK: mark})
    assert asyncio.run(nothing_left(mark)) == PASSED


@pytest.fixture
def wire(tmp_path):
    """What was said in the last run, each message in its order; `wire.agent(command)` is what has to be started."""
    return Wire(tmp_path)


class Wire:
    def __init__(self, folder):
        self.folder = folder

    def agent(self, tokens):
        return tapped(self.folder / "runs", [token.replace("{data}", str(self.folder)) for token in tokens])

    def demo(self):
        return self.agent(command(DEMO, "agent"))

    def said(self, direction):
        return [message for way, message in runs(self.folder / "runs")[-1] if way == direction]

    def asked(self, method):
        return [it["params"] for it in self.said("in") if it.get("method") == method]

    def updates(self, kind):
        updates = [it["params"]["update"] for it in self.said("out") if it.get("method") == "session/update"]
        return [update for update in updates if update["sessionUpdate"] == kind]

    def text(self):
        return "".join(it["content"]["text"] for it in self.updates("agent_message_chunk"))

    def answers(self, method):
        """The client's answers to requests of this method, or the agent's to the client's."""
        [(asking, answering)] = {
            (way, other)
            for way, other in (("in", "out"), ("out", "in"))
            if any(it.get("method") == method for it in self.said(way))
        }
        ids = [it["id"] for it in self.said(asking) if it.get("method") == method]
        return [it.get("result") for it in self.said(answering) if "method" not in it and it["id"] in ids]

    def outcomes(self):
        return [it["outcome"] for it in self.answers("session/request_permission")]

    def stop_reasons(self):
        return [it["stopReason"] for it in self.answers("session/prompt")]


def test_what_is_said_is_shown_while_it_is_said_and_a_cancelled_turn_ends_there(toad, wire):
    with toad.started(wire.demo()) as screen:
        screen.say("/slow 600")
        screen.wait_for("This takes 600 steps", "Take my time")
        assert wire.stop_reasons() == []
        screen.cancel()
        screen.wait_for("I stopped at step", "failed")
        screen.say("say still here")
        screen.wait_for(until=lambda text: text.count("still here") > 1)
        wait_until(lambda: wire.stop_reasons() == ["cancelled", "end_turn"])
        assert screen.quit() == 0


def test_a_command_that_the_agent_offers_is_chosen_and_its_plan_is_shown(toad, wire):
    with toad.started(wire.demo()) as screen:
        screen.type("/")
        screen.wait_for("/call", "/plan")
        screen.type("plan")
        screen.wait_for("Show a plan, and follow it", until=lambda text: "/call" not in text)
        screen.press("enter")
        screen.wait_for("/plan", until=lambda text: "Show a plan" not in text)
        screen.press("enter")
        screen.wait_for("✔ Look at what is there", "✔ Think of something better", "✔ Say so", "That was a plan.")
        assert screen.quit() == 0
    [prompt] = wire.asked("session/prompt")
    assert prompt["prompt"][0]["text"].strip() == "/plan"
    assert {entry["status"] for entry in wire.updates("plan")[-1]["entries"]} == {"completed"}


@pytest.mark.parametrize(
    ("key", "option", "sign", "text"),
    [("a", "allow_once", "✔", "one\nAnd once more.\n"), ("r", "reject_once", "failed", "one\n")],
)
def test_an_edit_is_shown_as_a_diff_and_a_key_allows_or_rejects_it(toad, wire, key, option, sign, text):
    with toad.started(wire.demo()) as screen:
        screen.say("/edit a.txt")
        screen.wait_for("work/a.txt", "And once more.", "Reject once")
        assert (toad.work / "a.txt").read_text() == "one\n"
        screen.press(key)
        screen.wait_for("Edit a.txt", sign)
        screen.wait_for("How can I help you")
        assert screen.quit() == 0
    assert wire.outcomes() == [{"outcome": "selected", "optionId": option}]
    wait_until(lambda: wire.stop_reasons() == ["end_turn"])
    assert (toad.work / "a.txt").read_text() == text


def test_a_command_runs_in_its_terminal_when_a_key_allows_it(toad, wire):
    with toad.started(wire.demo()) as screen:
        screen.say("/run sh -c 'echo $((6 * 7)) things'")
        screen.wait_for("Always allow")
        screen.press("a")
        screen.wait_for("42 things", "It went well.")
        assert screen.quit() == 0
    [output] = wire.answers("terminal/output")
    assert output["output"].split() == ["42", "things"]
    assert wire.answers("terminal/wait_for_exit") == [{"exitCode": 0, "signal": None}]


def test_a_mode_that_is_chosen_changes_what_the_agent_does(toad, wire):
    with toad.started(wire.demo()) as screen:
        screen.press("ctrl+o")
        screen.wait_for("Asks before it changes", "Does what it is told")
        screen.press("down", "enter")
        screen.wait_for("Mode changed to Auto")
        screen.say("/edit a.txt")
        screen.wait_for("Edit a.txt ✔")
        assert screen.quit() == 0
    assert [it["modeId"] for it in wire.asked("session/set_mode")] == ["auto"]
    assert (toad.work / "a.txt").read_text() == "one\nAnd once more.\n"


def test_an_error_of_the_agent_is_shown_and_the_session_goes_on(toad, wire):
    with toad.started(wire.demo()) as screen:
        screen.say("/error")
        screen.wait_for("agent returned an error")
        screen.say("say still here")
        screen.wait_for(until=lambda text: text.count("still here") > 1)
        assert screen.quit() == 0


def test_an_update_that_it_does_not_know_and_complains_about_does_no_harm(toad, wire):
    with toad.started(wire.demo()) as screen:
        screen.say("/title A day")
        screen.say("say still here")
        screen.wait_for(until=lambda text: text.count("still here") > 1)
        assert screen.quit() == 0
    assert wire.updates("session_info_update")
    assert [it for it in wire.said("in") if "error" in it and it["id"] is None]
    wait_until(lambda: wire.stop_reasons() == ["end_turn", "end_turn"])


def test_a_session_is_resumed_after_both_have_ended(toad, wire):
    with toad.started(wire.agent(example("lasting_agent.py", "{data}/notes.db"))) as screen:
        screen.say("milk")
        screen.wait_for("1. milk")
        assert screen.quit() == 0
    [created] = wire.answers("session/new")
    with toad.started() as screen:
        screen.wait_for("Choose your fighter")
        screen.press("ctrl+r")
        screen.wait_for("Pick a session to resume", "New Session")
        screen.press("enter")
        screen.wait_for("1. milk", "agent connected")
        screen.say("bread")
        screen.wait_for("2. bread")
        assert screen.quit() == 0
    assert [it["sessionId"] for it in wire.asked("session/load")] == [created["sessionId"]]
    assert wire.text().endswith("1. milk\n2. bread\n")


def test_a_framework_s_agent_streams_asks_and_is_cancelled(toad, wire, framework_agent):
    with toad.started(wire.agent(framework_agent)) as screen:
        screen.say("hello")
        screen.wait_for("You said hello", "Hm.")
        screen.say("write")
        screen.wait_for("a.txt", "Reject once")
        screen.press("r")
        screen.wait_for("The tool said: The user does not allow this.")
        assert (toad.work / "a.txt").read_text() == "one\n"
        screen.say("write")
        screen.wait_for("Reject once")
        screen.press("a")
        screen.wait_for("The tool said: Written.")
        assert (toad.work / "a.txt").read_text() == "new"
        screen.say("wait")
        screen.wait_for("Waiting")
        screen.cancel()
        screen.say("bye")
        screen.wait_for("You said")
        screen.wait_for(until=lambda text: text.count("bye") > 1)
        assert screen.quit() == 0
    assert [it["optionId"] for it in wire.outcomes()] == ["reject_once", "allow_once"]
    wait_until(lambda: wire.stop_reasons() == ["end_turn", "end_turn", "end_turn", "cancelled", "end_turn"])


def test_an_agent_whose_editor_is_killed_in_mid_turn_ends(toad):
    agent = [token.replace("{data}", str(toad.home)) for token in command(DEMO, "agent")]
    with toad.started(agent) as screen:
        screen.say("/slow 600")
        screen.wait_for("Take my time")
        screen.program.kill()
        screen.program.wait()
