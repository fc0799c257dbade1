"""Requests that two readers may read differently: two lengths, odd chunks, odd line breaks, odd request lines.

Each is followed by, or contains, a second request: `HIDDEN`. A front and a server that disagree about where the first
one ends disagree about whether the second one exists.
"""

HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b'{"jsonrpc":"2.0","id":0,"method":"x"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKS = b"Transfer-Encoding: chunked\r\n"
LAST = b"0\r\n\r\n"


def post(fields, body, line=b"POST /acp HTTP/1.1"):
    return line + b"\r\nHost: localhost\r\nContent-Type: application/json\r\n" + fields + b"\r\n" + body + HIDDEN


def get(line, fields=b"Host: localhost\r\n", body=b""):
    return line + b"\r\n" + fields + b"\r\n" + body + HIDDEN


def chunked(body, fields=CHUNKS):
    return post(fields, body)


LENGTHS = {
    "an ordinary length": post(LENGTH, BODY),
    "leading zeros": post(b"Content-Length: 000%d\r\n" % len(BODY), BODY),
    "the same length twice": post(LENGTH * 2, BODY),
    "two lengths": post(LENGTH + b"Content-Length: 5\r\n", BODY),
    "two lengths, the short one first": post(b"Content-Length: 5\r\n" + LENGTH, BODY),
    "a list of lengths": post(b"Content-Length: %d, %d\r\n" % (len(BODY), len(BODY)), BODY),
    "a list of two lengths": post(b"Content-Length: 5, 6\r\n", BODY),
    "a sign": post(b"Content-Length: +5\r\n", b"hello"),
    "a negative length": post(b"Content-Length: -1\r\n", b""),
    "a hexadecimal length": post(b"Content-Length: 0x5\r\n", b"hello"),
    "a space in the length": post(b"Content-Length: 3 7\r\n", BODY),
    "an underscore in the length": post(b"Content-Length: 3_7\r\n", BODY),
    "an exponent": post(b"Content-Length: 5e0\r\n", b"hello"),
    "a fraction": post(b"Content-Length: 5.0\r\n", b"hello"),
    "an empty length": post(b"Content-Length:\r\n", b""),
    "wide digits": post(b"Content-Length: \xef\xbc\x95\r\n", b"hello"),
    "a length of twenty digits": post(b"Content-Length: 99999999999999999999\r\n", b""),
    "a length of 2^64 + 5": post(b"Content-Length: 18446744073709551621\r\n", b"hello"),
    "a quoted length": post(b'Content-Length: "5"\r\n', b"hello"),
    "a NUL after the length": post(b"Content-Length: 5\x00\r\n", b"hello"),
    "a form feed before the length": post(b"Content-Length: \x0c5\r\n", b"hello"),
    "a space before the colon": post(b"Content-Length : 5\r\n", b"hello"),
    "a tab before the colon": post(b"Content-Length\t: 5\r\n", b"hello"),
    "an underscore in the name": post(b"Content_Length: 5\r\n", b""),
    "a folded length": post(b"Content-Length:\r\n 5\r\n", b"hello"),
    "a length after a folded field": post(b"X: a\r\n b\r\nContent-Length: 5\r\n", b"hello"),
    "a length in a folded field": post(b"X: a\r\n\tContent-Length: 5\r\n", b""),
    "a length after a bare CR": post(b"X: a\rContent-Length: 5\r\n", b""),
    "a length after a bare LF": post(b"X: a\nContent-Length: 5\r\n", b"hello"),
    "a length that hides the next request": post(b"Content-Length: %d\r\n" % len(HIDDEN), HIDDEN),
    "a GET with a body": get(b"GET /healthz HTTP/1.1", b"Host: localhost\r\nContent-Length: 5\r\n", b"hello"),
}

