"""The page of the inspector, in a real Chromium: each view, the keyboard, search, a live trace."""

import json
import re

import pytest

from tests.inspector.recording import Recording

CHOSEN = "document.querySelector('.row.chosen')?.innerText ?? ''"
LOCAL = re.compile(r"http://127\.0\.0\.1:\d+|blob:|data:|about:")


@pytest.fixture
def page(show, recording):
    recording.opening()
    recording.turn(2, "Change the notes")
    recording.turn(3, "Change them again")
    return show(recording.path)


def is_quiet(page):
    """The page has complained of nothing, and has asked no other machine for anything."""
    assert page.problems() == []
    assert all(LOCAL.match(origin) for origin in page.requested()), page.requested()


def slide(page, row):
    """Move the slider of the conversation to this message."""
    slider = "document.querySelector('input[type=range]')"
    page.evaluate(f"{slider}.value = {row}; {slider}.dispatchEvent(new Event('input'))")


def has(page, text, selector="#main"):
    page.until(f"document.querySelector({json.dumps(selector)}).innerText.includes({json.dumps(text)})")


def test_the_page_opens_with_who_spoke_to_whom_and_what_they_agreed_on(page):
    has(page, "They agreed on version 1 of the protocol.")
    assert page.texts(".parties section") == [
        "Client\n\neditor 2\n\ndeclared no capabilities",
        "Agent\n\ngives no name\n\nloadSession",
    ]
    assert page.text(".overview table").split() == ["session", "turns", "messages", "s1", "2", "27"]
    has(page, "No message is chosen", "#detail")
    page.click(".overview table button")
    has(page, "Turn 1 of 2")
    assert page.evaluate("document.querySelector('.conversation').scrollTop") == 0
    page.press("]")
    has(page, "Turn 2 of 2")
    is_quiet(page)


def test_the_conversation_is_shown_as_of_the_last_message(page):
    page.press("G")
    has(page, "Turn ended")
    shown = page.text("#main")
    for text in (
        "Change them again",
        "Edit notes.md",
        "completed",
        "answered after 2.00 s",
        "I have changed the notes.",
        "end_turn",
    ):
        assert text in shown
    assert page.texts(".diff .line")[:2] == ["- one", "+ two"]
    assert page.texts(".option.chosen") == ["Allow"]
    assert "Turn 2 of 2" in shown
    is_quiet(page)


def test_the_conversation_goes_back_in_time(page):
    page.press("G")
    has(page, "Turn ended")
    slide(page, 20)
    page.until("document.querySelector('.status').innerText === 'pending'")
    has(page, "waiting for the user")
    assert "Turn ended" not in page.text("#main")
    page.press("[")
    has(page, "Change the notes")
    has(page, "Turn 1 of 2")
    is_quiet(page)


def test_the_timeline_says_where_the_time_went(page):
    page.press("2")
    has(page, "Change them again")
    page.until("document.querySelectorAll('.shares i').length >= 8")
    assert "user 2.00 s" in page.evaluate("[...document.querySelectorAll('.shares')].at(-1).title")
    page.press("j")
    page.press("j")
    page.until("document.querySelector('.row.chosen .prompt')?.innerText === 'Change them again'")
    has(page, "session/prompt", "#detail")
    is_quiet(page)


def test_the_sequence_has_an_arrow_for_each_message(page):
    page.press("3")
    has(page, "session/request_permission")
    assert page.texts(".columns b") == ["client", "agent"]
    arrows = page.evaluate(
        "[...document.querySelectorAll('.arrow-row')].map((it) => it.querySelector('.shaft').className)"
    )
    assert sum("right" in arrow for arrow in arrows) >= 5
    assert sum("answer" in arrow for arrow in arrows) >= 5
    is_quiet(page)


def test_the_sequence_has_a_column_for_each_component(show, tmp_path):
    chain = Recording(tmp_path / "chain.jsonl", role="conductor")
    for hop in (("client", "rules"), ("rules", "agent")):
        chain.line(
            "out", frame={"id": 1, "method": "initialize", "params": {}}, **dict(zip(("from", "to"), hop, strict=True))
        )
    page = show(chain.path)
    page.press("3")
    has(page, "initialize")
    assert page.texts(".columns b") == ["client", "rules", "agent"]
    is_quiet(page)


def test_messages_are_one_row_a_run_until_all_are_asked_for(page):
    page.press("4")
    has(page, "\u00d73")
    assert "I have changed **the** notes." in page.text("#main")
    page.press("c")
    page.until("!document.querySelector('#main').innerText.includes('\u00d73')")
    chunks = "[...document.querySelectorAll('.message .what')].filter((it) => it.innerText.includes('message_chunk'))"
    page.until(f"{chunks}.length > 3")
    is_quiet(page)


