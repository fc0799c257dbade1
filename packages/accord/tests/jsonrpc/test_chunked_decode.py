"""Heavy messages are read in slices: the same values, in many short calls."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from accord.jsonrpc import chunked_decode
from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame

MIB = 1024 * 1024

texts = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('\\"/\n\t\x00😀中é')), max_size=60)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=30,
)


@given(values, st.booleans(), st.sampled_from([None, 1]), st.integers(1, 40))
def test_slices_of_any_size_give_the_value_of_the_whole(
    value: object, ascii_only: bool, indent: int | None, size: int
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert chunked_decode.value_of(text, size) == msgspec.json.decode(text)


@pytest.mark.parametrize("size", range(1, 60))
@pytest.mark.parametrize(
    "text",
    [
        r'"\ud83d\ude00\ud83d\ude00"',
        r'"\\ud83d\\\ude00"'.replace(r"\ude00", "e"),
        r'"\\\\\\\\\\\\\\\\"',
        r'"a\"b\"c\\\"d"',
        '"😀中é😀中é"',
        ' [ "abcdefghijklmnopqrstuvwxyz" , {"a" : [1, 2.5, -0.0, true, null]} ] ',
        ' "a string with spaces around it" ',
        '{"a":1,"a":{"b":"the last one counts"}}',
    ],
)
def test_no_cut_goes_through_a_character(text: str, size: int) -> None:
    assert chunked_decode.value_of(text.encode(), size) == msgspec.json.decode(text)


@pytest.mark.parametrize("size", [1, 5, 7, 1000])
@pytest.mark.parametrize(
    "text", [r'"half an emoji: \ud83d."', r'"\x is no escape"', '"not closed', '["a" "b"]', '{"a":}', '"a" "b"', "[1,]"]
)
def test_text_that_is_refused_as_a_whole_is_refused_in_slices(text: str, size: int) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        chunked_decode.value_of(text.encode(), size)


def test_invalid_utf_8_is_refused() -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        chunked_decode.value_of(b'["' + b"a" * 50 + b'\xff\xfe"]', 10)


def test_a_message_of_a_few_long_strings_is_light_up_to_a_limit() -> None:
    frame = b'{"jsonrpc":"2.0","method":"m","params":{"text":"%b"}}'
    assert not chunked_decode.is_heavy(frame % (b"a" * 11 * MIB))
    assert chunked_decode.is_heavy(frame % (b"a" * 13 * MIB))


def test_a_message_of_many_values_is_heavy() -> None:
    frame = b'{"jsonrpc":"2.0","method":"m","params":{"numbers":[%b]}}'
    assert chunked_decode.is_heavy(frame % b",".join([b"123456789"] * 100_000))
    assert not chunked_decode.is_heavy(frame % b",".join([b"123456789"] * 1_000))


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}', "params"),
        (b'{"jsonrpc":"2.0","method":"m","params":{"a":[1]}}', "params"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}', "result"),
    ],
)
def test_a_message_carries_the_text_and_the_value_of_its_params_or_result(frame: bytes, name: str) -> None:
    text = getattr(chunked_decode.read([frame]), name)
    assert isinstance(text, chunked_decode.Sliced)
    assert bytes(text) == b'{"a":[1]}'
    assert text.value == {"a": [1]}


def test_a_message_without_params_is_read_as_usual() -> None:
    assert chunked_decode.read([b'{"jsonrpc":"2.0","id":1,"method":"m"}']) == RequestFrame(1, "m")
    assert isinstance(chunked_decode.read([b'{"jsonrpc":"2.0","id":1}']), Malformed)


def test_damaged_params_stay_text_for_the_tolerant_reader() -> None:
    message = chunked_decode.read([b'{"jsonrpc":"2.0","method":"m","params":{"text":"\\ud83d"}}'])
    assert isinstance(message, NotificationFrame)
    assert message.params is not None
    assert not isinstance(message.params, chunked_decode.Sliced)


def deep(size: int, *, levels: int = chunked_decode.LEVELS) -> bytes:
    return b"[" * levels + b'["%b","%b"]' % (b"a" * size, b"b" * size) + b"]" * levels


def test_much_text_below_many_levels_is_refused_under_its_id() -> None:
    text = deep(chunked_decode.DEEP // 2)
    call = chunked_decode.read([b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":%b}}' % text])
    assert isinstance(call, Malformed)
    assert (call.id, call.answerable) == (7, True)
    assert "below 16 levels of arrays and objects; 8,388,608 are allowed" in call.problem
    answer = chunked_decode.read([b'{"jsonrpc":"2.0","id":7,"result":{"a":%b}}' % text])
    assert isinstance(answer, Malformed)
    assert (answer.pending, answer.answerable) == (7, False)
    tell = chunked_decode.read([b'{"jsonrpc":"2.0","method":"m","params":{"a":%b}}' % text])
    assert isinstance(tell, Malformed)
    assert tell.id is None


def test_little_text_below_many_levels_is_read() -> None:
    text = deep(chunked_decode.DEEP // 4)
    answer = chunked_decode.read([b'{"jsonrpc":"2.0","id":7,"result":{"a":%b}}' % text])
    assert isinstance(answer, ResponseFrame)
    assert isinstance(answer.result, chunked_decode.Sliced)
    assert answer.result.value["a"] == msgspec.json.decode(text)
