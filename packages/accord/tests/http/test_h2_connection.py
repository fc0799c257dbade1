"""HTTP/2 without I/O: each rule of RFC 9113 that a peer can break, and what it gets for it."""

import hpack
import pytest

from accord.h2.h2_connection import (
    MOST_CONTINUATIONS,
    REMEMBERED,
    Chore,
    ConnectionFailed,
    DataReceived,
    GoAwayReceived,
    H2Connection,
    HeadReceived,
    StreamClosed,
    StreamReset,
    WindowChanged,
)
from accord.h2.h2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    ENABLE_PUSH,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HAS_PRIORITY,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    LARGEST,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Code,
    Fault,
    H2FrameReader,
    frame,
    number_bytes,
    settings_payload,
)

WINDOW, ALL = 70_000, 100_000
STREAMS = 3

GET = [(":method", "GET"), (":scheme", "http"), (":authority", "here"), (":path", "/")]
POST = [(":method", "POST"), *GET[1:]]
OK = [(":status", "200")]
WHOLE = END_HEADERS | END_STREAM
BEGIN = PREFACE + frame(SETTINGS, 0, 0)


def block(fields):
    """A header block that uses no table, so that blocks can be put together in any order."""
    return hpack.Encoder().encode([(*field, True) for field in fields])


def headers(stream, fields=GET, flags=WHOLE):
    return frame(HEADERS, flags, stream, block(fields))


def post(stream, *more):
    return headers(stream, [*POST, *more], END_HEADERS)


def data(stream, payload=b"", flags=0):
    return frame(DATA, flags, stream, payload)


def window(stream, more):
    return frame(WINDOW_UPDATE, 0, stream, number_bytes(more))


def rst(stream, code=Code.CANCEL):
    return frame(RST_STREAM, 0, stream, number_bytes(code))


def setting(name, value):
    return frame(SETTINGS, 0, 0, settings_payload({name: value}))


class End:
    """A link, and all that it has written and reported."""

    def __init__(self, *, is_client=False, stream_window=WINDOW, begins=True, **more):
        self.link = H2Connection(
            is_client=is_client,
            stream_window=stream_window,
            connection_window=ALL,
            streams=0 if is_client else STREAMS,
            **more,
        )
        self.frames, self.events = [], []
        self.reader = H2FrameReader(expects_preface=is_client)
        self.take()
        if begins:
            self.feed(BEGIN[len(PREFACE) :] if is_client else BEGIN)
            self.frames.clear()
            self.events.clear()

    def feed(self, received, cut=None):
        for at in range(0, len(received), cut or len(received) or 1):
            self.events += self.link.receive(received[at : at + (cut or len(received))])
            self.take()
        return self

    def take(self):
        self.frames += self.reader.feed(self.link.output())

    @property
    def goodbye(self):
        return next((Code(int.from_bytes(it.payload[4:8], "big")) for it in self.frames if it.kind == GOAWAY), None)

    @property
    def resets(self):
        return {it.stream: Code(int.from_bytes(it.payload, "big")) for it in self.frames if it.kind == RST_STREAM}

    def updates(self, stream):
        return [
            int.from_bytes(it.payload, "big") for it in self.frames if it.kind == WINDOW_UPDATE and it.stream == stream
        ]

    def started(self):
        return [event for event in self.events if isinstance(event, HeadReceived)]

    def arrived(self, stream):
        found = [event for event in self.events if isinstance(event, DataReceived) and event.stream == stream]
        return b"".join(event.data for event in found), any(event.ends for event in found)


def a_client(asked=POST, **more):
    """A client that has sent the header of a request on stream 1."""
    end = End(is_client=True, **more)
    end.link.open(asked, ends=False, is_head=asked[0] == (":method", "HEAD"))
    return end


# What ends a server's connection

