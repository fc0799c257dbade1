"""JSON that is hard to read, and bytes that are no JSON at all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.wire import (
    BINARY,
    CLOSE,
    INITIALIZE,
    PONG,
    Socket,
    connected,
    cut_off,
    junk,
    masked,
    post,
    push,
    read_some,
    response,
)
from tests.attack.bounds import BODY

SIZE = BODY * 9 // 10


def repeated(unit: bytes, size: int = SIZE) -> bytes:
    return unit * max(1, size // len(unit))


def member(value: bytes) -> bytes:
    """A request with this in a member that nobody knows."""
    return b'{"jsonrpc":"2.0","id":1,"method":"x","z":[' + value + b"1]}"


SHAPES: dict[str, Callable[[], bytes]] = {
    "nested arrays": lambda: member(repeated(b"[" * 900 + b"]" * 900 + b",")),
    "nested objects": lambda: member(repeated(b'{"a":' * 900 + b"1" + b"}" * 900 + b",")),
    "deep": lambda: b"[" * SIZE,
    "numbers": lambda: member(repeated(b"1,")),
    "long numbers": lambda: member(repeated(b"9" * 4_000 + b",")),
    "floats": lambda: member(repeated(b"1e9,")),
    "empty objects": lambda: member(repeated(b"{},")),
    "members": lambda: b'{"jsonrpc":"2.0","id":1,"method":"x",' + repeated(b'"":[],') + b'"y":1}',
    "batch": lambda: b"[" + repeated(b"1,") + b"1]",
    "escapes": lambda: member(b'"' + repeated(b"\\u0041") + b'",'),
    "surrogates": lambda: b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[' + repeated(b'"\\ud800",') + b"1]}}",
    "wrong at its end": lambda: b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[' + repeated(b"1,") + b"1]}",
    "parameters": lambda: (
        b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":['
        + repeated(b'{"name":"a","command":"/a","args":[],"env":[]},')
        + b"1]}}"
    ),
    "identifier": lambda: b'{"jsonrpc":"2.0","method":"x","id":"' + b"i" * SIZE + b'"}',
}


@attack
def odd_json(attacker: Attacker) -> None:
    """The largest message that is taken, in a shape that is costly to read: it must not freeze anything."""
    shapes = list(SHAPES)
    attacker.random.shuffle(shapes)
    for shape in shapes:
        if not attacker.going:
            return
        message = SHAPES[shape]()
        with cut_off():
            if attacker.random.random() < 0.5:
                connection = connected(attacker.port())
                push(attacker, connection, post(message))
                connection.settimeout(attacker.left + 5)
                status = response(connection)[0]
                if status >= 500:
                    attacker.wrong(f"{shape}: a POST was answered with {status}")
            else:
                socket = Socket(attacker.port("plain", "second", "command"))
                push(attacker, socket.connection, masked(message))
                push(attacker, socket.connection, masked(json.dumps(INITIALIZE).encode()))
                socket.connection.settimeout(attacker.left + 5)
                socket.frame()
        attacker.made()
        time.sleep(min(0.2, attacker.left))


@attack
def junk_bytes(attacker: Attacker) -> None:
    """Random bytes, frames that were broken at random, and frames out of order."""
    good = masked(json.dumps(INITIALIZE).encode())
    while attacker.going:
        with cut_off():
            match attacker.random.randrange(3):
                case 0:
                    connection = connected(attacker.port("plain", "second", "tls", "command"))
                    connection.sendall(junk(attacker, attacker.random.choice([1, 100, 100_000])))
                    read_some(connection, 65536, 0.2)
                case 1:
                    connection = Socket(attacker.port()).connection
                    broken = bytearray(good)
                    for _ in range(attacker.random.randint(1, 5)):
                        broken[attacker.random.randrange(len(broken))] = attacker.random.randrange(256)
                    connection.sendall(bytes(broken) + good)
                    read_some(connection, 65536, 0.2)
                case _:
                    connection = Socket(attacker.port()).connection
                    odd = [masked(junk(attacker, 50), op) for op in (0, BINARY, 3, CLOSE, PONG, 15)]
                    attacker.random.shuffle(odd)
                    connection.sendall(b"".join(odd))
                    read_some(connection, 65536, 0.2)
            connection.close()
        attacker.made()