def test_a_walk_with_the_keyboard(page):
    page.press("4")
    has(page, "session/prompt")
    page.press("g")
    page.until(f"{CHOSEN}.includes('initialize')")
    for _ in range(4):
        page.press("j")
    page.until(f"{CHOSEN}.includes('Change the notes')")
    has(page, "Change the notes", "#detail")
    page.press("p")
    has(page, "answer to the client", "#detail")
    page.until(f"{CHOSEN}.includes('end_turn')")
    page.press("k")
    page.until(f"{CHOSEN}.includes('\u00d73')")
    page.press("w")
    page.until("document.querySelector('#detail .tree') !== null")
    page.press("u")
    page.until("document.querySelector('#detail pre') !== null")
    page.press("G")
    page.until(f"{CHOSEN}.includes('end_turn')")
    page.press("?")
    page.until("document.querySelector('#help').open")
    page.press("Escape")
    page.until("!document.querySelector('#help').open")
    page.press("k", control=True)
    page.until("document.querySelector('#palette').open")
    page.type("timeline")
    page.press("Enter")
    page.until("document.querySelector('#tab-timeline').getAttribute('aria-selected') === 'true'")
    is_quiet(page)


def test_a_search_shows_what_it_finds(page):
    page.press("/")
    page.type("kind:tool_call status:completed")
    page.until("document.querySelector('#search output').innerText === '2'")
    page.until("document.querySelectorAll('.message').length === 2")
    page.press("Enter")
    page.press("n")
    page.until(f"{CHOSEN}.includes('completed')")
    page.press("/")
    page.type("dur:x")
    page.until("document.querySelector('#search output').classList.contains('bad')")
    assert "dur: must be like" in page.text("#search output")
    page.press("Escape")
    page.until("document.querySelectorAll('.message').length > 10")
    assert [text for text in page.problems() if "400" not in text] == []
    page.press("/")
    page.type("no such words")
    has(page, "No message fits no such words")
    assert page.text("#search output") == "no match"


def test_what_the_checks_find_is_shown_beside_its_message(show, recording):
    recording.opening()
    fault = recording.request("in", 1, "fs/read_text_file", {"sessionId": "s1", "path": "notes.md"})
    page = show(recording.path)
    page.press("4")
    page.press("G")
    page.until("document.querySelector('.row.chosen .finding.fail') !== null")
    has(page, "did not declare fs.readTextFile", "#detail")
    has(page, "finding", "#status")
    page.press("h")
    page.until("document.querySelector('#search output').innerText !== ''")
    page.until(f"[...document.querySelectorAll('.message .number')].some((it) => it.innerText === '{fault}')")
    is_quiet(page)


def test_a_live_trace_is_followed(show, recording):
    recording.opening()
    page = show(recording.path)
    page.press("4")
    has(page, "session/new")
    recording.turn(2, "While you look")
    has(page, "While you look")
    page.until(f"{CHOSEN}.includes('end_turn')")
    page.press("1")
    has(page, "Turn ended")
    recording.prompt(3, "And again")
    has(page, "And again")
    is_quiet(page)


def test_a_reader_who_looks_at_an_earlier_message_stays_there(show, recording):
    recording.opening()
    recording.turn(2)
    page = show(recording.path)
    page.press("4")
    page.press("g")
    page.until(f"{CHOSEN}.includes('initialize')")
    recording.turn(3, "Later")
    page.until("document.querySelector('#status').innerText.includes('30 messages')")
    assert "initialize" in page.evaluate(CHOSEN)
    is_quiet(page)


def test_two_traces_are_compared(show, recording, tmp_path):
    recording.opening()
    recording.turn(2)
    other = Recording(tmp_path / "after.jsonl")
    other.opening(version=2)
    other.prompt(2, "Go")
    other.error("in", 2, -32603, "no model")
    page = show(recording.path, other.path)
    page.press("5")
    has(page, "turn 1")
    rows = page.texts(".compare tr")
    assert any(row.split("\t")[1:] == ["version 1", "version 2"] for row in rows)
    assert any("end_turn" in row and "error" in row for row in rows)
    assert any(row.startswith("agent.protocolVersion") for row in rows)
    is_quiet(page)


def test_without_the_token_the_page_says_what_to_do(chromium, inspect, recording):
    recording.opening()
    page = chromium.page()
    page.open(inspect(recording.path).partition("#")[0])
    has(page, "Open the URL that accord inspect printed")
    page.close()


def test_the_token_leaves_the_address_bar(page):
    assert page.evaluate("location.hash") == ""


@pytest.mark.parametrize(("dark", "back"), [(False, "rgb(255, 255, 255)"), (True, "rgb(21, 24, 30)")])
def test_the_system_chooses_light_or_dark(show, recording, dark, back):
    recording.opening()
    page = show(recording.path, dark=dark)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == back
    page.press("D")
    page.until(f"getComputedStyle(document.body).backgroundColor !== {json.dumps(back)}")


