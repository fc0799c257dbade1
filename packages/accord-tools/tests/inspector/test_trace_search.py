"""Searching a trace: text, filters, and what a wrong query is told."""

import pytest

from accord.trace import read, read_header
from accord.trace.query import FilterError, Term, parse_filter, read_query
from accord.trace.trace_entries import entries
from accord_tools.inspector.trace_search import Search


def found(index, text):
    search = Search(index, read_query(text, is_of_page=True))
    while not search.is_done:
        search.step()
    return list(search.rows)


@pytest.fixture
def index(recording, indexed):
    recording.opening()
    recording.turn(2, "Change the notes")  # rows 4 to 16
    recording.prompt(3, 'Say "grüße" to Ada')
    recording.error("in", 3, -32603, "the model is overloaded")
    recording.line("in", stderr="Traceback: overloaded")
    recording.says("s1", "x" * 2_000)
    return indexed(recording)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("overloaded", [18, 19]),
        ("OVERLOADED model", [18]),
        ('"model is"', [18]),
        ('"is model"', []),
        ("grüße", [17]),
        ("method:prompt", [4, 16, 17, 18]),
        ("method:prompt kind:request", [4, 17]),
        ("status:error", [18]),
        ("kind:stderr", [19]),
        ("kind:tool_call", [6, 9, 12]),
        ("status:completed", [12]),
        ("tool:edit", [6]),
        ("path:*.md", [6, 10, 12]),
        ("dur:>1s", [8, 16]),
        ("dur:<0.5s method:read", [11]),
        ("dir:agent", [0, 2, 4, 8, 11, 17]),
        ("session:s1 kind:answer", [3, 8, 11, 16, 18]),
        ("turn:2", [17, 18, 20]),
        ("kind:agent_message three", []),
    ],
)
def test_a_query_finds_its_rows(index, query, rows):
    assert found(index, query) == rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("tool:grüße", [4]),
        ("tool:GRÜSSE", []),
        ("tool:a/b", [4]),
        ('tool:"the title"', [5]),
        ("-tool:write kind:tool_call", [4]),
        ("-tool:write", [0, 1, 2, 3, 4, *range(6, 506)]),
        ("path:src/*", [5]),
        ("path:*", [5]),
        ('path:"*"', [5]),
        ("-status:pending kind:tool_call", [5]),
        ("status:pend", []),
        ("status:PENDING", []),
    ],
)
def test_filters_on_content_read_the_messages_that_may_fit(recording, indexed, query, rows):
    recording.opening()
    recording.update("s1", "tool_call", toolCallId="a/b", title='Say "grüße"', status="pending")
    recording.update("s1", "tool_call", toolCallId="c2", title="The Title: WRITE", locations=[{"path": "/w/src/x"}])
    for number in range(500):
        recording.says("s1", f"I write c{number}, pending, src")
    assert found(indexed(recording), query) == rows


def test_small_and_large_slices_find_the_same(recording, indexed, monkeypatch):
    recording.opening()
    for number in range(2, 12):
        recording.turn(number, f"word{number % 3}")
    index = indexed(recording)
    whole = found(index, "word1")
    monkeypatch.setattr("accord_tools.inspector.trace_search.SLICE", 300)
    assert found(index, "word1") == whole
    assert len(whole) == 3


def test_a_search_goes_on_when_the_trace_grows(recording, indexed):
    recording.opening()
    recording.prompt(2, "needle")
    index = indexed(recording)
    search = Search(index, read_query("needle"))
    search.step()
    assert list(search.rows) == [4]
    recording.says("s1", "another needle")
    index.grow_whole()
    search.step()
    assert list(search.rows) == [4, 5]


QUERIES = [
    "overloaded", '"model is"', "grüße", "method:prompt", "method:PROMPT kind:request", "status:error", "status:ok",
    "status:completed", "status:end_turn", "kind:stderr", "kind:answer", "kind:error", "kind:tool_call",
    "kind:tool_call -kind:update", "tool:edit", "tool:c2", "path:*.md", "path:ada/notes.md", "dur:>1s",
    "dur:<0.5s method:read", "dir:agent", "dir:client", "dir:in", "-dir:in", "session:s1 kind:answer", "size:>1k",
    "-kind:notification",
    "-overloaded kind:answer",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_the_terminal_and_the_page_find_the_same_messages(index, recording, query):
    passes = parse_filter(query, read_header(recording.path).role)
    shown = [entry.number - 1 for entry in entries(read(recording.path)) if passes(entry)]
    assert found(index, query) == shown


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("dir:left", "dir: must be agent, client, in or out, got 'left'"),
        ("has:errors", "has: must be finding, got 'errors'"),
        ("dur:long", "dur: must be like dur:>2s or dur:<10ms, got 'long'"),
        ("size:>2x", "size: must be like size:>10k, got '>2x'"),
        ("turn:x", "turn: must be a number, got 'x'"),
        ("methd:prompt", "unknown filter methd:; did you mean method?"),
    ],
)
def test_a_wrong_filter_says_what_is_allowed(query, problem):
    with pytest.raises(FilterError) as refused:
        read_query(query, is_of_page=True)
    assert problem in str(refused.value)


def test_text_with_a_colon_is_put_in_quotes():
    with pytest.raises(FilterError, match='quote it: "http://a"'):
        read_query("http://a")
    assert read_query('"http://a" 12:30') == (Term("", "http://a"), Term("", "12:30"))


def test_an_open_quote_goes_to_the_end():
    assert read_query('say "hello you') == (Term("", "say"), Term("", "hello you"))
