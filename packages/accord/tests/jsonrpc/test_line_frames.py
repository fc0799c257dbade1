"""Bytes into frames, however they are cut; and what is found out about a frame that is not kept."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from accord.jsonrpc import line_frames
from accord.jsonrpc.line_frames import HEAD, TAIL, FrameReader, Oversized, as_id

BOM = b"\xef\xbb\xbf"

unhurried = settings(deadline=None)


def read(*chunks: bytes, limit: int = line_frames.LIMIT) -> list[bytes | Oversized]:
    reader = FrameReader(limit)
    return [frame for chunk in chunks for frame in reader.feed(chunk)] + reader.finish()


def cut(text: bytes, *places: int) -> list[bytes]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def byte_by_byte(text: bytes) -> list[bytes]:
    return [text[at : at + 1] for at in range(len(text))]


# Lines


def test_each_line_is_a_frame():
    assert FrameReader().feed(b'{"a":1}\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']


def test_a_line_fed_byte_by_byte_comes_out_whole():
    assert read(*byte_by_byte(b'{"a":1}\n{"b":2}\n')) == [b'{"a":1}', b'{"b":2}']


def test_an_unfinished_line_waits_for_its_end():
    reader = FrameReader()
    assert reader.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert reader.feed(b":") == []
    assert reader.feed(b'2}\n{"c":3}\n') == [b'{"b":2}', b'{"c":3}']


def test_the_last_line_needs_no_newline():
    assert read(b'{"a":1}\n{"b":2}') == [b'{"a":1}', b'{"b":2}']


def test_finishing_twice_brings_nothing_twice():
    reader = FrameReader()
    reader.feed(b"{}")
    assert reader.finish() == [b"{}"]
    assert reader.finish() == []


def test_nothing_in_gives_nothing_out():
    assert read() == []
    assert read(b"") == []
    assert read(b"\n") == []


def test_lines_may_end_in_a_carriage_return_too():
    assert read(b'{"a":1}\r\n{"b":2}\r\n{"c":3}\r') == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_a_line_end_may_be_cut_between_carriage_return_and_newline():
    assert read(b'{"a":1}\r', b'\n{"b":2}\r', b"\n") == [b'{"a":1}', b'{"b":2}']


def test_a_carriage_return_within_a_line_is_left_alone():
    assert read(b'{"a":\r1}\n') == [b'{"a":\r1}']


@pytest.mark.parametrize("blank", [b"", b" ", b"\t \t", b"\r", b" \r", BOM, BOM + b" \r"])
def test_blank_lines_are_no_frames(blank):
    assert read(blank + b"\n" + blank + b"\n{}\n" + blank + b"\n{}\n" + blank) == [b"{}", b"{}"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_byte_order_mark_is_removed_from_the_start_of_any_line(end):
    text = BOM + b'{"a":1}' + end + b'{"b":2}' + end + BOM + b'{"c":3}' + end
    assert read(text) == read(*byte_by_byte(text)) == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_a_byte_order_mark_within_a_line_is_text():
    assert read(b'{"a":"' + BOM + b'"}\n') == [b'{"a":"' + BOM + b'"}']


def test_what_is_no_json_is_a_frame_like_any_other():
    assert read(b"Loading the model...\n{}\n  indented\n") == [b"Loading the model...", b"{}", b"  indented"]


def test_characters_of_several_bytes_may_be_cut_anywhere():
    text = '{"a":"häßlich, 漢字\uff01, 🙂"}\n'.encode()
    assert read(*byte_by_byte(text)) == read(text) == [text[:-1]]


def tidied(text: bytes, limit: int) -> list[bytes | None]:
    """The frames by the rules alone; None for one past the limit."""
    lines = text.split(b"\n")
    found = [line.removeprefix(BOM).rstrip(b"\r") if len(line) <= limit else None for line in lines]
    return [frame for frame in found if frame is None or frame.strip()]


pieces_of_lines = st.lists(
    st.sampled_from([b"{}", b'{"id":1}', b"\n", b"\r", b" ", BOM, b"\xef", b'"', b"\\", b"[", b"x" * 9]) | st.binary(),
    max_size=30,
).map(b"".join)


@unhurried
@given(pieces_of_lines, st.lists(st.integers(0, 400)), st.integers(1, 60))
def test_any_bytes_cut_anywhere_give_the_same_frames(text, places, limit):
    whole = read(text, limit=limit)
    assert read(*cut(text, *places), limit=limit) == whole
    assert [frame if isinstance(frame, bytes) else None for frame in whole] == tidied(text, limit)


# What is kept


def test_the_bytes_of_an_unfinished_line_are_counted():
    reader = FrameReader()
    reader.feed(b'{}\n{"a"')
    assert reader.buffered == 4
    reader.feed(b":1")
    assert reader.buffered == 6
    reader.feed(b"}\n")
    assert reader.buffered == 0


@pytest.mark.parametrize("part", [b"abcdefgh" * 8 * 1024, b"abc"])
def test_a_long_line_takes_its_size_in_memory_once_whatever_its_parts(part):
    reader = FrameReader()
    size = 200 * len(part)
    tracemalloc.start()
    try:
        for _ in range(200):
            reader.feed(bytes(bytearray(part)))  # a read of its own
        (line,) = reader.feed(b"\n")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(line) == size
    assert peak < size * 1.15 + 20_000  # a buffer that grows has an eighth in reserve


def test_large_and_small_parts_keep_their_order():
    chunks = [b"a" * 9000, b"b", b"c", b"d" * 9000, b"e", b"f" * 9000]
    assert read(*chunks) == [b"".join(chunks)]


# Frames past the limit


def test_a_frame_of_just_the_limit_is_kept():
    assert read(b'{"a":1}\n', limit=7) == [b'{"a":1}']


def test_a_frame_past_the_limit_is_reported_with_its_length_and_its_neighbours_stay():
    text = b'{"a":1}\n{"abc":1}\n{"b":2}\n{"bcd":2}'
    expected = [b'{"a":1}', Oversized(9), b'{"b":2}', Oversized(9)]
    assert read(text, limit=7) == expected
    assert read(*byte_by_byte(text), limit=7) == expected


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{%b}}', Oversized(0, 7, has_id=True, has_method=True)),
        (b'{"jsonrpc":"2.0","method":"m","params":{%b}}', Oversized(0, has_method=True)),
        (b'{"jsonrpc":"2.0","id":"seven","result":{%b}}', Oversized(0, "seven", has_id=True)),
        (b'{"jsonrpc":"2.0","id":7,"error":{%b}}', Oversized(0, 7, has_id=True)),
        (b'{"result":{%b},"id":7,"jsonrpc":"2.0"}', Oversized(0, 7, has_id=True)),
        (b'{"params":{%b},"method":"m","id":7}', Oversized(0, 7, has_id=True, has_method=True)),
        (b'{"id":null,"error":{%b}}', Oversized(0, None, has_id=True)),
        (b'{"id":7,"method":null,"result":{%b}}', Oversized(0, 7, has_id=True)),
        (b'[{"id":7,"method":"m","params":{%b}}]', Oversized(0)),
        (b"Loading %b...", Oversized(0)),
        (b'"%b', Oversized(0)),
    ],
)
def test_a_skipped_frame_still_says_what_it_was(frame, expected):
    filled = frame % (b'"text":"' + b"long " * 100 + b'"')
    (oversized,) = read(filled + b"\n", limit=64)
    assert oversized == Oversized(len(filled), expected.id, expected.has_id, expected.has_method)


@pytest.mark.parametrize(
    "giant",
    [
        '"' + "x" * 300_000 + '"',
        '{"text":"' + "x" * 300_000 + '"}',
        '{"text":"' + '\\"},{[\\\\' * 40_000 + '"}',
        json.dumps([{"id": 8, "method": "no", "deep": [[{}], "]}", 1.5, None]}] * 5000),
        json.dumps({str(n): {"id": n} for n in range(20_000)}),
        "[" * 100_000 + "]" * 100_000,
        "1" * 3000,
    ],
    ids=["string", "nested string", "escapes", "nested objects", "many members", "deep", "number"],
)
@pytest.mark.parametrize("size", [1000, 4097, 65_536, 10_000_000])
def test_little_is_kept_of_a_giant_whatever_it_is_made_of(giant, size):
    text = ('{"jsonrpc":"2.0","result":' + giant + ',"id":7}').encode()
    reader = FrameReader(limit=2000)
    for at in range(0, len(text), size):
        assert reader.feed(text[at : at + size]) == []
        assert reader.buffered <= 2000
        assert reader._ends is None or sum(map(len, reader._ends)) <= HEAD + TAIL
    assert reader.feed(b"\n{}\n") == [Oversized(len(text), 7, has_id=True), b"{}"]


def test_a_giant_with_its_id_between_two_large_values_is_unknown_but_skipped_all_the_same():
    text = json.dumps({"params": ["x"] * 1000, "id": 7, "more": ["x"] * 1000}).encode()
    assert read(text + b"\n{}\n", limit=100) == [Oversized(len(text)), b"{}"]


@pytest.mark.parametrize("text", ['\\",\\"id\\":8', '","id"', ',"id":8}', '{"a":1,"id":8}'])
def test_what_looks_like_an_id_at_the_end_of_a_large_value_is_none(text):
    frame = json.dumps({"method": "m", "params": {"a": ["x"] * 2000, "text": text, "id": 8}}).encode()
    assert read(frame, limit=100) == [Oversized(len(frame), has_method=True)]


# What is found out, against json itself

TRICKY = [
    {"jsonrpc": "2.0", "id": 7, "method": "m", "params": {"id": 8, "method": "no", "deep": [{"id": 9}]}},
    {"jsonrpc": "2.0", "result": {"text": '"id":8,"method":"no"} \\" {[ \\\\'}, "id": 'a "quoted" \\ id'},
    {"params": ["}", "]", "\\", '\\"', "", {}, [], [[]], {"": {}}], "id": 0, "method": ""},
    {"id": None, "error": {"code": -32600, "message": "{"}},
    {"id": 1.0, "result": None},
    {"id": 1.5, "method": None},
    {"id": True, "method": 5},
    {"id": {"id": 3}, "method": ["m"]},
    {"id": "é漢🙂\ud83d", "\\": "\\", '"': '"', "{": "}"},
    {},
]

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('{}[]",:\\ié\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('id{}"\\') | st.sampled_from(["id", "method"]), inner),
    max_leaves=20,
)
envelopes = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]) | st.text('id{}"\\', max_size=4),
    json_values | st.integers() | st.text(max_size=5),
    max_size=8,
)


def known_about(members: dict[str, Any]) -> tuple[object, bool, bool]:
    return as_id(members.get("id")), "id" in members, members.get("method") is not None


def skipped(*pieces: bytes) -> tuple[object, bool, bool]:
    (frame,) = read(*pieces, limit=0)
    assert isinstance(frame, Oversized)
    return frame.id, frame.has_id, frame.has_method


@pytest.mark.parametrize("value", TRICKY)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_frame_cut_at_any_two_places_says_what_json_says(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only).encode(errors="replace")
    expected = known_about(json.loads(text))
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1, 7):
            assert skipped(*cut(text, first, second)) == expected


@unhurried
@given(envelopes, st.booleans(), st.sampled_from([None, 1]), st.lists(st.integers(0, 10_000)))
def test_any_object_in_any_pieces_says_what_json_says(value, ascii_only, indent, places):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).replace("\n", " ").encode()
    assert skipped(*cut(text, *places)) == known_about(value)


@unhurried
@given(envelopes, st.booleans(), st.integers(0, 8))
def test_an_object_with_one_large_value_says_what_json_says(value, ascii_only, place):
    members = list(value.items())
    members.insert(place, ("params", {"id": 8, "text": ["x"] * 2000}))
    text = json.dumps(dict(members), ensure_ascii=ascii_only).encode()
    if len(text) < 10_000:
        assert skipped(text)[:2] == known_about(dict(members))[:2]


@unhurried
@given(st.text('{}[]",:\\ \tid1', min_size=1).map(str.encode) | st.binary(min_size=1), st.lists(st.integers(0, 200)))
@example(b'{[[\\"]]}', [])
@example(b'{"a":[\\]]}', [])
@example(b"}}}{{{[[[", [3])
def test_what_any_bytes_say_does_not_depend_on_how_they_are_cut(text, places):
    text = text.replace(b"\n", b" ")
    assert skipped(*cut(text, *places)) == skipped(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"\\u0069\\u0064":7}', 7),
        (b'{"id":1,"id":2}', 2),
        (b'\xef\xbb\xbf {"id":7}', 7),
        (b'{"id":"\\ud83d"}', "\ud83d"),
        (b'{"id":"\xff"}', "\ufffd"),
        (b'{"id":-0.0}', 0),
        (b'{"id":1e400}', None),
        (b'{"id":"%b"}' % (b"x" * 1000), "x" * 1000),
        (b'{"id":"%b"}' % (b"x" * 5000), None),
        (b'{"%b":1,"id":7}' % (b"x" * 5000), 7),
        (b'{"id":7', None),
        (b'{"id":7}}', None),
        (b'{"id":7} {', None),
    ],
)
def test_ids_are_found_however_they_are_written(text, expected):
    assert skipped(text)[0] == expected


@pytest.mark.parametrize(("value", "expected"), [(1, 1), ("1", "1"), (1.0, 1), (-2.0, -2), ("", ""), (10**30, 10**30)])
def test_strings_and_whole_numbers_are_ids_of_their_own_type(value, expected):
    assert as_id(value) == expected
    assert type(as_id(value)) is type(expected)


@pytest.mark.parametrize("value", [None, True, False, 1.5, float("inf"), float("nan"), [], {}, [1], {"id": 1}])
def test_nothing_else_is_an_id(value):
    assert as_id(value) is None
