"""Traces that a hostile peer has filled: the index and the page take anything, and nothing in them acts on the page."""

import base64
import json

import pytest

from accord.schema.codec import encode
from accord.trace.query import read_query
from accord_tools.inspector.api import conversation_at
from accord_tools.inspector.folded_turn import Folds, settings_at
from accord_tools.inspector.message_rows import Fields, detail_of, row_of, rows_of_runs
from accord_tools.inspector.trace_lines import BROKEN
from accord_tools.inspector.trace_search import Search
from tests.inspector.test_page import has, is_quiet

SCRIPT = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    "<svg onload=document.title='owned'>"
)
DEEP = b"[" * 10_000 + b"]" * 10_000


def update(content):
    """The bytes of a line with an update of this content."""
    return (
        b'{"t":1,"dir":"in","frame":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%b}}}\n'
        % content
    )


def hostile_lines():
    return {
        "deep": update(b'{"sessionUpdate":"agent_message_chunk","content":%b}' % DEEP),
        "deep text": b'{"t":1,"dir":"in","text":%b}\n' % json.dumps(DEEP.decode()).encode(),
        "half of an emoji": update(
            rb'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud83d"}}'
        ),
        "half of an emoji as text": rb'{"t":1,"dir":"in","text":"{\"method\":\"a\ud83d\"}"}' + b"\n",
        "half of an emoji in a name": rb'{"t":1,"dir":"in","frame":{"method":"\ud83d","params":'
        b'{"sessionId":"\\ude00"}}}\n',
        "wrong types": b'{"t":"x","dir":7,"frame":{"id":{"a":1},"method":[],"params":"x","result":{},"error":5}}\n',
        "an update of a wrong type": update(b'{"sessionUpdate":["a"],"content":{"type":5,"text":{}}}'),
        "a tool call of wrong types": update(
            b'{"sessionUpdate":"tool_call","toolCallId":{"a":1},"title":7,"locations":"x","content":{},"status":[]}'
        ),
        "options of wrong types": b'{"t":1,"dir":"in","frame":{"id":1,"method":"session/request_permission",'
        b'"params":{"sessionId":"s1","options":[1,null,{"name":{}}],"toolCall":[]}}}\n',
        "a prompt of a wrong type": b'{"t":1,"dir":"out","frame":{"id":2,"method":"session/prompt",'
        b'"params":{"sessionId":"s1","prompt":{"type":"text"}}}}\n',
        "invalid UTF-8": b'{"t":1,"dir":"in","frame":{"method":"\xff\xfe"}}\n',
        "not JSON": b"hello \x00\x1b[31m\n",
        "a cut line": b'{"t":1,"dir":"in","frame":{"jsonrpc"\n',
        "an empty object": b"{}\n",
        "a number": b"17\n",
        "an answer to nothing": b'{"t":1,"dir":"in","frame":{"id":99,"result":null}}\n',
        "huge numbers": b'{"t":1e300,"dir":"in","frame":{"id":' + b"9" * 400 + b',"method":"x"}}\n',
        "no time": b'{"dir":"in","frame":{"id":5,"method":"x"}}\n',
        "other members": b'{"t":1,"later":{"a":[1,2]}}\n',
        "an empty line": b"\n",
    }


@pytest.mark.parametrize("name", hostile_lines())
def test_any_line_is_a_row_that_can_be_shown(recording, indexed, name):
    recording.opening()
    recording.raw(hostile_lines()[name])
    recording.says("s1", "still here")
    index = indexed(recording)
    assert len(index) == (5 if name == "an empty line" else 6)
    for row in range(len(index)):
        encode(row_of(index, row))
        detail = encode(detail_of(index, row))
        assert json.loads(detail)["number"] == row
    folds = Folds(index)
    last = len(index) - 1
    shown = folds.at(1, index.sessions[1].turn_at(last), last + 1).plain()
    encode(shown)
    assert "still here" in json.dumps(shown)
    encode(settings_at(index, 1, last))
    search = Search(index, read_query("path:* tool:x still"))
    while not search.is_done:
        search.step()


