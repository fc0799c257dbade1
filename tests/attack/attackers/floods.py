"""Questions whose answers nobody reads, and pings without end."""

from __future__ import annotations

import json
import time

from tests.attack.attackers import FLOODING, WAIT, Attacker, attack
from tests.attack.attackers.wire import (
    INITIALIZE,
    PING,
    SMALL,
    Socket,
    Streamable,
    connected,
    cut_off,
    head,
    masked,
    post,
    push,
    read_some,
    response,
    unknown,
)

TRICKLING = 4.0
"""Seconds more for a flood that reads a little, and so never ends by itself."""

LONG = 20_000
"""Characters of a method's name: as many come back."""


@attack
def unread_answers_on_a_websocket(attacker: Attacker) -> None:
    """Asks, and reads nothing or a little now and then."""
    with cut_off():
        socket = Socket(attacker.port("plain", "second", "command"), buffer=SMALL).initialized()
        trickle = attacker.random.random() < 0.5
        number = 1
        attacker.go_on(TRICKLING if trickle else FLOODING)
        while attacker.going:
            frames = b"".join(masked(unknown(number + i, LONG)) for i in range(20))
            if not push(attacker, socket.connection, frames) and not trickle:
                return stay(attacker)
            if trickle:
                read_some(socket.connection, 32 * 1024)
            number += 20
            attacker.made(20)
    return None


@attack
def unread_answers_over_http(attacker: Attacker) -> None:
    """Posts requests, and never opens the stream on which the answers would come."""
    attacker.go_on()
    with cut_off():
        client = Streamable(attacker.port())
        number = 0
        while attacker.going and response_to_a_long_name(attacker, client, number := number + 1) == 202:
            attacker.made()
        if attacker.random.random() < 0.5:
            client.delete()
    client.connection.close()


@attack
def unread_pings(attacker: Attacker) -> None:
    """Pings, with messages in between or without, and reads nothing or a little now and then."""
    with cut_off():
        socket = Socket(attacker.port(), buffer=SMALL)
        trickle, talk = attacker.random.random() < 0.5, attacker.random.random() < 0.5
        pings = masked(b"p" * 125, PING) * 5_000
        attacker.go_on(TRICKLING if trickle else FLOODING)
        while attacker.going:
            if not push(attacker, socket.connection, pings) and not trickle:
                return stay(attacker)
            if talk:
                push(attacker, socket.connection, masked(json.dumps(INITIALIZE).encode()))
            if trickle:
                read_some(socket.connection, 32 * 1024)
            attacker.made(5_000)
    return None


@attack
def pipelined_requests(attacker: Attacker) -> None:
    """Requests of HTTP/1.1 one after the other, without a look at the answers; over TLS as well."""
    with cut_off():
        tls = attacker.random.random() < 0.5
        connection = connected(attacker.port("tls") if tls else attacker.port(), tls=tls, buffer=SMALL)
        requests = head("GET", target="/x") * 1_000
        attacker.go_on()
        while attacker.going:
            if not push(attacker, connection, requests):
                return stay(attacker)
            attacker.made(1_000)
    return None


@attack
def requests_before_initialize(attacker: Attacker) -> None:
    """Everything that may only come later, again and again, and `initialize` many times."""
    while attacker.going:
        with cut_off():
            socket = Socket(attacker.port())
            for number in range(200):
                method = attacker.random.choice(
                    ["session/new", "session/prompt", "session/load", "initialize", "x" * 5000]
                )
                socket.send({"jsonrpc": "2.0", "id": number, "method": method, "params": {}})
                attacker.made()
            for _ in range(attacker.random.choice([0, 100])):
                socket.message()
        socket.connection.close()


def response_to_a_long_name(attacker: Attacker, client: Streamable, number: int) -> int:
    body = unknown(number, 500_000)
    client.connection.sendall(post(body, f"Acp-Connection-Id: {client.id}"))
    client.connection.settimeout(2 * WAIT)
    attacker.sent += len(body)
    return response(client.connection)[0]


def stay(attacker: Attacker) -> None:
    """Hold what is open until the time is up: the other end no longer reads, which is right."""
    attacker.made()
    time.sleep(min(attacker.left, 3 * WAIT))
