"""Requests of HTTP/1.1 that two readers could read differently, and requests that are too much."""

from __future__ import annotations

import re

from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.wire import connected, cut_off, head, read_some

BODY = b'{"jsonrpc":"2.0","id":0,"method":"x"}'
LENGTH = b"%d" % len(BODY)
SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""Hidden in what one of two readers takes for a body. Its answer is a 200, which nothing else here is."""


def shaped(fields: bytes, body: bytes = BODY) -> bytes:
    return b"POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + fields + b"\r\n" + body


AMBIGUOUS = {
    "length and chunks": shaped(
        b"Content-Length: " + LENGTH + b"\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + SMUGGLED
    ),
    "two lengths": shaped(b"Content-Length: " + LENGTH + b"\r\nContent-Length: 5\r\n", BODY + SMUGGLED),
    "a space before the colon": shaped(b"Content-Length : 5\r\n", b"hello" + SMUGGLED),
    "an unknown coding": shaped(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + SMUGGLED),
    "a coding that is not last": shaped(b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n" + SMUGGLED),
    "a folded field": shaped(b"Content-Length:\r\n 5\r\n", b"hello" + SMUGGLED),
    "a length with a sign": shaped(b"Content-Length: +5\r\n", b"hello" + SMUGGLED),
    "a hexadecimal length": shaped(b"Content-Length: 0x5\r\n", b"hello" + SMUGGLED),
    "a chunk size with a sign": shaped(b"Transfer-Encoding: chunked\r\n", b"+5\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "a chunk that is too long": shaped(b"Transfer-Encoding: chunked\r\n", b"4\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "lines without a carriage return": b"GET /acp HTTP/1.1\nHost: localhost\n\n" + SMUGGLED,
    "a line feed in a field": shaped(b"X: a\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"hello" + SMUGGLED),
    "a NUL in a field": shaped(b"X: a\0b\r\nContent-Length: 5\r\n", b"hello" + SMUGGLED),
    "two hosts": b"GET /acp HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n" + SMUGGLED,
    "junk in the trailers": shaped(b"Transfer-Encoding: chunked\r\n", b"0\r\n\x00\xff no field\r\n\r\n" + SMUGGLED),
}

TOO_MUCH = {
    "fields": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"a%d: b\r\n" % i for i in range(10_000)),
    "a field": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000,
    "a target": b"GET /" + b"a" * 1_000_000,
    "trailers": shaped(b"Transfer-Encoding: chunked\r\n", b"0\r\n" + b"X: y\r\n" * 100_000),
    "a chunk's extension": shaped(b"Transfer-Encoding: chunked\r\n", b"5;" + b"a" * 1_000_000),
    "empty chunks of one byte": shaped(b"Transfer-Encoding: chunked\r\n", b"1\r\n \r\n" * 200_000),
}


@attack
def smuggling(attacker: Attacker) -> None:
    """Each shape on a connection of its own: a request that is hidden in it must not be answered."""
    while attacker.going:
        for name, request in AMBIGUOUS.items():
            if re.search(rb"HTTP/1.1 200 ", answers(attacker, request)):
                attacker.wrong(f"a request that was hidden behind {name} was answered")
            if not attacker.going:
                return


@attack
def oversized_requests(attacker: Attacker) -> None:
    while attacker.going:
        name = attacker.random.choice(list(TOO_MUCH))
        if re.search(rb"HTTP/1.1 (200|5\d\d) ", answers(attacker, TOO_MUCH[name])):
            attacker.wrong(f"too much of {name} was taken")
        answers(attacker, head("GET", *(f"Accept: {'x' * 4_000}" for _ in range(10)), target="/acp"))


def answers(attacker: Attacker, request: bytes) -> bytes:
    """All that comes back until the other end closes, or is silent."""
    received = b""
    with cut_off():
        connection = connected(attacker.port())
        try:
            with cut_off():
                connection.sendall(request)
            attacker.sent += len(request)
            while data := read_some(connection, 65536, 0.3):
                received += data
        finally:
            connection.close()
    attacker.made()
    return received