def test_a_lent_command_shows_its_output_and_its_exit_code(show, recording):
    recording.opening()
    recording.prompt(2, "Test it")
    recording.request("in", 7, "terminal/create", {"sessionId": "s1", "command": "make"})
    recording.answer("out", 7, {"terminalId": "t1"})
    shown = [{"type": "terminal", "terminalId": "t1"}]
    recording.update("s1", "tool_call", toolCallId="c1", title="Run", kind="execute", status="pending", content=shown)
    recording.request("in", 8, "terminal/output", {"sessionId": "s1", "terminalId": "t1"})
    recording.answer(
        "out", 8, {"output": "1 failed\n", "truncated": False, "exitStatus": {"exitCode": 2, "signal": None}}
    )
    recording.stop(2)
    page = show(recording.path)
    page.press("G")
    has(page, "1 failed")
    has(page, "terminal t1, exit code 2")
    assert page.texts(".status") == ["pending", "exit code 2"]
    is_quiet(page)


def test_a_table_in_markdown_is_a_table(show, recording):
    recording.opening()
    recording.prompt(2, "Compare")
    recording.says("s1", "These:\n| name | cost |\n|---|--:|\n| `a` | 1 |\n| b \\| c | 2 |\n\nThat is all.")
    recording.stop(2)
    page = show(recording.path)
    page.press("G")
    has(page, "That is all.")
    assert page.texts(".markdown table td") == ["a", "1", "b | c", "2"]
    assert page.texts(".markdown table th") == ["name", "cost"]
    is_quiet(page)


def test_every_turn_is_shown_however_many_there_are(show, recording, tmp_path):
    recording.opening()
    for number in range(2, 2_302):
        recording.prompt(number, f"Prompt {number}")
        recording.stop(number)
    other = Recording(tmp_path / "other.jsonl")
    other.opening()
    page = show(recording.path, other.path)
    has(page, "2,300 turns", "#status")
    page.press("2")
    has(page, "Whole time")
    turns = "import('./source.js').then((it) => it.allTurns(document.querySelector('#traces').value))"
    assert page.evaluate(f"{turns}.then((it) => it.map((turn) => turn.prompt))") == list(range(2_301))
    page.press("G")
    page.until("document.querySelector('.row.chosen .turn span')?.innerText === '2,300'")
    has(page, "turn 2,300", "#detail")
    page.press("5")
    has(page, "The first 200 of 2,300 turns.")
    for shown in ("400", "800", "1,600", "2,300"):
        page.click(".compare p button")
        page.until(
            f"[...document.querySelectorAll('.compare th')].at(-1).innerText === 'turn {shown.replace(',', '')}'"
        )
    assert page.texts(".compare p button") == []
    is_quiet(page)


def test_only_new_turns_are_asked_for_when_a_trace_grows(show, recording):
    recording.opening()
    recording.turn(2)
    page = show(recording.path)
    turns = "import('./source.js').then((it) => it.allTurns(document.querySelector('#traces').value))"
    assert page.evaluate(f"{turns}.then((it) => it.length)") == 2
    page.evaluate("window.asked = []; window.real = fetch; 0")
    page.evaluate("window.fetch = (url, ...more) => (asked.push(url), real(url, ...more)); 0")
    recording.turn(3)
    has(page, "2 turns", "#status")
    assert page.evaluate(f"{turns}.then((it) => it.map((turn) => turn.stop))") == ["", "end_turn", "end_turn"]
    asked = page.evaluate("asked.filter((url) => url.includes('/turns?'))")
    assert all("from=2" in url or "from=3" in url for url in asked)


def test_the_help_opens_at_its_top(page):
    page.press("?")
    page.until("document.querySelector('#help').open")
    assert page.evaluate("document.querySelector('#help').scrollTop") == 0
    assert page.evaluate("document.activeElement.innerText") == "Close"


def test_the_views_are_tabs_of_a_list_that_holds_nothing_else(page):
    roles = "[...document.querySelector('[role=tablist]').children].map((it) => it.getAttribute('role'))"
    assert page.evaluate(roles) == ["tab"] * 6


def test_a_narrow_page_has_the_message_below_the_view(page):
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    page.until("document.querySelector('#main').clientWidth === 390")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("getComputedStyle(document.querySelector('#detail')).display") == "none"  # nothing is chosen
    page.press("4")
    page.press("G")
    page.until("document.querySelector('#detail').clientHeight > 0")
    assert page.evaluate("document.querySelector('#detail').clientHeight") < 60  # one line until it is opened
    assert page.text("#detail").split() == ["session/prompt", "\u2713", "Show"]
    page.click("#detail .show")
    has(page, "turn 2", "#detail")
    page.until("document.querySelector('#detail').clientHeight > 200")
    bottom = "document.querySelector('.row.chosen').getBoundingClientRect().bottom"
    page.until(f"{bottom} <= document.querySelector('#detail').getBoundingClientRect().top")
    page.press("k")
    has(page, "agent_message_chunk", "#detail")
    page.click("#detail .close")
    page.until("document.querySelector('#detail').clientHeight < 60")


def test_a_narrow_page_shows_every_tab_and_the_slow_answers(page):
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    page.press("6")
    has(page, "p95")
    right = "Math.max(...[...document.querySelectorAll({})].map((it) => it.getBoundingClientRect().right))"
    assert page.evaluate(right.format("'#tabs button'")) <= 390
    assert page.evaluate(right.format("'.latencies :is(th, td)'")) <= 390
