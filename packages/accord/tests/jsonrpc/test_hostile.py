"""Whatever shape a message has, reading it takes work and memory in proportion to its bytes.

Time is not measured. What is counted is the calls that the interpreter makes, and the bytes that are allocated at the
same time: values that a decoder makes show up there.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from accord.errors import INVALID_REQUEST, PARSE_ERROR, DecodeError
from accord.jsonrpc import frame_structure
from accord.jsonrpc.frame_structure import MOST_HALVES
from accord.jsonrpc.line_frames import HEAD
from accord.jsonrpc.wire_messages import Malformed, Message, NotificationFrame, RequestFrame, ResponseFrame, parse
from accord.schema import codec

MIB = 1024 * 1024


def filled(unit: bytes, size: int = MIB) -> bytes:
    return unit * (size // len(unit))


def listed(unit: bytes, size: int = MIB) -> bytes:
    return b"[" + filled(unit + b",", size) + b"1]"


VALUES = {
    "arrays nested 900 deep": listed(b"[" * 900 + b"]" * 900),
    "objects nested 900 deep": listed(b'{"":' * 900 + b"1" + b"}" * 900),
    "one array that never ends": b"[" * MIB,
    "empty arrays": listed(b"[]"),
    "empty objects": listed(b"{}"),
    "small integers": listed(b"1"),
    "floats": listed(b"1e9"),
    "integers of 4,000 digits": listed(b"9" * 4000),
    "one integer of a million digits": b"9" * MIB,
    "one fraction of a million digits": b"0." + b"3" * MIB,
    "empty strings": listed(b'""'),
    "halves of emoji": listed(b'"\\ud83d"'),
    "one string of halves": b'"' + filled(b"\\ud83d") + b'"',
    "one string of escaped quotes": b'"' + filled(b'\\"') + b'"',
    "one string of backslashes": b'"' + filled(b"\\\\") + b'"',
    "one string of brackets and a half": b'"' + filled(b"[{") + b'\\ud83d"',
    "one string of brackets and escapes": b'"' + filled(b'[\\"') + b'"',
    "one string that is no UTF-8": b'"' + filled(b"\xff") + b'"',
    "half a character of UTF-8": b'"' + filled(b"\xe2\x82") + b'"',
    "one name many times": b"{" + filled(b'"a":1,') + b'"b":1}',
    "many names": b"{" + b"".join(b'"%d":1,' % number for number in range(100_000)) + b'"b":1}',
    "spaces": b"[" + filled(b" \n") + b"]",
    "quotes alone": filled(b'"'),
    "commas alone": filled(b","),
    "letters": filled(b"x"),
}

PLACES = {
    "unknown member": b'{"jsonrpc":"2.0","id":7,"method":"m","z":%b}',
    "unknown member first": b'{"z":%b,"jsonrpc":"2.0","id":7,"method":"m"}',
    "params": b'{"jsonrpc":"2.0","method":"m","params":{"a":%b}}',
    "params and a half": b'{"jsonrpc":"2.0","method":"m","params":{"a":%b},"\\ud83d":1}',
    "result": b'{"jsonrpc":"2.0","id":7,"result":%b}',
    "result before a wrong constant": b'{"jsonrpc":"2.0","id":7,"result":[%b,NaN]}',
    "error": b'{"jsonrpc":"2.0","id":7,"error":%b}',
    "data of an error": b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"\\ud83d","data":%b}}',
    "id": b'{"jsonrpc":"2.0","method":"m","id":%b}',
    "method": b'{"jsonrpc":"2.0","id":7,"method":%b}',
    "version": b'{"jsonrpc":%b,"id":7,"method":"m"}',
    "batch": b"[%b]",
    "everything": b"%b",
}


def counted(work: Callable[[], Any]) -> tuple[int, int, Any]:
    """How many calls this makes, how many bytes it has allocated at most, and what it returns."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    tracemalloc.start()
    sys.setprofile(count)
    try:
        result = work()
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return calls, peak, result


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", VALUES)
def test_reading_a_message_of_any_shape_takes_few_calls_and_little_memory(shape: str, place: str) -> None:
    frame = PLACES[place] % VALUES[shape]
    calls, peak, parsed = counted(lambda: parse(frame))
    assert isinstance(parsed, RequestFrame | NotificationFrame | ResponseFrame | Malformed)
    assert calls < 5 * HEAD + len(frame) / 1024  # of what is refused, the start is walked for its id
    assert peak < 16 * MIB + 16 * len(frame)
    if isinstance(parsed, Malformed):
        assert len(parsed.problem) < 200


