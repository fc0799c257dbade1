"""Texts that change: by ranges one after another, by edits that all mean the same text, and back from two texts."""

import pytest
from hypothesis import given, strategies as st

from accord.documents.text_document import Edit, TextDocument, is_inside_ending, line_edits, smallest_edit, with_edits
from accord.schema import v1
from tests.documents.test_positions import encodings, texts


@given(texts, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), texts), max_size=6))
def test_a_document_is_after_each_change_what_a_new_one_would_be(text, changes):
    document = TextDocument(text, "utf-16")
    for one, other, new in changes:
        start, end = sorted((min(one, len(document.text)), min(other, len(document.text))))
        expected = document.text[:start] + new + document.text[end:]
        document.replace(start, end, new)
        assert document.text == expected
        assert document.lines == TextDocument(expected, "utf-16").lines
        assert [document.position(it) for it in range(len(expected) + 1)] == [
            TextDocument(expected, "utf-16").position(it) for it in range(len(expected) + 1)
        ]


@given(texts, st.lists(texts, min_size=1, max_size=5), encodings)
def test_a_mirror_follows_its_client_through_the_smallest_changes(text, following, encoding):
    mirror, client = TextDocument(text, encoding), TextDocument(text, encoding)
    for new in following:
        edit = smallest_edit(client.text, new)
        mirror.apply([v1.TextDocumentContentChangeEvent(edit.text, client.range(edit.start, edit.end))])
        client.replace(*edit)
        assert mirror.text == client.text == new


def test_each_range_of_a_change_means_the_text_after_the_changes_before_it():
    document = TextDocument("ab", "utf-16")
    first = v1.TextDocumentContentChangeEvent("x\n", v1.Range(v1.Position(0, 0), v1.Position(0, 1)))
    second = v1.TextDocumentContentChangeEvent("y", v1.Range(v1.Position(1, 0), v1.Position(1, 1)))
    document.apply([first, second])
    assert document.text == "x\ny"


def test_a_change_without_a_range_is_the_whole_text():
    document = TextDocument("ab", "utf-16")
    document.apply([v1.TextDocumentContentChangeEvent("new")])
    assert document.text == "new"


def test_a_range_that_ends_before_it_starts_is_refused():
    backwards = v1.Range(v1.Position(0, 1), v1.Position(0, 0))
    with pytest.raises(ValueError, match="the range ends before it starts"):
        TextDocument("ab", "utf-16").apply([v1.TextDocumentContentChangeEvent("", backwards)])


@given(texts, texts)
def test_the_smallest_edit_makes_the_new_text_and_could_not_be_smaller(old, new):
    edit = smallest_edit(old, new)
    assert with_edits(old, [edit]) == new
    assert not is_inside_ending(old, edit.start)
    assert not is_inside_ending(old, edit.end)
    removed = old[edit.start : edit.end]
    if "\r" not in old:
        assert not (removed and edit.text and (removed[0] == edit.text[0] or removed[-1] == edit.text[-1]))


@given(texts, texts, encodings)
def test_edits_by_lines_make_the_new_text_also_through_their_positions(old, new, encoding):
    edits = line_edits(old, new)
    assert with_edits(old, edits) == new
    document = TextDocument(old, encoding)
    through = [Edit(*document.offsets(document.range(edit.start, edit.end)), edit.text) for edit in edits]
    assert with_edits(old, through) == new


def test_edits_by_lines_leave_the_lines_between_them_alone():
    old = "one\ntwo\nthree\nfour\n"
    assert line_edits(old, "1\ntwo\nthree\n4\n") == [Edit(0, 3, "1"), Edit(14, 18, "4")]
    assert line_edits(old, old) == []


def test_edits_that_overlap_are_refused_and_those_that_touch_are_not():
    assert with_edits("abcd", [Edit(2, 4, "y"), Edit(0, 2, "x")]) == "xy"
    with pytest.raises(ValueError, match="must not overlap"):
        with_edits("abcd", [Edit(0, 3, "x"), Edit(2, 4, "y")])


def test_changes_far_inside_a_long_text_keep_the_lines_around_them():
    document = TextDocument("a line\n" * 1000, "utf-16")
    for offset in (3500, 10, 7000, 0):
        document.replace(offset, offset + (offset < 7000), "x\n")
        assert document.lines == TextDocument(document.text, "utf-16").lines