CODINGS = {
    "a length and chunks": post(LENGTH + CHUNKS, LAST),
    "chunks and a length": post(CHUNKS + LENGTH, LAST),
    "chunks and no length": post(CHUNKS + b"Content-Length: 0\r\n", b"5\r\nhello\r\n" + LAST),
    "chunks in capitals": chunked(LAST, b"TRANSFER-ENCODING: CHUNKED\r\n"),
    "an unknown coding": chunked(LAST, b"Transfer-Encoding: xchunked\r\n"),
    "a coding with a suffix": chunked(LAST, b"Transfer-Encoding: chunkedx\r\n"),
    "identity": post(b"Transfer-Encoding: identity\r\n" + LENGTH, BODY),
    "chunks before identity": chunked(LAST, b"Transfer-Encoding: chunked, identity\r\n"),
    "identity before chunks": chunked(LAST, b"Transfer-Encoding: identity, chunked\r\n"),
    "zipped chunks": chunked(LAST, b"Transfer-Encoding: gzip, chunked\r\n"),
    "chunks twice": chunked(LAST, CHUNKS * 2),
    "chunks twice in a list": chunked(LAST, b"Transfer-Encoding: chunked, chunked\r\n"),
    "chunks and an unknown coding": chunked(LAST, CHUNKS + b"Transfer-Encoding: x\r\n"),
    "a tab before the coding": chunked(LAST, b"Transfer-Encoding:\tchunked\r\n"),
    "a vertical tab before the coding": chunked(LAST, b"Transfer-Encoding: \x0bchunked\r\n"),
    "a quoted coding": chunked(LAST, b'Transfer-Encoding: "chunked"\r\n'),
    "an empty coding": chunked(LAST, b"Transfer-Encoding:\r\n" + LENGTH),
    "a comma before the coding": chunked(LAST, b"Transfer-Encoding: , chunked\r\n"),
    "a parameter of the coding": chunked(LAST, b"Transfer-Encoding: chunked;q=1\r\n"),
    "a space before the coding's colon": chunked(LAST, b"Transfer-Encoding : chunked\r\n"),
    "a space before the coding's name": chunked(LAST, b"X: y\r\n Transfer-Encoding: chunked\r\n"),
    "an underscore in the coding's name": chunked(b"", b"Transfer_Encoding: chunked\r\n"),
    "a folded coding": chunked(LAST, b"Transfer-Encoding:\r\n chunked\r\n"),
    "a coding after a bare CR": chunked(LAST, b"X: a\rTransfer-Encoding: chunked\r\n" + LENGTH),
    "a coding after a bare LF": chunked(LAST, b"X: a\nTransfer-Encoding: chunked\r\n" + LENGTH),
    "a NUL in the coding": chunked(LAST, b"Transfer-Encoding: chunked\x00\r\n"),
    "chunks in HTTP/1.0": post(CHUNKS, LAST, b"POST /acp HTTP/1.0"),
    "an upgrade with a body": post(b"Connection: Upgrade\r\nUpgrade: h2c\r\n" + LENGTH, BODY),
    "an upgrade with chunks": chunked(LAST, b"Connection: Upgrade\r\nUpgrade: h2c\r\n" + CHUNKS),
    "a length that the connection drops": post(b"Connection: Content-Length\r\n" + LENGTH, BODY),
}

CHUNK_SIZES = {
    "an extension": chunked(b"5;a=b\r\nhello\r\n" + LAST),
    "a quoted extension": chunked(b'5;a="b;c"\r\nhello\r\n' + LAST),
    "a line feed in an extension": chunked(b"5;\nxx\r\nhello\r\n" + LAST),
    "a carriage return in an extension": chunked(b"5;a\rb\r\nhello\r\n" + LAST),
    "an extension without a name": chunked(b"5;\r\nhello\r\n" + LAST),
    "a tab before an extension": chunked(b"5\t;x\r\nhello\r\n" + LAST),
    "a space after the size": chunked(b"5 \r\nhello\r\n" + LAST),
    "a space before the size": chunked(b" 5\r\nhello\r\n" + LAST),
    "sizes that end in LF": chunked(b"5\nhello\n0\n\n"),
    "a size that ends in CR": chunked(b"5\rhello\r\n" + LAST),
    "a prefix of the size": chunked(b"0x5\r\nhello\r\n" + LAST),
    "a sign of the size": chunked(b"+5\r\nhello\r\n" + LAST),
    "a negative size": chunked(b"-1\r\nhello\r\n" + LAST),
    "an underscore in the size": chunked(b"0_5\r\nhello\r\n" + LAST),
    "a size of 2^68": chunked(b"100000000000000005\r\nhello\r\n" + LAST),
    "a size with zeros": chunked(b"0000000005\r\nhello\r\n" + LAST),
    "no size": chunked(b"\r\nhello\r\n" + LAST),
    "a chunk that is too long": chunked(b"4\r\nhello\r\n" + LAST),
    "a chunk that is too short": chunked(b"6\r\nhello\r\n" + LAST),
    "a chunk without a line break": chunked(b"5\r\nhello" + LAST),
    "a last chunk without its end": chunked(b"5\r\nhello\r\n0\r\n"),
    "a last chunk of several zeros": chunked(b"5\r\nhello\r\n000\r\n\r\n"),
}

