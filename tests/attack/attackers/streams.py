"""Readers that are slow, that stop, or that leave in the middle of a turn."""

from __future__ import annotations

import time

from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.wire import SMALL, Socket, Streamable, cut_off, head, leave, prompt, read_some


@attack
def slow_readers(attacker: Attacker) -> None:
    """Turns with more updates than the attacker reads: a few bytes at a time, or none."""
    readers = []
    with cut_off():
        for number in range(4):
            if attacker.random.random() < 0.5:
                socket = Socket(attacker.port("plain", "second", "command"), buffer=SMALL).initialized()
                socket.send(prompt(socket.session(), "count slow 100000 1000", 2))
                readers.append(socket.connection)
            else:
                client = Streamable(attacker.port())
                session = client.session(stream := client.stream())
                readers += [client.connection, stream, client.stream(session, buffer=SMALL)]
                client.post(prompt(session, "count slow 100000 1000", number + 2), session)
            attacker.made()
    reads = attacker.random.random() < 0.5
    while attacker.going:
        with cut_off():
            if reads:
                read_some(attacker.random.choice(readers), 1_000, 0.05)
                attacker.made()
        time.sleep(0.05)
    leave(attacker, readers)


@attack
def leaving_in_the_middle(attacker: Attacker) -> None:
    """Begins a turn, reads some of it, and leaves: by a reset, by DELETE, or with its stream only."""
    while attacker.going:
        with cut_off():
            if attacker.random.random() < 0.5:
                socket = Socket(attacker.port("plain", "second")).initialized()
                socket.send(prompt(socket.session(), "count left 5000 500", 2))
                socket.frame()
                leave(attacker, [socket.connection])
            else:
                client = Streamable(attacker.port())
                session = client.session(stream := client.stream())
                reading = client.stream(session)
                client.post(prompt(session, "count left 5000 500", 2), session)
                read_some(reading, 5_000)
                leave(attacker, [reading, stream])
                if attacker.random.random() < 0.5:
                    client.delete()
                leave(attacker, [client.connection])
        attacker.made()


@attack
def resumed_streams(attacker: Attacker) -> None:
    """Opens one stream again and again, each time with another place to resume from."""
    while attacker.going:
        with cut_off():
            client = Streamable(attacker.port())
            session = client.session(first := client.stream())
            client.post(prompt(session, "count resumed 500 200", 2), session)
            for _ in range(20):
                again = client.stream(session)
                again.close()
                again = client.stream(session)
                again.sendall(head("GET", f"Last-Event-ID: {attacker.random.choice(['0', '7', '-1', '9' * 30, 'x'])}"))
                read_some(again, 65536, 0.05)
                leave(attacker, [again])
                attacker.made()
                if not attacker.going:
                    break
            leave(attacker, [first, client.connection])
