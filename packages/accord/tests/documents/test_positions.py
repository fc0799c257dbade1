"""Positions in the three encodings, against counting by brute force."""

import re

import pytest
from hypothesis import given, strategies as st

from accord.documents.text_document import (
    ENCODINGS,
    TextDocument,
    character_at,
    chosen,
    index_at,
    is_inside_ending,
    line_starts,
    lines_of,
)
from accord.schema import v1

ALPHABET = "aé漢😀\u0301\ud83d\ude00\x0c\u2028\u0085\uffff\r\n"
"""One, two, three and four bytes, an accent that combines, halves of an emoji, what only `str` splits lines at, and the
last character of one unit."""

texts = st.text(alphabet=ALPHABET, max_size=12)
lines = st.text(alphabet=ALPHABET.rstrip("\r\n"), max_size=12)
encodings = st.sampled_from(ENCODINGS)


def units(text, encoding):
    """How many units a text has, counted by writing each code point."""
    size, codec = {"utf-8": (1, "utf-8"), "utf-16": (2, "utf-16-le"), "utf-32": (4, "utf-32-le")}[encoding]
    return sum(len(code.encode(codec, "surrogatepass")) // size for code in text)


def split(text):
    """The lines of a text and their endings, found one character after another."""
    found, line, rest = [], "", text
    while rest:
        ending = re.match(r"\r\n|\n|\r", rest)
        if ending:
            found.append((line, ending[0]))
            line, rest = "", rest[ending.end() :]
        else:
            line, rest = line + rest[0], rest[1:]
    return [*found, (line, "")]


@given(lines, encodings)
def test_every_index_of_a_line_is_a_character_and_back(line, encoding):
    for index in range(len(line) + 1):
        character = character_at(line, index, encoding)
        assert character == units(line[:index], encoding)
        assert index_at(line, character, encoding) == index


@given(lines, encodings)
def test_a_character_inside_a_code_point_is_its_start_and_one_past_the_end_is_the_end(line, encoding):
    starts = [units(line[:index], encoding) for index in range(len(line) + 1)]
    for character in range(starts[-1] + 3):
        assert index_at(line, character, encoding) == max(i for i, start in enumerate(starts) if start <= character)


@pytest.mark.parametrize(("encoding", "character"), [("utf-32", 2), ("utf-16", 3), ("utf-8", 5)])
def test_an_emoji_counts_as_each_encoding_says(encoding, character):
    assert character_at("a😀", 2, encoding) == character


@given(texts)
def test_lines_end_where_editors_end_them(text):
    pieces = split(text)
    assert [line + ending for line, ending in pieces if line + ending] == lines_of(text)
    assert len(line_starts(text)) == len(pieces)
    assert TextDocument(text, "utf-16").lines == [line for line, _ in pieces]


@given(texts, encodings)
def test_every_offset_of_a_text_is_a_position_and_back(text, encoding):
    document, offset = TextDocument(text, encoding), 0
    for number, (line, ending) in enumerate(split(text)):
        for index in range(len(line) + 1):
            position = v1.Position(number, units(line[:index], encoding))
            assert document.position(offset + index) == position
            assert document.offset(position) == offset + index
        offset += len(line) + len(ending)
    assert offset == len(text)


@given(texts, encodings)
def test_an_offset_inside_an_ending_is_the_end_of_its_line(text, encoding):
    document = TextDocument(text, encoding)
    for offset in range(len(text)):
        if is_inside_ending(text, offset):
            assert document.position(offset) == document.position(offset - 1)


@given(texts, encodings)
def test_a_line_past_the_last_is_the_end_of_the_text(text, encoding):
    document = TextDocument(text, encoding)
    assert document.offset(v1.Position(len(document.lines), 0)) == len(text)
    assert document.offset(v1.Position(2**32 - 1, 2**32 - 1)) == len(text)


def test_an_offset_outside_of_the_text_is_refused():
    with pytest.raises(ValueError, match="offset must be from 0 to 1, the length of the text; got 2"):
        TextDocument("a", "utf-8").position(2)


@pytest.mark.parametrize(
    ("offered", "picked"),
    [
        (["utf-16", "utf-32", "utf-8"], "utf-32"),
        (["utf-16", "utf-8"], "utf-8"),
        (["utf-16"], "utf-16"),
        (["utf-7"], None),
        ([], None),
    ],
)
def test_the_encoding_with_the_least_arithmetic_is_chosen(offered, picked):
    assert chosen(offered) == picked