def test_a_small_unknown_member_costs_one_pass_however_deep_it_is() -> None:
    frames = [b'{"jsonrpc":"2.0","id":1,"method":"m","z":%b}' % (b"[" * n + b"]" * n) for n in (1, 400)]
    calls = [counted(lambda frame=frame: parse(frame))[0] for frame in frames]
    assert calls[0] == calls[1]
    assert parse(frames[1]) == RequestFrame(1, "m")


# The bounds

SPELLED = "more than 8,388,608 bytes of numbers, spaces and escapes in one message: send fewer"
DAMAGED_LENGTH = 8 * MIB
assert frame_structure.DAMAGED.length == DAMAGED_LENGTH


def message_with(value: bytes) -> Message | Malformed:
    return parse(b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":%b}}' % value)


def test_a_message_of_as_many_values_as_are_allowed_is_read() -> None:
    for value in (
        b"[" + b"[]," * (frame_structure.MOST_CONTAINERS - 4) + b"1]",
        b"[" + b"1," * (frame_structure.MOST_VALUES - 10) + b"1]",
        b"{" + b'"a":1,' * (frame_structure.MOST_MEMBERS - 10) + b'"a":1}',
        b"[" + (b"9" * frame_structure.MOST_DIGITS + b",") * 1_000 + b"1]",
        b"[" + (b"9" * 49 + b",") * 10_000 + b"1]",
    ):
        assert isinstance(message_with(value), RequestFrame)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            b"[" + b"[]," * frame_structure.MOST_CONTAINERS + b"1]",
            "more than 50,000 arrays and objects in one message: send fewer",
        ),
        (b"[" + b"1," * frame_structure.MOST_VALUES + b"1]", "more than 400,000 values in one message: send fewer"),
        (
            b"{" + b'"a":1,' * frame_structure.MOST_MEMBERS + b'"a":1}',
            "more than 200,000 members of objects in one message: send fewer",
        ),
        (b"[" + b"1," * 60_000 + b"9" * 450 + b"]", "a number of more than 400 digits: send it as text"),
        (b"[" + b"12345678901234567890.0123456789," * 300_000 + b"1]", SPELLED),
        (b"[1" + b" \n" * (frame_structure.MOST_SPELLED // 2 + 100) + b"]", SPELLED),
        (b'"' + b"\\n" * (frame_structure.MOST_SPELLED + 1) + b'"', SPELLED),
        (
            b'["' + b"\\n" * (frame_structure.MOST_SPELLED // 2) + b'",' + b"1234567890123456," * 300_000 + b"1]",
            SPELLED,
        ),
        (
            b'{"\\ud83d":"' + b"x" * DAMAGED_LENGTH + b'"}',
            "half an emoji, in more than 8,388,608 bytes: only shorter text is repaired",
        ),
        (
            b'{"\\ud83d":"' + b"\\ud83d" * MOST_HALVES + b'"}',
            "half an emoji, and more than 200,000 of them in one message: send fewer",
        ),
    ],
    ids=[
        *("arrays", "values", "members", "digits", "long numbers", "spaces", "escapes", "escapes and numbers"),
        *("a long text with a half", "halves"),
    ],
)
def test_a_message_of_more_values_is_refused_under_its_own_id(value: bytes, problem: str) -> None:
    refused = message_with(value)
    assert refused == Malformed(INVALID_REQUEST, problem, id=7)
    answer = parse(b'{"jsonrpc":"2.0","id":7,"result":%b}' % value)
    assert answer == Malformed(INVALID_REQUEST, problem, answerable=False, pending=7)


def test_digits_and_spaces_in_many_short_strings_do_not_count_however_long_the_message_is() -> None:
    strings = b'["' + b'","'.join([b"12345678 12345678 " * 10] * (2 * frame_structure.MOST_SPELLED // 180)) + b'"]'
    assert len(strings) > 2 * frame_structure.MOST_SPELLED
    assert isinstance(message_with(strings), RequestFrame)


def test_a_long_message_with_pairs_of_halves_and_an_unknown_member_is_whole() -> None:
    text = b'"' + b"\\ud83d\\ude00" * (MOST_HALVES + 1) + b"x" * DAMAGED_LENGTH + b'"'
    assert parse(b'{"jsonrpc":"2.0","id":7,"method":"m","z":%b}' % text) == RequestFrame(7, "m")


def test_the_code_of_an_error_with_a_long_damaged_text_is_not_repaired() -> None:
    text = b'{"jsonrpc":"2.0","id":7,"z":1,"error":{"code":3,"data":"' + b"\xff" * DAMAGED_LENGTH + b'"}}'
    refused = parse(text)
    assert isinstance(refused, Malformed)
    assert (refused.pending, refused.answerable) == (7, False)


@pytest.mark.parametrize(
    ("text", "length"),
    [(b'"\xff', frame_structure.DAMAGED.length), (b'["', frame_structure.MISFIT.length)],
    ids=["damaged", "misfit"],
)
def test_text_that_must_be_read_twice_is_read_up_to_a_length(text: bytes, length: int) -> None:
    end = b'"' if text[:1] == b'"' else b'"]'
    text = text + b"x" * (length - len(text + end)) + end
    assert len(text) == length
    wanted = str if end == b'"' else list[int]
    if wanted is str:
        assert codec.decode(text, str)
    with pytest.raises(DecodeError, match=f"more than {length:,} bytes"):
        codec.decode(text + b" ", wanted)


@pytest.mark.parametrize("text", [b"[{,", b'[{,\\"', b"[{,\\\\", b"[{,\\n\xc3\xa4", b":,", b"1234567890"])
def test_what_stands_in_strings_does_not_count(text: bytes) -> None:
    text = text * frame_structure.MOST_VALUES
    assert message_with(b'"%b"' % text) == RequestFrame(7, "m", Raw(b'{"a":"%b"}' % text))


@pytest.mark.parametrize("shift", range(4))
def test_strings_are_told_apart_wherever_a_block_is_cut(shift: int) -> None:
    block = frame_structure._BLOCK
    for end in (b'\\"', b"\\\\", b'\\\\\\"', b'","'):
        padding = b"x" * (block - shift - len(b'["')) + end
        text = b'["' + padding + b"[" * (frame_structure.MOST_CONTAINERS * 2) + b'"]'
        assert frame_structure.excess(text) is None


# The id of what cannot be read


@pytest.mark.parametrize("deep", [b"[" * 90_000 + b"]" * 90_000, listed(b"[]")], ids=["too deep", "too much"])
def test_the_id_of_an_unreadable_message_is_found_at_its_start_and_at_its_end(deep: bytes) -> None:
    assert len(deep) > HEAD
    for id_, text in ((7, b"7"), ("a", b'"a"'), (-1, b" -1 ")):
        first = parse(b'{"id":%b,"jsonrpc":"2.0","method":"m","params":{"a":%b}}' % (text, deep))
        last = parse(b'{"jsonrpc":"2.0","method":"m","params":{"a":%b},"id":%b}' % (deep, text))
        assert isinstance(first, Malformed)
        assert isinstance(last, Malformed)
        assert (first.id, first.pending) == (last.id, last.pending) == (id_, None)
        answer = parse(b'{"jsonrpc":"2.0","result":%b,"id":%b}' % (deep, text))
        assert isinstance(answer, Malformed)
        assert (answer.answerable, answer.pending) == (False, id_)


def test_a_giant_answer_that_is_not_quite_json_still_fails_its_request() -> None:
    for form in (
        b'{"jsonrpc":"2.0","id":5,"result":{"text":"%b","n":NaN}}',
        b'{"result":{"text":"%b","n":NaN},"id":5}',
    ):
        parsed = parse(form % (b"x" * MIB))
        assert isinstance(parsed, Malformed)
        assert (parsed.code, parsed.pending) == (PARSE_ERROR, 5)


def test_the_structure_of_a_large_message_is_looked_at_without_a_copy_of_its_size() -> None:
    text = filled(b"a", 32 * MIB)
    tracemalloc.start()
    try:
        frame_structure.excess(text)
        assert tracemalloc.get_traced_memory()[1] < 2 * MIB
    finally:
        tracemalloc.stop()
