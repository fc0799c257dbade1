"""The HTTP/1.1 parser: accepts what every parser reads the same way, and refuses the rest."""

import h11
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.http.h1 import (
    Bad,
    Chunked,
    Sized,
    UntilTheEnd,
    body_of_request,
    body_of_response,
    chunk,
    head_bytes,
    keeps,
    request_head,
    response_head,
    values,
)

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For machines that are shared."""

NAMES = st.text("abcdefXYZ-_!~09", min_size=1, max_size=12).map(str.encode)
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20).map(str.encode)


def read_by_h11(data):
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    return connection.next_event()


@unhurried
@given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.sampled_from([b"GET", b"POST", b"X-1"]))
def test_valid_headers_are_read_as_h11_reads_them(fields, method):
    fields = [(b"Host", b"here"), *((b"x" + name, value) for name, value in fields)]
    data = head_bytes(b"%b /a?b=c HTTP/1.1\r\n" % method, fields)
    ours, theirs = request_head(data[:-2]), read_by_h11(data)
    assert (ours.method, ours.target, ours.fields) == (theirs.method, theirs.target, list(theirs.headers))


@unhurried
@given(st.binary(max_size=40), st.integers(0, 60))
def test_headers_that_h11_refuses_are_refused(noise, place):
    data = bytearray(b"POST /acp HTTP/1.1\r\nHost: here\r\nX-One: 1\r\n\r\n")
    data[place % len(data) : place % len(data)] = noise
    end = bytes(data).find(b"\r\n\r\n")
    try:
        theirs = read_by_h11(bytes(data[: end + 4]))
    except h11.RemoteProtocolError:
        theirs = None
    try:
        ours = request_head(bytes(data[: end + 2]))
        body_of_request(ours)
    except Bad:
        return
    # Of two hosts the connection takes none, and empty lines before a request are the connection's too.
    if theirs is not None and isinstance(theirs, h11.Request):
        assert ours.fields == list(theirs.headers)
    else:
        assert len(values(ours.fields, b"host")) != 1 or not ours.is_1_1


@pytest.mark.parametrize(
    "head",
    [
        b"GET /acp HTTP/1.1\nHost: here\r\n",
        b"GET  /acp HTTP/1.1\r\n",
        b"GET /a cp HTTP/1.1\r\n",
        b"GET /acp HTTP/2.0\r\n",
        b"GET /acp\r\n",
        b"GET /acp HTTP/1.1\r\nHost : here\r\n",
        b"GET /acp HTTP/1.1\r\n Host: here\r\n",
        b"GET /acp HTTP/1.1\r\nA: 1\r\n folded\r\n",
        b"GET /acp HTTP/1.1\r\nA: 1\nB: 2\r\n",
        b"GET /acp HTTP/1.1\r\nA: 1\rB: 2\r\n",
        b"GET /acp HTTP/1.1\r\nA: \0\r\n",
        b"GET /acp HTTP/1.1\r\nNo colon\r\n",
        b"GET /acp HTTP/1.1\r\n: no name\r\n",
    ],
)
def test_ambiguous_headers_are_refused(head):
    with pytest.raises(Bad):
        request_head(head)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"Content-Length: 5\r\nContent-Length: 6\r\n", 400),
        (b"Content-Length: 5, 5\r\n", 400),
        (b"Content-Length: +5\r\n", 400),
        (b"Content-Length: 0x5\r\n", 400),
        (b"Content-Length: -1\r\n", 400),
        (b"Content-Length: \r\n", 400),
        (b"Content-Length: 9999999999999999999999\r\n", 400),
        (b"Transfer-Encoding: gzip, chunked\r\n", 501),
        (b"Transfer-Encoding: xchunked\r\n", 501),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 501),
    ],
)
def test_an_ambiguous_length_is_refused(fields, status):
    with pytest.raises(Bad) as caught:
        body_of_request(request_head(b"POST /acp HTTP/1.1\r\n" + fields))
    assert caught.value.status == status


def test_a_chunked_http_1_0_request_is_refused():
    with pytest.raises(Bad):
        body_of_request(request_head(b"POST /acp HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"))


@unhurried
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.data())
def test_a_chunked_body_is_read_wherever_it_is_cut(parts, data):
    rest = b"".join([*map(chunk, parts), b"0;of=nothing\r\nTrailer: yes\r\n\r\n", b"BEHIND"])
    body, found = Chunked(), b""
    while not body.is_over:
        size = data.draw(st.integers(1, len(rest)))
        part, behind = body.feed(rest[:size])
        found, rest = found + part, behind + rest[size:]
    assert (found, rest) == (b"".join(parts), b"BEHIND")


@pytest.mark.parametrize(
    "data",
    [
        b"z\r\n",
        b"+5\r\n",
        b"0x5\r\n",
        b"5_0\r\n",
        b" 5\r\n",
        b"\r\n",
        b"3\r\nabcd\r\n",
        b"1" * 5000,
        b"f" * 17 + b"\r\n",
    ],
)
def test_a_chunk_with_an_invalid_size_is_refused(data):
    with pytest.raises(Bad):
        Chunked().feed(data)


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
    ],
)
def test_a_trailer_with_a_malformed_or_forbidden_field_is_refused(field):
    with pytest.raises(Bad):
        Chunked().feed(b"0\r\n" + field + b"\r\n\r\n")


def test_a_plain_trailer_is_ignored():
    body = Chunked()
    assert body.feed(b"0\r\nServer-Timing: x\r\nX-Sum:\r\n\r\nnext") == (b"", b"next")
    assert body.is_over


def test_a_trailer_over_the_limit_is_refused():
    with pytest.raises(Bad):
        Chunked().feed(b"0\r\n" + (b"a: " + b"x" * 1000 + b"\r\n") * 100)


def test_a_response_without_a_length_ends_with_its_connection():
    head = response_head(b"HTTP/1.1 200 OK\r\n")
    body = body_of_response(head, "GET")
    assert isinstance(body, UntilTheEnd)
    assert body.feed(b"all of it") == (b"all of it", b"")
    assert body.end()


@pytest.mark.parametrize(("status", "method"), [(b"204", "GET"), (b"304", "GET"), (b"200", "HEAD"), (b"100", "GET")])
def test_a_response_without_a_body_ignores_its_content_length(status, method):
    body = body_of_response(response_head(b"HTTP/1.1 %b \r\nContent-Length: 5\r\n" % status), method)
    assert body.is_over


def test_a_truncated_body_is_incomplete():
    body = Sized(5)
    assert body.feed(b"abc") == (b"abc", b"")
    assert not body.end()
    assert body.feed(b"defg") == (b"de", b"fg")
    assert body.end()


def test_a_connection_is_kept_unless_one_side_says_close():
    assert keeps([], is_1_1=True)
    assert not keeps([(b"connection", b"x, Close")], is_1_1=True)
    assert not keeps([(b"connection", b"keep-alive")], is_1_1=False)


def test_a_header_value_with_a_line_break_is_refused():
    for value in b"a\r\nb: c", b"a\nb", b"a\0":
        with pytest.raises(ValueError, match="line break"):
            head_bytes(b"HTTP/1.1 200 OK\r\n", [(b"x", value)])