TOO_MANY = b"".join([frame(CONTINUATION, 0, 1) for _ in range(MOST_CONTINUATIONS + 1)])
P, S, F, W, Z = (
    Code.PROTOCOL_ERROR,
    Code.STREAM_CLOSED,
    Code.FRAME_SIZE_ERROR,
    Code.FLOW_CONTROL_ERROR,
    Code.COMPRESSION_ERROR,
)
FAULTS = {
    "a frame larger than the limit": (frame(DATA, 0, 1, b"x" * (LARGEST + 1)), F),
    "DATA on the connection": (data(0), P),
    "DATA on an idle stream": (data(1), P),
    "DATA on a stream of the server": (data(2), P),
    "DATA with too much padding": (post(1) + data(1, b"\x04abc", PADDED), P),
    "DATA with padding and nothing else": (post(1) + data(1, b"", PADDED), P),
    "more than the window of a stream": (post(1) + data(1, b"x" * LARGEST) * 5, W),
    "more than the window of the connection": (
        post(1) + post(3) + (data(1, b"x" * LARGEST) + data(3, b"x" * LARGEST)) * 4,
        W,
    ),
    "HEADERS on the connection": (headers(0), P),
    "HEADERS on a stream of the server": (headers(2), P),
    "HEADERS on an earlier stream": (headers(5) + headers(3), P),
    "HEADERS with too much padding": (frame(HEADERS, WHOLE | PADDED, 1, b"\xff" + block(GET)), P),
    "HEADERS too short for a priority": (frame(HEADERS, WHOLE | HAS_PRIORITY, 1, b"\0\0\0\0"), F),
    "HEADERS that depend on themselves": (frame(HEADERS, WHOLE | HAS_PRIORITY, 1, b"\0\0\0\x01\0" + block(GET)), P),
    "a header block that is cut off": (frame(HEADERS, WHOLE, 1, block([*GET, ("a", "bcd")])[:-1]), Z),
    "an index that is not in the table": (frame(HEADERS, WHOLE, 1, b"\xff\x80\x01"), Z),
    "the index 0": (frame(HEADERS, WHOLE, 1, b"\x80"), Z),
    "a table that is too large": (frame(HEADERS, WHOLE, 1, b"\x3f\xe2\x1f" + block(GET)), Z),
    "a change of the table after a field": (frame(HEADERS, WHOLE, 1, block(GET) + b"\x20"), Z),
    "an endless integer": (frame(HEADERS, WHOLE, 1, b"\xff" + b"\x80" * 20 + b"\x01"), Z),
    "a Huffman code with the end of string": (frame(HEADERS, WHOLE, 1, b"\x00\x84\xff\xff\xff\xff\x00"), Z),
    "a Huffman code with too much padding": (frame(HEADERS, WHOLE, 1, b"\x00\x82\x1f\xff\x00"), Z),
    "CONTINUATION without HEADERS": (frame(CONTINUATION, END_HEADERS, 1), P),
    "CONTINUATION after the end of a block": (headers(1) + frame(CONTINUATION, END_HEADERS, 1), P),
    "another frame within a block": (headers(1, flags=END_STREAM) + frame(PING, 0, 0, b"12345678"), P),
    "an unknown frame within a block": (headers(1, flags=END_STREAM) + frame(77, 0, 1), P),
    "CONTINUATION of another stream": (headers(1, flags=END_STREAM) + frame(CONTINUATION, END_HEADERS, 3), P),
    "endless CONTINUATION": (headers(1, flags=END_STREAM) + TOO_MANY, P),
    "PRIORITY on the connection": (frame(PRIORITY, 0, 0, b"\0\0\0\x03\0"), P),
    "PRIORITY of another size": (frame(PRIORITY, 0, 1, b"\0\0\0\x03"), F),
    "PRIORITY on itself": (frame(PRIORITY, 0, 1, b"\0\0\0\x01\0"), P),
    "RST_STREAM on the connection": (rst(0), P),
    "RST_STREAM on an idle stream": (rst(1), P),
    "RST_STREAM of another size": (headers(1) + frame(RST_STREAM, 0, 1, b"\0\0\0"), F),
    "SETTINGS on a stream": (frame(SETTINGS, 0, 1), P),
    "SETTINGS of another size": (frame(SETTINGS, 0, 0, b"\0\0\0"), F),
    "an acknowledgement with settings": (frame(SETTINGS, ACK, 0, b"\0" * 6), F),
    "ENABLE_PUSH of 2": (setting(ENABLE_PUSH, 2), P),
    "a window of 2^31": (setting(INITIAL_WINDOW_SIZE, 2**31), W),
    "frames that are too small": (setting(MAX_FRAME_SIZE, LARGEST - 1), P),
    "frames that are too large": (setting(MAX_FRAME_SIZE, 2**24), P),
    "a window that grows over 2^31 by SETTINGS": (
        post(1) + window(1, 2**31 - 1 - 65_535) + setting(INITIAL_WINDOW_SIZE, 65_536),
        W,
    ),
    "PUSH_PROMISE": (post(1) + frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x02" + block(GET)), P),
    "PING on a stream": (frame(PING, 0, 1, b"12345678"), P),
    "PING of another size": (frame(PING, 0, 0, b"1234567"), F),
    "GOAWAY on a stream": (frame(GOAWAY, 0, 1, b"\0" * 8), P),
    "GOAWAY of another size": (frame(GOAWAY, 0, 0, b"\0" * 7), F),
    "WINDOW_UPDATE of another size": (frame(WINDOW_UPDATE, 0, 0, b"\0\0\x01"), F),
    "WINDOW_UPDATE on an idle stream": (window(1, 1), P),
    "WINDOW_UPDATE of 0 on the connection": (window(0, 0), P),
    "a window of the connection over 2^31": (window(0, 2**31 - 1), W),
}


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize("name", FAULTS)
def test_a_peer_that_breaks_a_rule_of_the_connection_gets_goaway(name, cut):
    received, code = FAULTS[name]
    end = End().feed(received, cut)
    assert end.goodbye is code
    assert isinstance(end.events[-1], ConnectionFailed)
    assert end.feed(headers(9)).started() == [it for it in end.started() if it.stream != 9]


@pytest.mark.parametrize(
    "begin", [b"GET / HTTP/1.1\r\n", PREFACE[:-1] + b"x", PREFACE + headers(1), PREFACE + frame(SETTINGS, ACK, 0)]
)
@pytest.mark.parametrize("cut", [None, 1])
def test_a_connection_must_begin_with_the_preface_and_settings(begin, cut):
    assert End(begins=False).feed(begin, cut).goodbye is P


def test_a_frame_over_the_limit_is_refused_by_its_header_alone():
    with pytest.raises(Fault):
        list(H2FrameReader(expects_preface=False).feed(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"))


# What ends a stream

MALFORMED = {
    "no method": GET[1:],
    "no scheme": [GET[0], *GET[2:]],
    "an empty scheme": [GET[0], (":scheme", ""), *GET[2:]],
    "no path": GET[:3],
    "an empty path": [*GET[:3], (":path", "")],
    "a path with a blank": [*GET[:3], (":path", "/a b")],
    "a path with a letter of Latin-1": [*GET[:3], (":path", b"/\xe9")],
    "a path without a slash": [*GET[:3], (":path", "here")],
    "CONNECT": [(":method", "CONNECT"), (":authority", "here")],
    "a method with a blank": [(":method", "GE T"), *GET[1:]],
    "an empty method": [(":method", ""), *GET[1:]],
    "two methods": [*GET, (":method", "GET")],
    "two paths": [*GET, (":path", "/")],
    "a status": [*GET, (":status", "200")],
    "an unknown pseudo-header field": [*GET, (":protocol", "websocket")],
    "a pseudo-header field after a field": [*GET[:3], ("a", "b"), GET[3]],
    "neither authority nor host": [GET[0], GET[1], GET[3]],
    "authority and another host": [*GET, ("host", "there")],
    "two hosts": [GET[0], GET[1], GET[3], ("host", "here"), ("host", "here")],
    "a name in upper case": [*GET, ("Accept", "x")],
    "an empty name": [*GET, ("", "x")],
    "a colon alone": [*GET, (":", "x")],
    "a name with a colon": [*GET, ("a:b", "x")],
    "a name with a blank": [*GET, ("a b", "x")],
    "a name with a line break": [*GET, ("a\r\nb", "x")],
    "a name with a null byte": [*GET, ("a\0b", "x")],
    "a name with a letter of Latin-1": [*GET, (b"\xe9", "x")],
    "a value with CR": [*GET, ("a", "x\ry")],
    "a value with LF": [*GET, ("a", "x\ny")],
    "a value with a null byte": [*GET, ("a", "x\0y")],
    "a value that looks like two fields": [*GET, ("a", "x\0b\0y")],
    "a value with a control character": [*GET, ("a", "x\x1by")],
    "a value that begins with a blank": [*GET, ("a", " x")],
    "a value that ends with a tab": [*GET, ("a", "x\t")],
    "connection": [*GET, ("connection", "close")],
    "keep-alive": [*GET, ("keep-alive", "5")],
    "proxy-connection": [*GET, ("proxy-connection", "close")],
    "transfer-encoding": [*GET, ("transfer-encoding", "chunked")],
    "upgrade": [*GET, ("upgrade", "h2c")],
    "te": [*GET, ("te", "gzip")],
    "a length that is no number": [*GET, ("content-length", "+1")],
    "a length without digits": [*GET, ("content-length", "")],
    "two lengths": [*GET, ("content-length", "0"), ("content-length", "0")],
    "a list of lengths": [*GET, ("content-length", "0, 0")],
    "a body that is missing": [*GET, ("content-length", "1")],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_ends_its_stream_alone(name):
    end = End().feed(headers(1, MALFORMED[name]) + headers(3))
    assert end.goodbye is None
    assert end.resets == {1: P}
    assert [event.stream for event in end.started()] == [3]
    assert any(isinstance(event, Chore) for event in end.events)  # so that many of them are a flood


STREAM_FAULTS = {
    "a body longer than its length": (post(1, ("content-length", "2")) + data(1, b"abc"), P),
    "a body shorter than its length": (post(1, ("content-length", "4")) + data(1, b"abc", END_STREAM), P),
    "a body shorter than its length, with trailers": (post(1, ("content-length", "4")) + headers(1, [("a", "b")]), P),
    "trailers that do not end the request": (post(1) + headers(1, [("a", "b")], END_HEADERS), P),
    "trailers with a pseudo-header field": (post(1) + headers(1, [(":path", "/")]), P),
    "trailers with a forbidden field": (post(1) + headers(1, [("connection", "close")]), P),
    "trailers with a forbidden character": (post(1) + headers(1, [("a", "x\ny")]), P),
    "DATA after the end": (headers(1) + data(1, b"x"), S),
    "HEADERS after the end": (headers(1) + headers(1, [("a", "b")]), S),
    "a window of 0 more": (post(1) + window(1, 0), P),
    "a window over 2^31": (post(1) + window(1, 2**31 - 1), W),
}


@pytest.mark.parametrize("name", STREAM_FAULTS)
def test_a_fault_of_a_stream_ends_it_alone_and_is_reported(name):
    received, code = STREAM_FAULTS[name]
    end = End().feed(received + headers(3))
    assert (end.goodbye, end.resets) == (None, {1: code})
    assert [(event.stream, event.code) for event in end.events if isinstance(event, StreamReset)] == [(1, code)]
    assert end.started()[-1].stream == 3


def test_one_stream_more_than_announced_is_refused():
    end = End().feed(b"".join(headers(number) for number in (1, 3, 5, 7)))
    assert end.resets == {7: Code.REFUSED_STREAM}
    assert len(end.started()) == STREAMS
    end.link.reset(1, Code.CANCEL)
    assert len(end.feed(headers(9)).started()) == STREAMS + 1


# Closed streams


def test_what_arrives_late_for_a_stream_that_was_reset_is_answered_and_dropped():
    end = End().feed(post(1))
    end.link.reset(1, Code.CANCEL)
    end.feed(data(1, b"x" * 10) + headers(1, [("a", "b")]) + window(1, 5) + rst(1) + frame(PRIORITY, 0, 1, b"\0" * 5))
    assert end.goodbye is None
    assert [it.stream for it in end.frames if it.kind == RST_STREAM] == [1, 1, 1]
    assert end.arrived(1) == (b"", False)


def test_what_arrives_for_a_stream_that_has_ended_is_a_fault():
    for late in (data(1, b"x"), headers(1, [("a", "b")])):
        end = End().feed(headers(1))
        end.link.send_headers(1, OK, ends=True)
        assert end.feed(window(1, 5) + rst(1)).goodbye is None
        assert end.feed(late).goodbye is S


def test_a_window_update_of_0_is_answered_also_on_a_closed_stream():
    end = End().feed(headers(1))
    end.link.send_headers(1, OK, ends=True)
    assert end.feed(window(1, 0)).resets == {1: P}
    assert any(isinstance(event, Chore) for event in end.events)


def test_few_closed_streams_are_remembered():
    end = End()
    for number in range(1, 2 * REMEMBERED + 11, 2):
        end.feed(headers(number) + rst(number))
    assert len(end.link._closed) == REMEMBERED
    assert end.feed(data(1, b"x")).goodbye is S


def test_nothing_can_be_sent_on_a_stream_that_is_not_open():
    end = End().feed(headers(1))
    end.link.send_headers(1, OK, ends=True)
    for number in (1, 3):
        with pytest.raises(StreamClosed):
            end.link.send_headers(number, OK, ends=True)
        with pytest.raises(StreamClosed):
            end.link.room(number)
        with pytest.raises(StreamClosed):
            end.link.send_data(number, b"", ends=True)
    end.link.reset(1, Code.CANCEL)
    end.link.acknowledge(1, 10)
    assert end.link.output()  # the response, and no more
    assert not end.link.output()


# Requests that are well formed


def head_of(fields, **more):
    (started,) = End().feed(headers(1, fields, **more)).started()
    return started.head


def test_a_request_is_read():
    end = End().feed(headers(1, [*POST, ("te", "trailers"), ("a", ""), ("content-length", "3")], END_HEADERS))
    end.feed(data(1, b"ab") + data(1, b"c") + headers(1, [("checksum", "x")]))
    (started,) = end.started()
    assert (started.stream, started.ends, started.head.method, started.head.target) == (1, False, b"POST", b"/")
    assert started.head.fields == [(b"host", b"here"), (b"te", b"trailers"), (b"a", b""), (b"content-length", b"3")]
    assert end.arrived(1) == (b"abc", True)
    assert not end.resets


def test_the_host_may_be_given_either_way_or_both():
    without = [GET[0], GET[1], GET[3]]
    for fields in (GET, [*without, ("host", "here")], [*GET, ("host", "here")]):
        assert head_of(fields).fields == [(b"host", b"here")]


def test_cookies_are_joined():
    fields = head_of([*GET, ("cookie", "a=b"), ("x", "y"), ("cookie", "c=d")]).fields
    assert fields == [(b"host", b"here"), (b"x", b"y"), (b"cookie", b"a=b; c=d")]


def test_padding_and_priorities_are_left_out_and_padding_counts():
    padded = b"\x03" + b"\x80\0\0\x09\x10" + block(POST) + b"\0\0\0"
    end = End().feed(frame(HEADERS, END_HEADERS | PADDED | HAS_PRIORITY, 1, padded))
    end.feed(data(1, b"\x05hello" + b"\0" * 5, PADDED | END_STREAM))
    assert end.arrived(1) == (b"hello", True)
    assert end.events[-1].counted == 11


@pytest.mark.parametrize("cut", [None, 1, 7])
def test_a_header_block_may_be_split_anywhere(cut):
    whole = block([*GET, ("a", "x" * 500)])
    parts = [whole[at : at + 20] for at in range(0, len(whole), 20)]
    sent = frame(HEADERS, END_STREAM, 1, parts[0])
    sent += b"".join(frame(CONTINUATION, 0, 1, part) for part in parts[1:]) + frame(CONTINUATION, END_HEADERS, 1)
    (started,) = End().feed(sent, cut).started()
    assert started.ends
    assert started.head.fields[-1] == (b"a", b"x" * 500)


def test_unknown_frames_flags_and_settings_are_ignored():
    end = End().feed(frame(200, 0xFF, 0, b"x") + setting(0xABC, 9) + frame(HEADERS, WHOLE | 0xD2, 1, block(GET)))
    assert len(end.started()) == 1
    assert end.goodbye is None


# Header lists over the limit


def test_a_header_list_over_the_limit_ends_the_connection():
    end = End()
    large = frame(HEADERS, 0, 1, block(GET)[:5]) + frame(CONTINUATION, 0, 1, b"x" * LARGEST) * 4
    assert end.feed(large).goodbye is Code.ENHANCE_YOUR_CALM


def test_a_header_list_that_is_small_only_on_the_wire_ends_the_connection():
    encoder = hpack.Encoder()
    bomb = encoder.encode([*GET, ("a", "x" * 4000)]) + encoder.encode([("a", "x" * 4000)]) * 1000
    assert len(bomb) < LARGEST
    assert End().feed(frame(HEADERS, WHOLE, 1, bomb)).goodbye is Code.ENHANCE_YOUR_CALM


def test_many_tiny_fields_count_too():
    assert End().feed(headers(1, [*GET, *[("a", "")] * 2100])).goodbye is Code.ENHANCE_YOUR_CALM


# Flow control


def test_a_window_is_announced_by_halves():
    end = End().feed(post(1) + post(3) + data(1, b"x" * LARGEST) * 3)
    assert not end.updates(0) + end.updates(1)
    end.link.acknowledge(1, LARGEST)
    end.link.acknowledge(1, LARGEST)
    end.link.acknowledge(1, LARGEST)
    end.take()
    assert end.updates(1) == [3 * LARGEST]
    assert not end.updates(0)
    end.feed(data(3, b"x" * 1000))
    end.link.acknowledge(3, 1000)
    end.take()
    assert end.updates(0) == [3 * LARGEST + 1000]


@pytest.mark.parametrize("how", ["reset here", "reset there", "ended", "late"])
def test_a_closed_stream_gives_back_its_part_of_the_connections_window(how):
    end = End()
    for number in range(1, 41, 2):  # twenty times a stream's window would exceed the connection's
        end.feed(post(number) + data(number, b"x" * 10_000))
        match how:
            case "reset here":
                end.link.reset(number, Code.CANCEL)
            case "reset there":
                end.feed(rst(number))
            case "late":
                end.link.reset(number, Code.CANCEL)
                end.feed(data(number, b"x" * 10_000))
            case _:
                end.feed(data(number, flags=END_STREAM))
                end.link.send_headers(number, OK, ends=True)
        end.take()
    assert end.goodbye is None
    assert sum(end.updates(0)) >= 100_000


def test_data_waits_for_both_windows():
    end = End().feed(headers(1) + headers(3))
    link = end.link
    link.send_headers(1, OK, ends=False)
    link.send_headers(3, OK, ends=False)
    assert link.room(1) == LARGEST
    for _ in range(3):
        link.send_data(1, b"x" * LARGEST, ends=False)
    link.send_data(1, b"x" * link.room(1), ends=False)
    assert (link.room(1), link.room(3)) == (0, 0)
    end.feed(window(0, 100))
    assert (link.room(1), link.room(3)) == (0, 100)
    end.feed(window(1, 50))
    assert link.room(1) == 50
    assert any(isinstance(event, WindowChanged) for event in end.events)


def test_a_smaller_window_in_settings_may_make_a_streams_negative():
    end = End().feed(headers(1))
    end.link.send_headers(1, OK, ends=False)
    end.link.send_data(1, b"x" * LARGEST, ends=False)
    end.feed(setting(INITIAL_WINDOW_SIZE, 100))
    assert end.link.room(1) == 100 - LARGEST
    end.feed(window(1, LARGEST))
    assert end.link.room(1) == 100
    end.feed(headers(3))
    end.link.send_headers(3, OK, ends=False)
    assert end.link.room(3) == 100
    assert any(it.kind == SETTINGS and it.flags == ACK for it in end.frames)


def test_larger_frames_are_never_sent():
    end = End().feed(
        headers(1) + setting(MAX_FRAME_SIZE, 2**20) + setting(INITIAL_WINDOW_SIZE, 2**20) + window(0, 2**20)
    )
    end.link.send_headers(1, [*OK, ("a", "x" * 50_000)], ends=False)
    assert end.link.room(1) == LARGEST
    end.take()
    kinds = [(it.kind, it.flags, len(it.payload)) for it in end.frames if it.stream == 1]
    assert [kind for kind, _, _ in kinds] == [HEADERS, CONTINUATION, CONTINUATION, CONTINUATION]
    assert [flags for _, flags, _ in kinds] == [0, 0, 0, END_HEADERS]
    assert max(size for _, _, size in kinds) == LARGEST


# PING, GOAWAY, SETTINGS


def test_a_ping_is_answered_and_an_answer_is_not():
    end = End().feed(frame(PING, 0, 0, b"abcdefgh") + frame(PING, ACK, 0, b"12345678"))
    assert [(it.flags, it.payload) for it in end.frames if it.kind == PING] == [(ACK, b"abcdefgh")]
    assert len(end.events) == 1
    end.link.ping(b"12345678")
    assert end.link.output() == frame(PING, 0, 0, b"12345678")


@pytest.mark.parametrize("received", [frame(PING, 0, 0, b"12345678"), frame(SETTINGS, 0, 0), frame(99, 0, 0)])
def test_frames_without_a_purpose_are_reported_each(received):
    assert sum(isinstance(event, Chore) for event in End().feed(received * 10).events) == 10


def test_goaway_names_the_last_stream_and_ends_everything():
    end = End().feed(headers(1) + headers(5))
    end.link.close(Code.NO_ERROR)
    end.link.close(Code.NO_ERROR)
    assert end.link.output() == frame(GOAWAY, 0, 0, number_bytes(5, 0))
    assert not end.link.receive(headers(7))


def test_a_goaway_is_reported():
    assert End().feed(frame(GOAWAY, 0, 0, number_bytes(0, 2) + b"why")).events == [GoAwayReceived(2)]


def test_after_goaway_streams_up_to_the_last_go_on_and_later_ones_were_not_processed():
    end = End(is_client=True)
    first, second, third = (end.link.open(POST, ends=False) for _ in range(3))
    assert end.link.can_open
    end.feed(frame(GOAWAY, 0, 0, number_bytes(2**31 - 1, 0)))
    assert end.events == [GoAwayReceived(0)]
    end.feed(frame(GOAWAY, 0, 0, number_bytes(second, 0)))
    _, refused, again = end.events
    assert (refused.stream, refused.code, again) == (third, Code.REFUSED_STREAM, GoAwayReceived(0))
    assert not end.link.can_open
    end.link.send_data(first, b"body", ends=True)
    assert end.frames or end.link.output()
    end.feed(headers(first, [(":status", "200")]))
    assert [event.stream for event in end.started()] == [first]


@pytest.mark.parametrize("sizes", [(0,), (0, 4096), (100, 100), (5000,), (2**32 - 1,), (50, 0, 50)])
def test_a_peer_may_change_the_size_of_the_table(sizes):
    end = End()
    peer = hpack.Decoder()
    fields = [(b":status", b"200"), (b"a", b"x" * 40), (b"b", b"y" * 40)]
    for number in (1, 3, 5):
        end.feed(headers(number))
        if number == 3:
            for size in sizes:
                end.feed(setting(HEADER_TABLE_SIZE, size))
                peer.max_allowed_table_size = size
        end.link.send_headers(number, fields, ends=True)
        end.take()
        sent = [it.payload for it in end.frames if it.kind == HEADERS]
        assert peer.decode(sent[-1], raw=True) == fields


# The client


def test_a_client_asks_and_reads_the_answer():
    client, server = End(is_client=True), End()
    number = client.link.open([*POST, ("a", "b")], ends=False)
    client.link.send_data(number, b"question", ends=True)
    server.feed(client.link.output())
    assert server.arrived(1) == (b"question", True)
    server.link.send_headers(1, [*OK, ("content-length", "6")], ends=False)
    server.link.send_data(1, b"answer", ends=True)
    client.feed(server.link.output())
    (started,) = client.started()
    assert (started.head.status, started.head.fields) == (200, [(b"content-length", b"6")])
    assert client.arrived(1) == (b"answer", True)
    assert not client.link._streams
    assert not server.link._streams


BAD_RESPONSES = {
    "no status": headers(1, [("a", "b")]),
    "a status of two digits": headers(1, [(":status", "20")]),
    "a status of letters": headers(1, [(":status", "2xx")]),
    "a status of 600": headers(1, [(":status", "600")]),
    "two statuses": headers(1, [*OK, *OK]),
    "a path": headers(1, [*OK, (":path", "/")]),
    "101": headers(1, [(":status", "101")], END_HEADERS),
    "an end with 100": headers(1, [(":status", "100")]),
    "a name in upper case": headers(1, [*OK, ("A", "b")]),
    "a line break": headers(1, [*OK, ("a", "b\r\nc")]),
    "transfer-encoding": headers(1, [*OK, ("transfer-encoding", "chunked")]),
    "a body before the header": data(1, b"x"),
    "a body that is missing": headers(1, [*OK, ("content-length", "5")]),
    "a body that is too long": headers(1, [*OK, ("content-length", "1")], END_HEADERS) + data(1, b"xy"),
    "a body of 204": headers(1, [(":status", "204")], END_HEADERS) + data(1, b"x"),
    "trailers that do not end": headers(1, OK, END_HEADERS) * 2,
}


@pytest.mark.parametrize("name", BAD_RESPONSES)
def test_a_malformed_response_ends_its_stream_alone(name):
    end = a_client().feed(BAD_RESPONSES[name])
    assert (end.goodbye, end.resets) == (None, {1: P})
    assert [(event.stream, event.code) for event in end.events if isinstance(event, StreamReset)] == [(1, P)]
    assert end.link.can_open


CLIENT_FAULTS = {
    "a response that nobody asked for": (headers(3, OK), P),
    "a body that nobody asked for": (data(3), P),
    "a stream of the server": (headers(2, OK), P),
    "PUSH_PROMISE": (frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x02" + block(GET)), P),
    "ENABLE_PUSH": (setting(ENABLE_PUSH, 1), P),
    "RST_STREAM on an idle stream": (rst(3), P),
}


@pytest.mark.parametrize("name", CLIENT_FAULTS)
def test_a_server_that_breaks_a_rule_of_the_connection_gets_goaway(name):
    received, code = CLIENT_FAULTS[name]
    assert a_client().feed(received).goodbye is code


def test_interim_responses_are_skipped():
    end = a_client().feed(headers(1, [(":status", "103"), ("link", "x")], END_HEADERS) + headers(1, OK))
    assert [event.head.status for event in end.started()] == [200]


@pytest.mark.parametrize(("method", "status"), [("HEAD", "200"), ("GET", "204"), ("GET", "304")])
def test_responses_without_a_body_may_have_a_length(method, status):
    end = a_client([(":method", method), *GET[1:]]).feed(headers(1, [(":status", status), ("content-length", "5")]))
    assert not end.resets


def test_a_client_opens_as_many_streams_as_the_server_allows():
    end = End(is_client=True).feed(setting(MAX_CONCURRENT_STREAMS, 2))
    assert end.link.can_open
    assert [end.link.open(GET, ends=True) for _ in range(2)] == [1, 3]
    assert not end.link.can_open
    assert end.feed(headers(1, OK)).link.can_open


def test_a_client_stops_when_there_are_no_numbers_left():
    end = End(is_client=True)
    end.link._next = 2**31 - 1
    assert end.link.can_open
    end.link.open(GET, ends=True)
    assert not end.link.can_open


def test_values_that_change_do_not_fill_the_table():
    end = End(is_client=True, changing={"number"})
    sizes = []
    for value in range(100, 200):
        end.link.open([*GET, ("number", str(value))], ends=True)
        sizes.append(len(end.link.output()))
    assert len(set(sizes[1:])) == 1
    assert sizes[1] < sizes[0]