def test_a_frame_of_50_megabytes_is_shown_from_its_beginning(recording, indexed):
    recording.opening()
    recording.raw(
        update(b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%b"}}' % (b"x" * 50_000_000))
    )
    recording.says("s1", "after it")
    index = indexed(recording)
    assert row_of(index, 4)[Fields.DETAIL] == f"{index.columns.size(4):,} bytes"
    detail = detail_of(index, 4)
    assert (len(detail["raw"]), detail["length"]) == (128 * 1024, 50_000_156)
    assert len(detail_of(index, 4, whole=True)["raw"]) == 50_000_156
    shown = Folds(index).at(1, index.sessions[1].turn_at(5), 6).plain()
    assert [item["type"] for item in shown["items"]] == ["large", "message"]


def test_a_peer_that_makes_up_names_does_not_fill_the_memory(recording, indexed):
    recording.opening()
    lines = [
        b'{"t":1,"dir":"in","frame":{"method":"m%d","params":{"sessionId":"s%d"}}}\n' % (number, number)
        for number in range(70_000)
    ]
    recording.raw(b"".join(lines))
    index = indexed(recording)
    assert len(index) == 70_004
    assert len(index.methods) == len(index.sessions) == 65_001
    assert row_of(index, 70_000)[Fields.WHAT] == "m69996"


def test_a_line_that_never_ends_is_not_read_for_ever(recording, indexed, monkeypatch):
    monkeypatch.setattr("accord_tools.inspector.trace_index.MOST_LINE", 10_000_000)
    recording.opening()
    recording.raw(b'{"t":1,"text":"' + b"x" * 20_000_000)
    index = indexed(recording)
    assert len(index) == 0 or index.problem
    index.grow_whole()
    assert "more than 10,000,000 bytes" in (index.problem or "")


def test_a_broken_frame_is_a_row_with_its_bytes(recording, indexed):
    recording.raw(b"hello\n")
    index = indexed(recording)
    assert index.columns.kind[0] == BROKEN
    assert rows_of_runs(index, 0, 1)[0][Fields.DETAIL] == "hello"
    assert detail_of(index, 0)["raw"] == "hello"


@pytest.fixture
def trap(recording):
    """A trace with scripts in every string that a peer chooses."""
    recording.opening(SCRIPT)
    recording.prompt(2, SCRIPT, SCRIPT)
    links = f"[{SCRIPT}](javascript:alert(1)) [ok](https://a.example/x)"
    recording.says(SCRIPT, f"{SCRIPT}\n\n{links}\n# {SCRIPT}\n- {SCRIPT}\n```{SCRIPT}\n{SCRIPT}\n```")
    recording.says(SCRIPT, SCRIPT, "agent_thought_chunk")
    change = {"type": "diff", "path": SCRIPT, "oldText": SCRIPT, "newText": SCRIPT + "2"}
    call = {"toolCallId": SCRIPT, "title": SCRIPT, "kind": SCRIPT, "status": SCRIPT, "rawInput": {SCRIPT: SCRIPT}}
    recording.update(SCRIPT, "tool_call", **call, locations=[{"path": SCRIPT}], content=[change])
    drawing = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=1"></svg>').decode()
    picture = {"type": "image", "mimeType": "image/svg+xml", "data": drawing}
    recording.update(SCRIPT, "agent_message_chunk", content=picture)
    options = [{"optionId": SCRIPT, "name": SCRIPT, "kind": SCRIPT}]
    question = {"sessionId": SCRIPT, "toolCall": {"toolCallId": SCRIPT}, "options": options}
    recording.request("in", SCRIPT, "session/request_permission", question)
    recording.update(SCRIPT, SCRIPT, content=SCRIPT)
    recording.line("in", stderr=SCRIPT)
    recording.line("in", note=SCRIPT)
    recording.error("in", 2, -1, SCRIPT)
    recording.raw(update(b'{"sessionUpdate":"agent_message_chunk","content":%b}' % DEEP))
    return recording


def test_scripts_in_every_string_stay_text(show, trap):
    page = show(trap.path)
    has(page, "<script>")
    for key in "12345":
        page.press(key)
        page.until("document.querySelector('#main').childElementCount > 0")
    page.press("4")
    has(page, "onerror")
    page.press("g")
    for form in "rwu":
        page.press(form)
        for _ in range(16):
            page.press("j")
        has(page, "#1", "#detail")
        page.press("g")
    assert page.evaluate("document.title") == "wire.jsonl · Accord inspector"
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    assert page.evaluate("document.querySelectorAll('main img[src=x], aside img[src=x], main svg').length") == 0
    links = page.evaluate("[...document.links].map((it) => it.href)")
    assert all(link.startswith(("https://a.example/", "https://agentclientprotocol.com/")) for link in links)
    is_quiet(page)


def test_ten_thousand_levels_are_shown_as_a_tree_that_opens_step_by_step(show, trap):
    page = show(trap.path)
    page.press("4")
    page.press("G")
    has(page, "Raw", "#detail")
    page.press("w")
    page.until("document.querySelectorAll('#detail .tree button').length > 3")
    before = page.evaluate("document.querySelectorAll('#detail .tree button').length")
    # The pane may draw the tree once more when the message has come as a whole; then the branch is closed again.
    page.until(
        f"""(() => {{
            const buttons = [...document.querySelectorAll('#detail .tree button')];
            if (buttons.length === {before}) buttons.at(-1).click();
            return buttons.length === {before + 1};
        }})()"""
    )
    is_quiet(page)


def test_a_conversation_without_a_session_is_empty(recording, indexed):
    recording.line("in", note="nothing else")
    index = indexed(recording)
    assert conversation_at(index, Folds(index), 0)["items"] == []
