"""Many of everything: connections, sessions, streams, processes, requests that are never answered."""

from __future__ import annotations

import json
import time

from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.wire import (
    INITIALIZE,
    Socket,
    Streamable,
    connected,
    cut_off,
    leave,
    masked,
    post,
    prompt,
    read_some,
    response,
)
from tests.attack.bounds import BODY

PROCESSES = 8
"""Connections to the server of commands at the same time: each is a process of its own."""


@attack
def many_connections(attacker: Attacker) -> None:
    """Connections of the protocol that are opened and left at once: by a reset, by DELETE, or by nothing at all."""
    while attacker.going:
        with cut_off():
            if attacker.random.random() < 0.5:
                socket = Socket(attacker.port()).initialized()
                if attacker.random.random() < 0.5:
                    socket.session()
                leave(attacker, [socket.connection])
            else:
                client = Streamable(attacker.port())
                if attacker.random.random() < 0.5:
                    client.delete()
                leave(attacker, [client.connection])
        attacker.made()
        time.sleep(0.01)


@attack
def many_sessions(attacker: Attacker) -> None:
    """More sessions on one connection than there may be, and more streams."""
    while attacker.going:
        with cut_off():
            socket = Socket(attacker.port()).initialized()
            for number in range(1, 80):
                socket.session(number)
                attacker.made()
                if not attacker.going:
                    break
        leave(attacker, [socket.connection])
        streams = []
        with cut_off():
            client = Streamable(attacker.port())
            for number in range(80):
                streams.append(client.stream(f"session {number}"))
                attacker.made()
                if not attacker.going:
                    break
            read_some(streams[0], 100, 0.1)
        leave(attacker, streams)


@attack
def unanswered_requests(attacker: Attacker) -> None:
    """Prompts that the agent never answers, in one session and in many, until the attacker leaves."""
    while attacker.going:
        with cut_off():
            socket = Socket(attacker.port()).initialized()
            sessions = [socket.session(number) for number in range(1, attacker.random.choice([2, 20]))]
            for number in range(2_000):
                session = attacker.random.choice(sessions)
                socket.send(prompt(session, f"wait {number}", 1_000 + number))
                attacker.made()
                if not attacker.going:
                    break
        leave(attacker, [socket.connection])


@attack
def processes(attacker: Attacker) -> None:
    """Starts agents that are processes, and leaves them alone, hangs up, or lets them die in the middle of a turn."""
    while attacker.going:
        sockets = []
        for _ in range(PROCESSES // 2):
            with cut_off():
                socket = Socket(attacker.port("command"))
                sockets.append(socket)
                match attacker.random.randrange(4):
                    case 0:
                        socket.initialized()
                    case 1:
                        socket.send(INITIALIZE)
                    case 2:
                        session = socket.initialized().session()
                        socket.send(prompt(session, "die", 2))
                        socket.answer_to(2)
                    case _:
                        connection = connected(attacker.port("command"))
                        connection.sendall(post(json.dumps(INITIALIZE).encode()))
                        leave(attacker, [connection])
            attacker.made()
        leave(attacker, [socket.connection for socket in sockets])


@attack
def waiting_bodies(attacker: Attacker) -> None:
    """Large messages for an agent that reads nothing: they wait in the server, each with its body."""
    body = json.dumps({"jsonrpc": "2.0", "method": "_x", "params": {"a": "y" * (BODY // 2)}}).encode()
    connections = []
    with cut_off():
        client = Streamable(attacker.port("command"))
        session = client.session(stream := client.stream())
        connections += [client.connection, stream]
        client.post(prompt(session, f"deaf {attacker.left + 2}", 2), session)
        for _ in range(100):
            connections.append(connected(client.port))
            connections[-1].sendall(post(body, f"Acp-Connection-Id: {client.id}"))
            attacker.sent += len(body)
            attacker.made()
            if not attacker.going:
                break
        time.sleep(attacker.left)
    leave(attacker, connections)


@attack
def frames_for_a_deaf_agent(attacker: Attacker) -> None:
    """The same over a WebSocket, which reads no further once enough waits."""
    message = masked(json.dumps({"jsonrpc": "2.0", "method": "_x", "params": {"a": "y" * 500_000}}).encode())
    with cut_off():
        socket = Socket(attacker.port("command")).initialized()
        socket.send(prompt(socket.session(), f"deaf {attacker.left + 2}", 2))
        socket.connection.settimeout(1.0)
        while attacker.going:
            socket.connection.sendall(message)
            attacker.sent += len(message)
            attacker.made()
    time.sleep(attacker.left)
    leave(attacker, [socket.connection])


@attack
def bad_requests(attacker: Attacker) -> None:
    """Requests with parameters of the wrong kind: each has to be answered with an error of its own."""
    methods = ["session/new", "session/load", "session/prompt", "session/list", "session/set_mode", "authenticate"]
    values = [None, [], {}, "x", 1, {"sessionId": "\ud800"}, {"sessionId": {}}, {"cwd": "relative"}, {"cwd": "/\0"}]
    while attacker.going:
        with cut_off():
            socket = Socket(attacker.port()).initialized()
            for number in range(1, 100):
                params = attacker.random.choice(values)
                message = {"jsonrpc": "2.0", "id": number, "method": attacker.random.choice(methods), "params": params}
                socket.send(message)
                error = socket.answer_to(number).get("error", {})
                if error.get("code") == -32603:
                    attacker.wrong(f"{message} was answered with an internal error: {error}")
                attacker.made()
                if not attacker.going:
                    break
            socket.connection.close()


@attack
def odd_posts(attacker: Attacker) -> None:
    """Requests to the endpoint with the wrong method, type, connection or session."""
    fields = [
        "Acp-Connection-Id: nobody",
        "Acp-Session-Id: none",
        "Accept: text/html",
        "Last-Event-ID: -1",
        "Origin: null",
    ]
    while attacker.going:
        with cut_off():
            connection = connected(attacker.port())
            for _ in range(50):
                chosen = attacker.random.sample(fields, attacker.random.randint(0, 3))
                body = attacker.random.choice([b"", b"{}", b"[]", b"null", b'"', b"\xff"])
                connection.sendall(post(body, *chosen))
                if (status := response(connection)[0]) >= 500:
                    attacker.wrong(f"a POST of {body!r} with {chosen} was answered with {status}")
                attacker.made()
                if not attacker.going:
                    break
            connection.close()
