"""The frames of a WebSocket: ours against a library's, and what breaks the rules."""

import sys
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from accord.transports import websocket_frames
from accord.transports.websocket_frames import (
    BINARY,
    CLOSE,
    NOT_UTF8,
    PING,
    PONG,
    PROTOCOL_ERROR,
    TEXT,
    TOO_BIG,
    Frames,
    Violation,
    closed_with,
    closing,
    control,
    masking,
    texts,
)

LIMIT = 70_000

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For machines that are shared."""


def theirs(opcode, data, *, fin=True, mask=False):
    """A frame as the library writes it."""
    return Frame(Opcode(opcode), data, fin).serialize(mask=mask)


def read_by_them(data, *, mask):
    """The frames that the library finds."""
    reader = StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    found = []
    while True:
        at_end = reader.at_eof()
        with pytest.raises(StopIteration) as stopped:
            next(at_end)
        if stopped.value.value:
            return found
        parsing = Frame.parse(reader.read_exact, mask=mask)
        with pytest.raises(StopIteration) as stopped:
            next(parsing)
        found.append(stopped.value.value)


def cut(data, draw):
    while data:
        size = draw(st.integers(1, len(data)))
        yield data[:size]
        data = data[size:]


MESSAGES = st.lists(st.text(max_size=300).map(str.encode), max_size=5)


@unhurried
@given(MESSAGES, st.booleans())
def test_a_library_reads_what_we_write(messages, from_client):
    written = texts(messages, masking() if from_client else None)
    found = read_by_them(written, mask=from_client)
    assert [(frame.opcode, frame.fin, bytes(frame.data)) for frame in found] == [(TEXT, True, it) for it in messages]


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("from_client", [False, True])
def test_messages_of_all_sizes_are_read_by_a_library_and_by_us(size, from_client):
    written = texts([b"x" * size], masking() if from_client else None)
    assert [bytes(frame.data) for frame in read_by_them(written, mask=from_client)] == [b"x" * size]
    assert Frames(LIMIT, masked=from_client).feed(written) == [(TEXT, b"x" * size)]


@unhurried
@given(MESSAGES, st.booleans(), st.data())
def test_we_read_what_a_library_writes_whatever_the_pieces_it_is_cut_into(messages, from_client, data):
    written, expected = b"", []
    for message in messages:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(message)), max_size=3)))
        parts = [message[start:end] for start, end in zip([0, *cuts], [*cuts, len(message)], strict=True)]
        for number, part in enumerate(parts):
            kind, fin = TEXT if number == 0 else 0, number == len(parts) - 1
            written += theirs(kind, part, fin=fin, mask=from_client)
            if data.draw(st.booleans()):  # control frames come between fragments
                written += theirs(PING, b"p", mask=from_client)
                expected.append((PING, b"p"))
                if fin:
                    expected[-1:] = [(TEXT, message), (PING, b"p")]
            elif fin:
                expected.append((TEXT, message))
    frames, found = Frames(LIMIT, masked=from_client), []
    for piece in cut(written, data.draw):
        found += frames.feed(piece)
    assert found == expected


@given(st.binary(max_size=100), st.binary(min_size=4, max_size=4))
def test_a_mask_without_the_library_is_the_same(data, key):
    assert websocket_frames._mask(data, key) == masking()(data, key)
    assert websocket_frames._mask(websocket_frames._mask(data, key), key) == data


def test_a_close_frame_says_code_and_reason():
    assert closed_with(closing(4001, "out of patience")) == (4001, "out of patience")
    assert closed_with(b"") == (1005, "")
    assert len(control(CLOSE, closing(1002, "x" * 500))) <= 127


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (bytes([0xC1, 0]), PROTOCOL_ERROR),
        (bytes([0x83, 0]), PROTOCOL_ERROR),
        (bytes([0x8B, 0]), PROTOCOL_ERROR),
        (bytes([0x81, 0x80, 1, 2, 3, 4]), PROTOCOL_ERROR),
        (bytes([0x80, 0]), PROTOCOL_ERROR),
        (bytes([0x01, 1, 0x61, 0x81, 1, 0x61]), PROTOCOL_ERROR),
        (bytes([0x09, 0]), PROTOCOL_ERROR),
        (bytes([0x89, 126, 0, 126]) + b"x" * 126, PROTOCOL_ERROR),
        (bytes([0x81, 126, 0, 5]) + b"hello", PROTOCOL_ERROR),
        (bytes([0x81, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) + b"x" * 0xFFFF, PROTOCOL_ERROR),
        (bytes([0x81, 1, 0xFF]), NOT_UTF8),
        (bytes([0x01, 1, 0xC3, 0x80, 1, 0x28]), NOT_UTF8),
        (bytes([0x81, 127]) + (LIMIT + 1).to_bytes(8, "big"), TOO_BIG),
        (bytes([0x81, 127]) + b"\xff" * 8, TOO_BIG),
        (bytes([0x01, 127]) + LIMIT.to_bytes(8, "big") + b"x" * LIMIT + bytes([0x80, 1]), TOO_BIG),
    ],
    ids=[
        "a reserved bit",
        "an unknown kind of data",
        "an unknown kind of control",
        "masked by a server",
        "a continuation of nothing",
        "a message within another",
        "a control frame in fragments",
        "a control frame that is too long",
        "a length of two bytes that fits into one",
        "a length of eight bytes that fits into two",
        "text that is no text",
        "text that is none once it is joined",
        "a message past the limit",
        "a length without bounds",
        "fragments past the limit",
    ],
)
def test_what_breaks_the_rules_is_told_behind_what_came_before(wrong, code):
    with pytest.raises(Violation) as caught:
        Frames(LIMIT, masked=False).feed(texts([b"before"]) + wrong)
    assert caught.value.code == code
    assert [payload for kind, payload in caught.value.before if kind == TEXT] == [b"before"]


def test_what_is_handed_on_and_is_no_text_does_not_end_the_link():
    # RFC 6455, 8.1: the other end would have to fail the connection over it.
    assert Frames(1000, masked=False).feed(texts([b"caf\xc3\xa9 \xff", b"\xed\xa0\xbd", b"fine"])) == [
        (TEXT, "caf\u00e9 \ufffd".encode()),
        (TEXT, "\ufffd\ufffd\ufffd".encode()),
        (TEXT, b"fine"),
    ]


def test_what_a_client_sends_is_masked():
    with pytest.raises(Violation):
        Frames(LIMIT, masked=True).feed(texts([b"bare"]))


def test_text_that_was_cut_within_a_letter_is_text():
    first, second = "é".encode()[:1], "é".encode()[1:]
    written = theirs(TEXT, first, fin=False) + theirs(PONG, b"") + theirs(0, second)
    assert Frames(LIMIT, masked=False).feed(written) == [(PONG, b""), (TEXT, "é".encode())]


def test_binary_messages_are_told_apart():
    assert Frames(LIMIT, masked=False).feed(theirs(BINARY, b"\xff")) == [(BINARY, b"\xff")]


def test_messages_behind_a_close_frame_are_not_delivered():
    # RFC 6455, 1.4: "After receiving a control frame indicating the connection should be closed, a peer sends a Close
    # frame in response [...] any further data received is discarded."
    frames = Frames(LIMIT, masked=False)
    close = control(CLOSE, closing(1000))
    assert frames.feed(texts([b"before"]) + close + texts([b"behind"])) == [(TEXT, b"before"), (CLOSE, closing(1000))]
    assert frames.feed(texts([b"later"])) == []
    assert frames.buffered == 0


def test_a_read_full_of_pings_takes_work_in_proportion_to_their_number():
    def calls_for(pings):
        calls = 0

        def count(frame, event, argument):
            nonlocal calls
            calls += event in ("call", "c_call")

        frames = Frames(LIMIT, masked=True, first=LIMIT // 2)
        sys.setprofile(count)
        try:
            found = frames.feed(b"\x89\x80\x00\x00\x00\x00" * pings)
        finally:
            sys.setprofile(None)
        assert len(found) == pings
        return calls

    assert calls_for(4_000) < 3 * calls_for(2_000)


def test_a_message_of_many_small_fragments_costs_its_bytes_and_nothing_for_each_fragment():
    frames = Frames(100_000, masked=False)
    frames.feed(theirs(TEXT, b"a", fin=False))
    fragments = theirs(0, b"a", fin=False) * 1_000 + theirs(0, b"", fin=False) * 1_000
    frames.feed(fragments)  # whatever is made once is made by now
    tracemalloc.start()
    try:
        for _ in range(50):
            assert frames.feed(fragments) == []
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert frames.buffered == 51_001
    assert kept < 2 * 51_001
    assert frames.feed(theirs(0, b"")) == [(TEXT, b"a" * 51_001)]


@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize("fragments", [1, 3])
def test_a_large_message_takes_its_size_in_memory_once(from_client, fragments):
    part = b'"\xf0\x9f\x98\x80' + b"x" * 8_000_000
    frames = [theirs(TEXT, part, fin=fragments == 1, mask=from_client)]
    frames += [theirs(0, part, fin=number == fragments - 1, mask=from_client) for number in range(1, fragments)]
    data = b"".join(frames)
    reader = Frames(4 * len(part), masked=from_client)
    found = []
    tracemalloc.start()
    try:
        for at in range(0, len(data), 256 * 1024):
            found += reader.feed(data[at : at + 256 * 1024])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [(TEXT, part * fragments)]
    # A buffer that grows has an eighth in reserve; the text is checked a mebibyte at a time, four bytes a character.
    assert peak < fragments * len(part) * 1.15 + 6_500_000
