"""What begins and never ends: messages, bodies, heads, handshakes, sockets that are silent."""

from __future__ import annotations

import time

from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.wire import Socket, announced, connected, cut_off, head, junk, leave, masked, post
from tests.attack.bounds import BODY

HALF = BODY * 15 // 16


@attack
def half_messages(attacker: Attacker) -> None:
    """Most of the largest message on each of a few WebSockets, which then leave; again and again."""
    while attacker.going:
        sockets = []
        with cut_off():
            for _ in range(4):
                sockets.append(Socket(attacker.port("plain", "second", "command")))
                sockets[-1].connection.sendall(announced(BODY, b"a" * HALF))
                attacker.sent += HALF
                attacker.made()
        leave(attacker, [socket.connection for socket in sockets])


@attack
def half_bodies(attacker: Attacker) -> None:
    """Most of the largest body of a POST, which is then given up."""
    while attacker.going:
        connections = []
        with cut_off():
            for _ in range(4):
                connections.append(connected(attacker.port("plain", "second", "command")))
                connections[-1].sendall(post(b"a" * HALF, length=BODY))
                attacker.sent += HALF
                attacker.made()
        leave(attacker, connections)


@attack
def silent_sockets(attacker: Attacker) -> None:
    """Connections that say nothing, or the first half of something."""
    beginnings = [b"", b"G", b"GET /acp HT", b"PRI * HTTP/2.0\r\n\r\nSM", head("GET")[:-2], post(b"", length=100)]
    hold(attacker, "plain", "second", most=150, beginnings=beginnings)


@attack
def no_handshake(attacker: Attacker) -> None:
    """Connections to the TLS port that never begin, or never end, the handshake."""
    beginnings = [b"", b"\x16\x03\x01\x02\x00\x01", b"\x16\x03\x01\xff\xff" + b"\0" * 5_000, junk(attacker, 1_000)]
    hold(attacker, "tls", most=300, beginnings=beginnings)


@attack
def one_byte_at_a_time(attacker: Attacker) -> None:
    """One-byte fragments of one message, and then one-byte segments of a head."""
    with cut_off():
        socket = Socket(attacker.port("plain", "second", "command"))
        socket.connection.sendall(masked(b"a", final=False))
        fragments = masked(b"a", op=0, final=False) * 20_000
        while attacker.going and attacker.sent < BODY * 8:
            socket.connection.sendall(fragments)
            attacker.sent += len(fragments)
            attacker.made(20_000)
    with cut_off():
        connection = connected(attacker.port())
        for byte in head("GET", "X-Slow: " + "y" * 200):
            connection.sendall(bytes([byte]))
            time.sleep(0.01)
            attacker.made()
            if not attacker.going:
                break


def hold(attacker: Attacker, *servers: str, most: int, beginnings: list[bytes]) -> None:
    """Open so many connections, begin something on each, and hold them until the time is up."""
    connections = []
    with cut_off():
        while attacker.going and len(connections) < most:
            connections.append(connected(attacker.port(*servers)))
            connections[-1].sendall(attacker.random.choice(beginnings))
            attacker.made()
    time.sleep(attacker.left)
    leave(attacker, connections)
