"""Searching a trace: text, filters, and what a wrong query is told."""

import pytest

from accord.inspector.query import BadQuery, Query, read_query
from accord.inspector.search import Search


def found(index, text):
    search = Search(index, read_query(text))
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
        ("method:prompt is:request", [4, 17]),
        ("status:error", [18]),
        ("is:stderr", [19]),
        ("kind:tool_call", [6, 9, 12]),
        ("status:completed", [12]),
        ("tool:edit", [6]),
        ("path:*.md", [6, 10, 12]),
        ("dur:>1s", [4, 7, 8, 16]),
        ("dur:<0.5s method:read", [10, 11]),
        ("dir:agent", [0, 2, 4, 8, 11, 17]),
        ("session:s1 is:answer", [3, 8, 11, 16]),
        ("turn:2", [17, 18]),
        ("kind:agent_message three", []),
    ],
)
def test_a_query_finds_its_rows(index, query, rows):
    assert found(index, query) == rows


def test_small_and_large_slices_find_the_same(recording, indexed, monkeypatch):
    recording.opening()
    for number in range(2, 12):
        recording.turn(number, f"word{number % 3}")
    index = indexed(recording)
    whole = found(index, "word1")
    monkeypatch.setattr("accord.inspector.search.SLICE", 300)
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


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("dir:left", "dir must be agent or client"),
        ("is:reply", "is must be one of request"),
        ("dur:long", "dur must be like >2s"),
        ("size:>2x", "size must be like >2b"),
        ("turn:x", "turn must be a number"),
        ("methd:prompt", "unknown filter 'methd'; did you mean method"),
    ],
)
def test_a_wrong_filter_says_what_is_allowed(query, problem):
    with pytest.raises(BadQuery, match=problem):
        read_query(query)


def test_text_with_a_colon_is_text():
    assert read_query("http://a 12:30 file:x") == Query((), ("http://a", "12:30", "file:x"))


def test_an_open_quote_is_text():
    assert read_query('say "hello') == Query((), ("say", '"hello'))
