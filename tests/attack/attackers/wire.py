"""Bytes on a wire: sockets, WebSocket frames and HTTP/1.1 requests, right or wrong as the attacker likes."""

from __future__ import annotations

import json
import select
import socket
import ssl
import struct
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tests.attack.attackers import WAIT, Attacker

SMALL = 4096
"""The receive buffer of an attacker who does not read, in bytes."""

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": 1, "clientCapabilities": {}},
}
NEW_SESSION = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}


def connected(port: int, *, tls: bool = False, buffer: int | None = None) -> socket.socket:
    raw = socket.socket()
    if buffer is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    raw.settimeout(10.0)
    raw.connect(("127.0.0.1", port))
    if not tls:
        return raw
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(raw)


@contextmanager
def cut_off():
    """Being refused, cut or left waiting is no surprise to an attacker."""
    with suppress(OSError, EOFError, ssl.SSLError, IndexError, KeyError, ValueError):
        yield


def reset(connection: socket.socket) -> None:
    """Leave without a goodbye: the other end sees a reset."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def leave(attacker: Attacker, connections: Sequence[socket.socket]) -> None:
    """Leave in one of the two ways."""
    for connection in connections:
        if attacker.random.random() < 0.5:
            reset(connection)
        else:
            connection.close()


def push(attacker: Attacker, connection: socket.socket, data: bytes) -> bool:
    """Send what the other end takes; False once it has taken nothing for a while."""
    connection.setblocking(False)
    rest = memoryview(data)
    while rest and attacker.going:
        try:
            sent = connection.send(rest)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            if not select.select([], [connection], [], min(WAIT, attacker.left))[1]:
                return False
        else:
            attacker.sent += sent
            rest = rest[sent:]
    return not rest


def read_some(connection: socket.socket, most: int, wait: float = WAIT) -> bytes:
    """What has come, or comes soon; EOFError once the other end has closed."""
    connection.settimeout(wait)
    try:
        data = connection.recv(most)
    except TimeoutError:
        return b""
    if not data:
        raise EOFError
    return data


def masked(payload: bytes, op: int = TEXT, *, final: bool = True) -> bytes:
    """A WebSocket frame of a client, masked with zeros."""
    head = bytes([(0x80 if final else 0) | op])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 65536:
        head += bytes([0x80 | 126]) + struct.pack(">H", len(payload))
    else:
        head += bytes([0x80 | 127]) + struct.pack(">Q", len(payload))
    return head + b"\0\0\0\0" + payload


def announced(length: int, payload: bytes) -> bytes:
    """The beginning of a frame that promises more than it brings."""
    return b"\x81\xff" + struct.pack(">Q", length) + b"\0\0\0\0" + payload


class Socket:
    """A WebSocket connection."""

    def __init__(self, port: int, *, tls: bool = False, buffer: int | None = None, token: str = "") -> None:
        self.connection = connected(port, tls=tls, buffer=buffer)
        self._received = b""
        upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        access = [f"Authorization: Bearer {token}"] if token else []
        self.connection.sendall(head("GET", *upgrade, key, *access))
        while b"\r\n\r\n" not in self._received:
            self._more()
        _, _, self._received = self._received.partition(b"\r\n\r\n")

    def _more(self) -> None:
        if not (data := self.connection.recv(65536)):
            raise EOFError
        self._received += data

    def send(self, message: Any) -> None:
        self.connection.sendall(masked(json.dumps(message).encode()))

    def frame(self) -> tuple[int, bytes]:
        """The next frame: its operation and its payload."""
        while True:
            if len(self._received) >= 2:
                length, at = self._received[1] & 127, 2
                if length == 126 and len(self._received) >= 4:
                    length, at = struct.unpack(">H", self._received[2:4])[0], 4
                elif length == 127 and len(self._received) >= 10:
                    length, at = struct.unpack(">Q", self._received[2:10])[0], 10
                if (length < 126 or at > 2) and len(self._received) >= at + length:
                    op, payload = self._received[0] & 15, self._received[at : at + length]
                    self._received = self._received[at + length :]
                    return op, payload
            self._more()

    def message(self) -> dict[str, Any]:
        """The next message; EOFError if the other end closes instead."""
        while True:
            op, payload = self.frame()
            if op == TEXT:
                return json.loads(payload)
            if op == CLOSE:
                raise EOFError

    def answer_to(self, number: int) -> dict[str, Any]:
        while True:
            message = self.message()
            if message.get("id") == number and "method" not in message:
                return message

    def initialized(self) -> Socket:
        self.send(INITIALIZE)
        self.answer_to(0)
        return self

    def session(self, number: int = 1) -> str:
        """A new session."""
        self.send({**NEW_SESSION, "id": number})
        return self.answer_to(number)["result"]["sessionId"]


def head(method: str, *fields: str, target: str = "/acp") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode()


def post(body: bytes, *fields: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return head("POST", "Content-Type: application/json", f"Content-Length: {size}", *fields) + body


def response(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The next response with a Content-Length, and none of what comes after it."""
    received = b""
    while b"\r\n\r\n" not in received:
        if not (data := connection.recv(1)):
            raise EOFError
        received += data
    first, *lines = received.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = b""
    while len(body) < int(fields.get("content-length", "0")):
        if not (data := connection.recv(int(fields["content-length"]) - len(body))):
            raise EOFError
        body += data
    return int(first.split()[1]), fields, body


class Streamable:
    """A connection of the protocol over HTTP/1.1: posts on one socket, streams on others."""

    def __init__(self, port: int, *, tls: bool = False) -> None:
        self.port = port
        self._tls = tls
        self.connection = connected(port, tls=tls)
        self.connection.sendall(post(json.dumps(INITIALIZE).encode()))
        self.id = response(self.connection)[1]["acp-connection-id"]

    def post(self, message: Any, session: str | None = None) -> int:
        """The status of the answer to a message."""
        fields = [f"Acp-Connection-Id: {self.id}"] + ([f"Acp-Session-Id: {session}"] if session else [])
        self.connection.sendall(post(json.dumps(message).encode(), *fields))
        return response(self.connection)[0]

    def stream(self, session: str | None = None, buffer: int | None = None) -> socket.socket:
        """An event stream, of which nothing was read."""
        opened = connected(self.port, tls=self._tls, buffer=buffer)
        fields = ["Accept: text/event-stream", f"Acp-Connection-Id: {self.id}"]
        opened.sendall(head("GET", *fields, *([f"Acp-Session-Id: {session}"] if session else [])))
        return opened

    def session(self, stream: socket.socket, number: int = 1) -> str:
        """A new session, whose id comes on the stream of the connection."""
        self.post({**NEW_SESSION, "id": number})
        received = b""
        while b'"sessionId":"' not in received:
            received += read_some(stream, 65536, 10.0) or b""
        return received.split(b'"sessionId":"')[1].split(b'"')[0].decode()

    def delete(self) -> None:
        self.connection.sendall(head("DELETE", f"Acp-Connection-Id: {self.id}"))
        response(self.connection)


def prompt(session: str, text: str, number: int) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "session/prompt",
        "params": {"sessionId": session, "prompt": content},
    }


def unknown(number: int, size: int) -> bytes:
    """A request of a method that does not exist: its answer is as long as its name."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b"}' % (number, b"m" * size)


def junk(attacker: Attacker, size: int) -> bytes:
    return attacker.random.randbytes(size)
