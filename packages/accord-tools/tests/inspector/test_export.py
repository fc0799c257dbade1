"""A trace as one HTML file: it shows the same, asks no machine for anything, and masks secrets."""

import base64
import gzip
import json
import re

import pytest

from accord.errors import AccordError
from accord.trace.query import read_query
from accord_tools.inspector import export
from accord_tools.inspector.export import export_html
from accord_tools.inspector.trace_search import Search, TraceFindings
from tests.inspector.test_hostile import trap  # noqa: F401
from tests.inspector.test_page import CHOSEN, has, slide


@pytest.fixture
def exported(chromium, recording, tmp_path):
    """Export the recording, and open the page."""
    pages = []

    def open_page():
        target = tmp_path / "wire.html"
        export_html(recording.path, target)
        page = chromium.page()
        pages.append(page)
        page.open(target.as_uri())
        page.until("document.querySelector('#status').innerText.includes('message')")
        return page

    yield open_page
    for page in pages:
        page.close()


def packed(page):
    """The answers that an exported page holds."""
    return gzip.decompress(base64.b64decode(re.search(r'id="trace">([^<]+)<', page.read_text())[1]))


def is_quiet(page):
    assert page.problems() == []
    assert not [origin for origin in page.requested() if re.match("https?|wss?", origin)]


def test_an_exported_page_shows_each_view_without_a_server(exported, recording):
    recording.opening()
    recording.turn(2, "Change the notes")
    page = exported()
    has(page, "They agreed on version 1")
    page.press("G")
    has(page, "Turn ended")
    assert "answered after 2.00 s" in page.text("#main")
    page.press("2")
    page.until("document.querySelectorAll('.shares i').length >= 4")
    page.press("3")
    has(page, "session/request_permission")
    page.press("4")
    has(page, "\u00d73")
    page.press("g")
    page.until(f"{CHOSEN}.includes('initialize')")
    has(page, "initialize", "#detail")
    page.press("/")
    page.type('tool_call "edit notes"')
    page.until("document.querySelector('#search output').innerText === '3'")
    is_quiet(page)


def test_an_exported_page_goes_back_in_a_turn(exported, recording):
    recording.opening()
    recording.turn(2)
    page = exported()
    has(page, "They agreed on version 1")
    page.press("G")
    has(page, "Turn ended")
    slide(page, 7)
    page.until("!document.querySelector('#main').innerText.includes('Turn ended')")
    has(page, "Permission")
    is_quiet(page)


def test_scripts_in_an_exported_trace_stay_text(exported, trap):  # noqa: F811
    page = exported()
    has(page, "<script>")
    page.press("4")
    has(page, "onerror")
    assert page.evaluate("document.title") == "wire.jsonl · Accord inspector"
    assert page.evaluate("document.querySelectorAll('main img[src=x], aside img[src=x], main svg').length") == 0
    is_quiet(page)


def test_recognisable_secrets_are_masked_unless_they_are_wanted(recording, tmp_path):
    server = {"name": "db", "command": "db", "args": [], "env": [{"name": "DB_KEY", "value": "hunter2-hunter2"}]}
    recording.request("out", 1, "session/new", {"cwd": "/", "mcpServers": [server]})
    export_html(recording.path, tmp_path / "masked.html")
    export_html(recording.path, tmp_path / "whole.html", secrets=True)
    assert b"hunter2" not in packed(tmp_path / "masked.html")
    assert b"DB_KEY" in packed(tmp_path / "masked.html")
    assert b"hunter2" in packed(tmp_path / "whole.html")


def test_an_exported_page_is_for_its_owner_alone(recording, tmp_path):
    recording.opening()
    target = tmp_path / "wire.html"
    assert export_html(recording.path, target) == 4
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_trace_that_is_too_large_is_refused(recording, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "MOST", 100)
    recording.opening()
    with pytest.raises(AccordError, match="too large for one page"):
        export_html(recording.path, tmp_path / "wire.html")


QUERIES = [
    "overloaded",
    'OVERLOADED "the model"',
    "-overloaded",
    "method:prompt",
    "method:prompt kind:request",
    "kind:tool_call",
    "kind:stderr",
    "-kind:answer",
    "session:s1",
    "dir:agent",
    "dir:in",
    "status:error",
    "status:ok",
    "status:completed",
    "dur:>1s",
    "dur:<0.5s method:read",
    "size:>1k",
    "tool:EDIT",
    "-tool:edit kind:tool_call",
    "path:*.md",
    "path:ada/*",
    "path:n?tes.md",
    "turn:2",
    "has:finding",
]


def test_an_exported_page_finds_what_the_inspector_finds(exported, recording, indexed):
    recording.opening()
    recording.turn(2, "Change the notes")
    recording.prompt(3, "Say it")
    recording.error("in", 3, -32603, "the model is overloaded")
    recording.line("in", stderr="Traceback: overloaded")
    recording.says("s1", "x" * 2_000)
    recording.prompt(4, "and again")
    index = indexed(recording)
    findings = TraceFindings(index)
    while findings.is_behind:
        findings.step()
    page = exported()
    source = "globalThis.accordExport.source"
    for query in QUERIES:
        search = Search(index, read_query(query, is_of_page=True), findings)
        while not search.is_done:
            search.step()
        assert search.rows, query
        asked = f"{source}.ask('traces/exported/search', {{q: {json.dumps(query)}}})"
        assert page.evaluate(f"{asked}.then(({{key}}) => {source}.searches.get(key))") == list(search.rows), query


@pytest.mark.parametrize("query", ["nothing:x", "kind:", "dir:up", "dur:soon", "turn:x", "has:all"])
def test_an_exported_page_says_what_is_wrong_with_a_query(exported, recording, query):
    recording.opening()
    page = exported()
    page.press("/")
    page.type(query)
    page.until("document.querySelector('#search output.bad') !== null")
    assert query.partition(":")[0] in page.text("#search output")
