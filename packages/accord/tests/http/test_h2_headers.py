"""Header blocks: whatever is kept for its next use, fields are read and written as by `hpack` alone."""

import itertools

import hpack
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.h2.h2_frames import Code, Fault
from accord.h2.h2_headers import LONGEST_READY, MOST_HEADERS, MOST_READY, BlockReader, BlockWriter

unhurried = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
"""For machines that are shared."""

NAMES = st.sampled_from(
    [b":method", b":path", b"accept", b"x-a", b"x-b", b"content-type", b"acp-message", b"n" * 126, b"n" * 127]
)
VALUES = st.sampled_from([b"POST", b"/acp", b"", b"1", b"22", b"v" * 126, b"v" * 127, b"v" * 1500])
PAIRS = st.tuples(NAMES, VALUES)
FIELDS = st.lists(PAIRS, max_size=8)
TOKENS = st.one_of(
    st.sampled_from(
        [b"\x82", b"\x86", b"\xbe", b"\xbf", b"\xc0", b"\xfe", b"\xff\x00", b"\x80", b"\x20", b"\x3f\xe1\x1f"]
    ),
    st.builds(
        lambda kind, name, value: bytes([kind, len(name)]) + name + bytes([len(value)]) + value,
        st.sampled_from([0x00, 0x10, 0x40]),
        st.sampled_from([b"", b"x-a", b"x-new"]),
        st.sampled_from([b"", b"1", b"value"]),
    ),
    st.binary(max_size=3),
)
"""Parts of blocks: fields in the table, one that is not, literals of each kind, sizes of the table, and junk."""

BLOCKS = st.lists(st.lists(TOKENS, max_size=6).map(b"".join), min_size=1, max_size=12)


def read(reader, block):
    """The fields that a reader finds, or the code with which the connection ends."""
    try:
        return reader.decode(block)[0]
    except Fault as fault:
        return fault.code


def expected(decoder, block):
    try:
        return list(decoder.decode(block, raw=True))
    except hpack.OversizedHeaderListError:
        return Code.ENHANCE_YOUR_CALM
    except hpack.HPACKError:
        return Code.COMPRESSION_ERROR


@unhurried
@given(BLOCKS)
def test_any_blocks_are_read_as_hpack_reads_them(blocks):
    ours, theirs = BlockReader(), hpack.Decoder(MOST_HEADERS)
    for block in itertools.chain.from_iterable(zip(blocks, blocks, strict=True)):
        wanted = expected(theirs, block)
        assert read(ours, block) == wanted
        if isinstance(wanted, Code):
            break  # the connection has ended


@unhurried
@given(st.lists(st.tuples(FIELDS, st.sampled_from([None, None, 0, 100, 4096])), min_size=1, max_size=12))
def test_hpack_reads_what_our_writer_writes(blocks):
    writer, theirs, ours = (
        BlockWriter({"acp-message", b"acp-message", b"n" * 127}),
        hpack.Decoder(MOST_HEADERS),
        BlockReader(),
    )
    for fields, limit in blocks:
        if limit is not None:
            writer.resize(limit)
        changing = [field for field in fields if field[0] in {b"acp-message", b"n" * 127}]
        wanted = [field for field in fields if field not in changing] + changing
        for _ in range(3):
            block = writer.encode(fields)
            assert list(theirs.decode(block, raw=True)) == wanted
            assert ours.decode(block)[0] == wanted


def test_a_block_that_repeats_is_one_byte_for_each_field():
    writer = BlockWriter()
    fields = [(b":method", b"POST"), (b"x-a", b"1")]
    writer.encode(fields)
    assert len(writer.encode(fields)) == len(writer.encode(fields)) == len(fields)


def test_the_value_of_a_changing_name_is_never_indexed():
    decoder = hpack.Decoder()
    writer = BlockWriter({"x-n"})
    for value in ("1", "2", "2", "v" * 200):
        [field] = decoder.decode(writer.encode([("x-n", value)]))
        assert field == ("x-n", value)
        assert isinstance(field, hpack.NeverIndexedHeaderTuple)


def literals(size):
    """Fields that count so many bytes, and go into no table."""
    return b"\x10\x03x-b\x01v" * (size // 36)


def test_a_list_is_too_long_also_if_its_beginning_is_kept():
    reader = BlockReader()
    big = (b"x-a", b"v" * 2000)
    assert reader.decode(hpack.Encoder().encode([big], huffman=False))[0] == [big]
    many = b"\xbe" * 32  # that field again and again
    assert reader.decode(many)[0] == reader.decode(many)[0] == [big] * 32
    room = MOST_HEADERS - 32 * (3 + 2000 + 32)
    assert len(reader.decode(many + literals(room))[0]) == 32 + room // 36
    with pytest.raises(Fault) as caught:
        reader.decode(many + literals(room + 36))
    assert caught.value.code == Code.ENHANCE_YOUR_CALM


def test_what_is_kept_is_bounded():
    reader = BlockReader()
    for length in range(1, LONGEST_READY + 10):
        reader.decode(b"\x82" * length)
    assert len(reader._ready) <= MOST_READY
    assert all(len(block) <= LONGEST_READY for block in reader._ready)


@pytest.mark.parametrize("name", [b"X-A", b"", b"x a", b"x\0a"])
def test_the_characters_of_a_short_literal_are_checked(name):
    reader = BlockReader()
    for _ in range(2):
        fields, are_valid = reader.decode(b"\x82\x10%c%b\x01v" % (len(name), name))
        assert fields == [(b":method", b"GET"), (name, b"v")]
        assert not are_valid