TRAILERS = {
    "a trailer": chunked(b"0\r\nX: y\r\n\r\n"),
    "a length in a trailer": chunked(b"0\r\nContent-Length: 50\r\n\r\n"),
    "a coding in a trailer": chunked(b"0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "a host in a trailer": chunked(b"0\r\nHost: evil\r\n\r\n"),
    "a token in a trailer": chunked(b"0\r\nAuthorization: Bearer x\r\n\r\n"),
    "junk in a trailer": chunked(b"0\r\n\x00\xff no field\r\n\r\n"),
    "a trailer that ends in LF": chunked(b"0\r\nX: y\n\n"),
    "a folded trailer": chunked(b"0\r\nX: y\r\n z\r\n\r\n"),
}

LINES = {
    "ends in LF": b"GET /healthz HTTP/1.1\nHost: localhost\n\n" + HIDDEN,
    "an empty line that ends in LF": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n" + HIDDEN,
    "a field that ends in LF": get(b"GET /healthz HTTP/1.1", b"Host: localhost\nX: y\r\n"),
    "a bare CR in a field": get(b"GET /healthz HTTP/1.1", b"Host: localhost\rX: y\r\n"),
    "a NUL in a field": get(b"GET /healthz HTTP/1.1", b"Host: localhost\r\nX: a\0b\r\n"),
    "a field without a name": get(b"GET /healthz HTTP/1.1", b"Host: localhost\r\n: x\r\n"),
    "a field without a colon": get(b"GET /healthz HTTP/1.1", b"Host: localhost\r\nfoo\r\n"),
    "a name of other letters": get(b"GET /healthz HTTP/1.1", b"Host: localhost\r\n\xe4: x\r\n"),
    "a space before the first field": get(b"GET /healthz HTTP/1.1", b" Host: localhost\r\n"),
    "two hosts": get(b"GET /healthz HTTP/1.1", b"Host: localhost\r\nHost: evil\r\n"),
    "a list of hosts": get(b"GET /healthz HTTP/1.1", b"Host: localhost, evil\r\n"),
    "no host": get(b"GET /healthz HTTP/1.1", b""),
    "an empty host": get(b"GET /healthz HTTP/1.1", b"Host:\r\n"),
    "another host in the target": get(b"GET http://evil/healthz HTTP/1.1"),
    "another version": get(b"GET /healthz HTTP/1.2"),
    "HTTP/2.0": get(b"GET /healthz HTTP/2.0"),
    "HTTP/0.9": b"GET /healthz\r\n\r\n" + HIDDEN,
    "small letters": get(b"GET /healthz http/1.1"),
    "two spaces": get(b"GET  /healthz HTTP/1.1"),
    "tabs": get(b"GET\t/healthz\tHTTP/1.1"),
    "a space at the end": get(b"GET /healthz HTTP/1.1 "),
    "a space in the target": get(b"GET /he althz HTTP/1.1"),
    "a request line in the target": get(b"GET /x HTTP/1.1\rGET /healthz HTTP/1.1"),
    "other letters in the target": get(b"GET /\xff HTTP/1.1"),
    "a fragment": get(b"GET /healthz#x HTTP/1.1"),
    "a method of other letters": get(b"G\xc3T /healthz HTTP/1.1"),
    "an unknown method": get(b"BREW /healthz HTTP/1.1"),
    "a tunnel": get(b"CONNECT localhost:80 HTTP/1.1"),
    "empty lines before it": b"\r\n\r\n" + HIDDEN + HIDDEN,
    "a line feed before it": b"\n" + HIDDEN + HIDDEN,
    "a space before it": b" " + HIDDEN + HIDDEN,
    "the end of the connection": get(b"GET /healthz HTTP/1.1", b"Host: localhost\r\nConnection: keep-alive, CLOSE\r\n"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + HIDDEN,
    "a HEAD": get(b"HEAD /healthz HTTP/1.1"),
}

SHAPES = {
    f"{group}: {name}": data
    for group, shapes in {
        "length": LENGTHS,
        "coding": CODINGS,
        "chunk": CHUNK_SIZES,
        "trailer": TRAILERS,
        "line": LINES,
    }.items()
    for name, data in shapes.items()
}
