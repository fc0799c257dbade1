"""Plots of latency, two messages side by side, and messages as code, in a real Chromium."""

import ast
import subprocess
import sys

import pytest

from accord_tools.inspector.api import MOST_POINTS, latencies
from tests.inspector.recording import Recording
from tests.inspector.test_page import has, is_quiet

CLIPBOARD = """
window.copied = []
Object.defineProperty(navigator, "clipboard", {value: {writeText: async (text) => void window.copied.push(text)}})
"""


@pytest.fixture
def page(show, recording):
    recording.opening()
    recording.turn(2, "Change the notes")
    recording.turn(3, "Change them again")
    return show(recording.path)


def look_at(page, query):
    """Look at the first message that a search finds."""
    page.press("/")
    page.evaluate("document.querySelector('#search input').value = ''")
    page.type(query)
    page.press("Enter")
    page.until(f"document.querySelector('#tabs .right').innerText.startsWith('found: {query}')")
    page.press("g")


def copied(page, key):
    page.evaluate("window.copied.length = 0")
    page.press(key)
    page.until("window.copied.length === 1")
    return page.evaluate("window.copied[0]")


# Latency


def test_latencies_are_by_method_with_the_most_time_first(recording, indexed):
    recording.opening()
    recording.turn(2)
    recording.prompt(3, "Fail")
    recording.error("in", 3, -32603, "no model")
    found = latencies(indexed(recording))["methods"]
    assert found[0]["method"] == "session/prompt"
    prompt = {name: found[0][name] for name in ("count", "errors")}
    assert prompt == {"count": 2, "errors": 1}
    assert found[0]["max"] == pytest.approx(3.1)
    assert found[1]["method"] == "session/request_permission"
    assert found[1]["points"][0][1] == pytest.approx(2.0)


def test_of_many_answers_the_slowest_of_each_part_are_points(recording, indexed):
    for number in range(3 * MOST_POINTS):
        recording.request("out", number, "_many", {}, after=0.001)
        recording.answer("in", number, {}, after=1.0 if number == 777 else 0.002)
    (method,) = latencies(indexed(recording))["methods"]
    assert method["count"] == 3 * MOST_POINTS
    assert len(method["points"]) == MOST_POINTS
    assert max(point[1] for point in method["points"]) == pytest.approx(1.0)


def test_the_keyboard_goes_through_the_methods_and_their_slowest_requests(page):
    page.press("6")
    page.until("document.querySelectorAll('.latencies tr').length > 4")
    assert page.texts(".latencies td:first-child")[0] == "session/prompt"
    page.press("j")
    page.press("j")
    page.until("document.querySelector('.latencies tr.chosen td').innerText === 'session/request_permission'")
    page.press("]")
    has(page, "session/request_permission", "#detail h2")
    has(page, "took 2.00 s", "#detail")
    is_quiet(page)


# Two messages


def test_two_messages_are_compared_member_by_member(page):
    look_at(page, "kind:tool_call")
    has(page, "tool_call", "#detail h2")
    page.press("m")
    has(page, "marked #", "#status")
    look_at(page, "kind:tool_call_update")
    has(page, "tool_call_update", "#detail h2")
    page.press("d")
    has(page, "members of")
    rows = dict(row.split("\t", 1) for row in page.texts(".frames tr.changed"))
    assert rows["params.update.sessionUpdate"] == '"tool_call"\t"tool_call_update"'
    assert rows["params.update.status"] == '"pending"\t"in_progress"'
    removed = [row.split("\t")[0] for row in page.texts(".frames tr.removed")]
    assert "params.update.title" in removed
    is_quiet(page)


def test_messages_of_two_traces_are_compared_by_their_turns(show, recording, tmp_path):
    recording.opening()
    recording.turn(2)
    other = Recording(tmp_path / "after.jsonl")
    other.opening()
    other.prompt(2, "Go")
    other.stop(2, "refusal")
    page = show(recording.path, other.path)
    page.press("5")
    page.until("document.querySelector('.compare th button') !== null")
    page.click(".compare th button")
    page.until("document.querySelector('.frames tr.changed') !== null")
    assert page.texts(".frames tr.changed") == ['result.stopReason\t"refusal"\t"end_turn"']
    is_quiet(page)


# Code


@pytest.mark.parametrize("key", ["Y", "T"])
def test_every_message_that_can_be_sent_becomes_code_that_compiles(show, recording, key):
    recording.opening()
    recording.turn(2, 'Say "\u2028\\ """ \ud83d\ude00')
    recording.request("out", 9, "session/list", {"flag": True, "none": None, "list": [1.5, {}], "odd": "\x00'"})
    recording.error("in", 9, -32601, "unknown")
    recording.line("out", frame={"jsonrpc": "2.0", "method": "_example.com/ping"})
    page = show(recording.path)
    page.evaluate(CLIPBOARD)
    page.press("4")
    page.press("c")
    page.press("g")
    has(page, "initialize", "#detail h2")
    for row in range(recording.count):
        page.until(f"document.querySelector('#detail .facts').innerText.startsWith('#{row}\\n')")
        page.evaluate("window.copied.length = 0")
        page.press(key)
        page.until("document.querySelector('#detail .said').innerText !== ''")
        for text in page.evaluate("window.copied"):
            ast.parse(text)
        page.press("]")
    is_quiet(page)


def run(text, path, *command):
    path.write_text(text)
    return subprocess.run(
        [sys.executable, *command, str(path)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def recorded(show, tmp_path):
    """A trace of the built-in agent, and its page."""
    command = [sys.executable, "-m", "accord", "demo"]
    path = Recording(tmp_path / "wire.jsonl", command=command)
    path.opening()
    path.prompt(2, "help")
    path.stop(2)
    path.request("out", 3, "session/set_mode", {"sessionId": "s1", "modeId": "not-a-mode"})
    path.error("in", 3, -32602, "unknown mode")
    path.request(
        "in", 4, "session/request_permission", {"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": []}
    )
    path.answer("out", 4, {"outcome": {"outcome": "cancelled"}})
    page = show(path.path)
    page.evaluate(CLIPBOARD)
    return page


def test_a_copied_program_sends_the_message(recorded, tmp_path):
    look_at(recorded, "method:prompt")
    has(recorded, "session/prompt", "#detail h2")
    ended = run(copied(recorded, "Y"), tmp_path / "send.py")
    assert "'stopReason': 'end_turn'" in ended.stdout, ended.stderr


@pytest.mark.parametrize(
    "query", ["method:prompt", "method:set_mode", "method:session/new", "method:request_permission"]
)
def test_a_copied_test_passes_with_the_recorded_agent(recorded, tmp_path, query):
    look_at(recorded, query)
    has(recorded, query.partition(":")[2], "#detail h2")
    text = copied(recorded, "T")
    ended = run(
        text, tmp_path / "test_copied.py", "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider"
    )
    assert "1 passed" in ended.stdout, ended.stdout + text
