"""The end of a stream, cut between characters, whatever pieces it came in."""

import tracemalloc

from hypothesis import given, strategies

from accord.services.terminal_service import OutputTail

CHUNKS = strategies.lists(strategies.binary(max_size=9) | strategies.text("aü€𝄞", max_size=5).map(str.encode))


def tail_of(chunks, limit):
    tail = OutputTail(limit)
    for chunk in chunks:
        tail.add(chunk)
    tail.ended = True
    return tail


@given(CHUNKS, strategies.integers(0, 40))
def test_it_is_the_end_of_the_text_and_within_the_limit(chunks, limit):
    tail, whole = tail_of(chunks, limit), b"".join(chunks)
    text = tail.text()
    assert tail.truncated == (len(whole) > limit)
    assert len(text.encode()) <= limit
    try:
        everything = whole.decode()
    except UnicodeDecodeError:
        return
    assert everything.endswith(text)
    if tail.truncated:  # one character more would be too much
        longer = everything[len(everything) - len(text) - 1 :]
        assert len(longer.encode()) > limit
    else:
        assert text == everything


@given(CHUNKS, strategies.integers(0, 40), strategies.integers(0, 60))
def test_what_is_read_from_a_position_is_what_is_kept_from_there(chunks, limit, position):
    tail, whole = tail_of(chunks, limit), b"".join(chunks)
    data, begins = tail.read_from(position)
    assert begins >= min(position, len(whole))
    assert data == whole[begins:]
    assert begins <= max(position, len(whole) - limit)


def test_half_a_character_at_the_end_is_not_shown_before_its_other_half():
    tail = OutputTail(100)
    tail.add("ü".encode()[:1])
    assert tail.text() == ""
    tail.add("ü".encode()[1:])
    assert tail.text() == "ü"
    tail.add(b"\xc3")
    tail.ended = True
    assert tail.text() == "ü\ufffd"


def test_a_gigabyte_takes_no_more_memory_than_its_limit():
    tail, chunk = OutputTail(1_000_000), b"x" * 65_536
    tracemalloc.start()
    try:
        for _ in range(16_384):
            tail.add(bytes(bytearray(chunk)))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert tail.total == 2**30
    assert tail.text() == "x" * 1_000_000


def test_output_that_comes_byte_by_byte_takes_as_many_bytes_as_it_has():
    tail = OutputTail(1_000_000)
    tracemalloc.start()
    try:
        for _ in range(300_000):
            tail.add(b"x")
        assert tracemalloc.get_traced_memory()[0] < 600_000
    finally:
        tracemalloc.stop()
    assert tail.text() == "x" * 300_000
