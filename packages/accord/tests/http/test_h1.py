"""The HTTP/1.1 readers: they accept what every reader understands the same way, and refuse the rest."""

import h11
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.http.h1 import (
    MOST_FIELDS,
    Bad,
    BodyPart,
    RequestHead,
    RequestReader,
    ResponseHead,
    ResponseReader,
    Upgraded,
    chunk,
    head_bytes,
    keeps,
    values,
)

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For machines that are shared."""

NAMES = st.text("abcdefXYZ-_!~09", min_size=1, max_size=12).map(str.encode)
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20).map(str.encode)

POST = b"POST /acp HTTP/1.1\r\nHost: here\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def read(data, reader=RequestReader, cut=None):
    """All items, with the parts of each body joined."""
    reading, items = reader(), []
    for start in range(0, len(data), cut or len(data)):
        for item in reading.feed(data[start : start + (cut or len(data))]):
            if isinstance(item, BodyPart) and items and isinstance(items[-1], BodyPart) and not items[-1].is_last:
                items[-1] = BodyPart(items[-1].data + item.data, item.is_last)
            else:
                items.append(item)
        if items and isinstance(items[-1], Bad):
            break
    return items


def problem(data, reader=RequestReader, cut=None):
    """Why these bytes are refused, or None."""
    last = read(data, reader, cut)[-1:]
    return last[0] if last and isinstance(last[0], Bad) else None


def read_by_h11(data):
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    return connection.next_event()


@unhurried
@given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.sampled_from([b"GET", b"POST", b"DELETE"]))
def test_valid_headers_are_read_as_h11_reads_them(fields, method):
    fields = [(b"Host", b"here"), *((b"x" + name, value) for name, value in fields)]
    data = head_bytes(b"%b /a?b=c HTTP/1.1\r\n" % method, fields)
    [ours], theirs = read(data), read_by_h11(data)
    assert (ours.method, ours.target, ours.fields) == (theirs.method, theirs.target, list(theirs.headers))


@unhurried
@given(st.binary(max_size=40), st.integers(0, 60))
def test_headers_that_h11_refuses_are_refused(noise, place):
    data = bytearray(b"POST /acp HTTP/1.1\r\nHost: here\r\nX-One: 1\r\n\r\n")
    data[place % len(data) : place % len(data)] = noise
    try:
        theirs = read_by_h11(bytes(data))
    except h11.RemoteProtocolError:
        theirs = None
    ours = next(iter(read(bytes(data))), None)
    if not isinstance(ours, RequestHead):
        return
    # The connection refuses a request with two hosts. Blanks and line breaks around the target do not change what is
    # read, and h11 knows any method.
    if isinstance(theirs, h11.Request):
        assert ours.fields == list(theirs.headers)
    else:
        line = bytes(data).lstrip(b"\r\n").partition(b"\r\n")[0].split()
        assert len(values(ours.fields, b"host")) != 1 or not ours.is_1_1 or [ours.method, ours.target] == line[:2]


@pytest.mark.parametrize(
    "head",
    [
        b"GET /acp HTTP/1.1\nHost: here\r\n",
        b"GET /a cp HTTP/1.1\r\n",
        b"GET\t/acp\tHTTP/1.1\r\n",
        b"GET /acp HTTP/1.1 \r\n",
        b"GET /acp http/1.1\r\n",
        b"GET /acp HTTP/1.2\r\n",
        b"GET /acp HTTP/2.0\r\n",
        b"GET /acp\r\n",
        b"G\xc3T /acp HTTP/1.1\r\n",
        b"GET /\xff HTTP/1.1\r\n",
        b"BREW /acp HTTP/1.1\r\n",
        b"CONNECT here:80 HTTP/1.1\r\n",
        b"GET /acp HTTP/1.1\r\nHost : here\r\n",
        b"GET /acp HTTP/1.1\r\n Host: here\r\n",
        b"GET /acp HTTP/1.1\r\nA: 1\r\n folded\r\n",
        b"GET /acp HTTP/1.1\r\nA: 1\nB: 2\r\n",
        b"GET /acp HTTP/1.1\r\nA: 1\rB: 2\r\n",
        b"GET /acp HTTP/1.1\r\nA: \0\r\n",
        b"GET /acp HTTP/1.1\r\n\xe4: x\r\n",
        b"GET /acp HTTP/1.1\r\nNo colon\r\n",
        b"GET /acp HTTP/1.1\r\n: no name\r\n",
    ],
)
@pytest.mark.parametrize("cut", [None, 1])
def test_ambiguous_headers_are_refused(head, cut):
    assert problem(head + b"\r\n", cut=cut)


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        b"Content-Length: 5\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: 3 7\r\n",
        b"Content-Length: 3_7\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: \r\n",
        b"Content-Length:\r\n 5\r\n",
        b"Content-Length: \xef\xbc\x95\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        b'Transfer-Encoding: "chunked"\r\n',
        b"Transfer-Encoding:\r\n chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
    ],
)
@pytest.mark.parametrize("cut", [None, 1])
def test_an_ambiguous_length_is_refused(fields, cut):
    assert problem(POST + fields + b"\r\n", cut=cut).status in (400, 501)


def test_a_chunked_http_1_0_request_is_refused():
    assert problem(b"POST /acp HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")


@unhurried
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.data())
def test_a_chunked_body_is_read_wherever_it_is_cut(parts, data):
    rest = CHUNKED + b"".join([*map(chunk, parts), b"0;of=nothing\r\nTrailer: yes\r\n\r\n", POST, b"\r\n"])
    reader, items = RequestReader(), []
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        items += reader.feed(rest[:size])
        rest = rest[size:]
    head, *body, next_head = items
    assert isinstance(head, RequestHead)
    assert isinstance(next_head, RequestHead)
    assert [part.is_last for part in body] == [False] * (len(body) - 1) + [True]
    assert b"".join(part.data for part in body) == b"".join(parts)


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize(
    "data",
    [
        b"z\r\n",
        b"+5\r\n",
        b"-1\r\n",
        b"0x5\r\n",
        b"5_0\r\n",
        b" 5\r\n",
        b"\r\n",
        b"5\nhello\n0\n\n",
        b"5;\nxx\r\nhello\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n",
        b"4\r\nabc\r\n0\r\n\r\n",
        b"1" * 5000,
        b"f" * 17 + b"\r\n",
    ],
)
def test_a_chunk_with_an_invalid_size_is_refused(data, cut):
    assert problem(CHUNKED + data, cut=cut)


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize(
    "field",
    [
        b"no field",
        b": empty",
        b"X : space",
        b"X: y\nTransfer-Encoding: chunked",
        b"X: \x00",
        b"\x00\xff not a field",
        b" folded",
        b"Content-Length: 5",
        b"transfer-encoding: chunked",
        b"Host: evil.example",
        b"Authorization: Bearer x",
        b"Content-Type: text/plain",
    ],
)
def test_a_trailer_with_a_malformed_or_forbidden_field_is_refused(field, cut):
    assert problem(CHUNKED + b"0\r\n" + field + b"\r\n\r\n", cut=cut)


def test_a_plain_trailer_is_ignored():
    head, body, following = read(CHUNKED + b"0\r\nServer-Timing: x\r\nX-Sum:\r\n\r\n" + POST + b"\r\n")
    assert (head.has_body, body, following.fields) == (True, BodyPart(b"", is_last=True), [(b"host", b"here")])


@pytest.mark.parametrize("cut", [None, 1000])
@pytest.mark.parametrize(
    "data",
    [
        POST + b"X: " + b"x" * 70_000,
        POST + b"X: " + b"x" * 140_000 + b"\r\n\r\n",
        POST + b"a: b\r\n" * (MOST_FIELDS + 1) + b"\r\n",
        CHUNKED + b"0\r\n" + (b"a: " + b"x" * 1000 + b"\r\n") * 100,
        CHUNKED + b"0\r\n" + b"a: b\r\n" * (MOST_FIELDS + 2),
    ],
    ids=["endless field", "long field", "many fields", "long trailer", "trailer of many fields"],
)
def test_headers_and_trailers_over_a_limit_are_refused_with_431(data, cut):
    assert problem(data, cut=cut).status == 431


def test_an_endless_chunk_extension_is_refused():
    assert problem(CHUNKED + b"5;" + b"x" * 100_000, cut=10_000)


def test_requests_before_malformed_bytes_are_read():
    head, body, bad = read(POST + b"Content-Length: 2\r\n\r\nok" + b"nonsense\r\n\r\n")
    assert (head.has_body, body) == (True, BodyPart(b"ok", is_last=True))
    assert isinstance(bad, Bad)


@pytest.mark.parametrize("cut", [None, 1, 7])
@pytest.mark.parametrize(
    "framed", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"]
)
def test_a_request_that_offers_an_upgrade_to_http2_keeps_its_body(framed, cut):
    offering = POST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    head, body, following, following_body = read((offering + framed) * 2, cut=cut)
    assert (head.method, head.target) == (following.method, following.target) == (b"POST", b"/acp")
    assert body == following_body == BodyPart(b"hello", is_last=True)


def test_what_follows_a_request_for_a_websocket_is_not_parsed():
    asking = b"GET /acp HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    _, upgraded = read(asking + b"\x81\x00")
    assert upgraded == Upgraded(b"\x81\x00")


def test_a_response_without_a_length_ends_with_its_connection():
    head, body = read(b"HTTP/1.1 200 OK\r\n\r\nall of it", ResponseReader)
    assert (head.has_body, head.ends_with_connection) == (True, True)
    assert body == BodyPart(b"all of it", is_last=False)


@pytest.mark.parametrize("status", [b"204", b"304"])
def test_a_response_without_a_body_ignores_its_content_length(status):
    [head] = read(b"HTTP/1.1 %b Nothing\r\nContent-Length: 5\r\n\r\n" % status, ResponseReader)
    assert (head.has_body, head.ends_with_connection) == (False, False)


def test_interim_responses_are_skipped():
    [head] = read(
        b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", ResponseReader
    )
    assert (type(head), head.status) == (ResponseHead, 202)


def test_a_truncated_body_is_incomplete():
    reader = ResponseReader()
    _, part = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc")
    assert (part, reader.is_between) == (BodyPart(b"abc", is_last=False), False)
    assert reader.feed(b"de") == [BodyPart(b"de", is_last=True)]
    assert reader.is_between


def test_a_connection_is_kept_unless_one_side_says_close():
    assert keeps([], is_1_1=True)
    assert not keeps([(b"connection", b"x, Close")], is_1_1=True)
    assert not keeps([(b"connection", b"keep-alive")], is_1_1=False)


def test_a_header_value_with_a_line_break_is_refused():
    for value in b"a\r\nb: c", b"a\nb", b"a\0":
        with pytest.raises(ValueError, match="line break"):
            head_bytes(b"HTTP/1.1 200 OK\r\n", [(b"x", value)])
