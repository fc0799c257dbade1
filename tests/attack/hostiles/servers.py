"""A hostile server of HTTP and WebSocket. It says its port, and serves each connection in a thread.

python -m tests.attack.hostiles.servers KIND SECONDS
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from tests.attack.attackers.payloads import SHAPES
from tests.attack.hostiles import LATEST, Allowance
from tests.attack.hostiles.agents import text, update

ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
LARGE = 500_000

INITIALIZED = {"protocolVersion": 1, "agentCapabilities": {}}


def framed(payload: bytes, op: int = 1, *, final: bool = True) -> bytes:
    """A WebSocket frame of a server."""
    first = bytes([(0x80 if final else 0) | op])
    if len(payload) < 126:
        return first + bytes([len(payload)]) + payload
    if len(payload) < 65536:
        return first + b"\x7e" + struct.pack(">H", len(payload)) + payload
    return first + b"\x7f" + struct.pack(">Q", len(payload)) + payload


def said(characters: str) -> bytes:
    return json.dumps(update(text(characters))).encode()


def without_the_first() -> Iterator[bytes]:
    """Numbered events of which the first never comes."""
    number = 1
    while True:
        number += 1
        yield b"id: %d\ndata: %b\n\n" % (number, said("x" * LARGE))


def endless_event() -> Iterator[bytes]:
    while True:
        yield b"data: " + b"x" * LARGE + b"\n"


def comments() -> Iterator[bytes]:
    while True:
        yield b": x\n" * 10_000


def pings() -> Iterator[bytes]:
    while True:
        yield framed(b"p" * 125, 9) * 1_000


def fragments() -> Iterator[bytes]:
    yield framed(b"a", final=False)
    while True:
        yield framed(b"a", 0, final=False) * 20_000


def flood() -> Iterator[bytes]:
    while True:
        yield framed(said("x" * 1_000)) * 100


def half() -> Iterator[bytes]:
    yield b"\x81\x7f" + struct.pack(">Q", 60 << 20)
    while True:
        yield b"a" * LARGE


def requests() -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        yield framed(json.dumps({"jsonrpc": "2.0", "id": number, "method": "m" * 200_000, "params": {}}).encode())


def junk() -> Iterator[bytes]:
    while True:
        yield random.randbytes(10_000)


HTTP: dict[str, Callable[[], Iterator[bytes]]] = {
    "http: without the first": without_the_first,
    "http: an endless event": endless_event,
    "http: comments": comments,
    "http: junk": junk,
}
"""What comes on event streams."""

WEBSOCKET: dict[str, Callable[[], Iterator[bytes]]] = {
    "ws: pings": pings,
    "ws: fragments": fragments,
    "ws: updates": flood,
    "ws: half a message": half,
    "ws: unread answers": requests,
    "ws: junk": junk,
    "ws: nested": lambda: iter([framed(SHAPES["nested arrays"]())]),
}
"""What comes once a session is prompted."""

ANSWERS: dict[str, Callable[[], Iterator[bytes]]] = {
    "silent": lambda: iter(()),
    "an endless head": lambda: iter([b"HTTP/1.1 200 OK\r\n", *[b"X: " + b"a" * 4_000 + b"\r\n"] * 20_000]),
    "an endless body": lambda: iter(
        [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"]
        + [b"100000\r\n" + b"a" * 0x100000 + b"\r\n"] * 200
    ),
    "bytes without meaning": junk,
}
"""What is answered to the first request, whatever it is."""

KINDS = (*HTTP, *WEBSOCKET, *(f"{scheme}: {kind}" for scheme in ("http", "ws") for kind in ANSWERS))


class Connection(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        self._received = b""
        with suppress(OSError, EOFError, ValueError, AttributeError):
            if (made := ANSWERS.get(self.server.kind.partition(": ")[2])) is not None:
                self._head()
                self._send(made())
                time.sleep(self.server.allowance.left)
            elif self.server.kind in HTTP:
                self._serve_http()
            else:
                self._serve_websocket()

    def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            if not (data := self.request.recv(65536)):
                raise EOFError
            self._received += data
        data, self._received = self._received[:size], self._received[size:]
        return data

    def _head(self) -> bytes:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        return head

    def _send(self, made: Iterator[bytes]) -> None:
        for data in made:
            self.request.sendall(data)
            if not self.server.allowance.take(len(data)):
                return

    def _serve_http(self) -> None:
        while True:
            head = self._head()
            if head.startswith(b"GET"):
                self.request.sendall(EVENTS)
                self._send(HTTP[self.server.kind]())
                return
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            message: Any = json.loads(self._read(int(length[1]))) if length and int(length[1]) else {}
            if message.get("method") == "initialize":
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": INITIALIZED}).encode()
                fields = b"Acp-Connection-Id: abc\r\nAccord-Numbered: connection\r\nContent-Type: application/json\r\n"
                self.request.sendall(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (fields, len(body), body))
            else:
                self.request.sendall(ACCEPTED)

    def _serve_websocket(self) -> None:
        key = re.search(rb"(?i)sec-websocket-key: *(\S+)", self._head())[1]  # pyright: ignore[reportOptionalSubscript]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept
        self.request.sendall(b"HTTP/1.1 101 Switching Protocols\r\n" + upgrade + b"\r\n\r\n")
        while True:
            message = self._message()
            match message.get("method"):
                case "initialize":
                    self._answer(message, INITIALIZED)
                case "session/new":
                    self._answer(message, {"sessionId": "s"})
                case "session/prompt":
                    self._send(WEBSOCKET[self.server.kind]())
                    time.sleep(self.server.allowance.left)
                    return

    def _message(self) -> dict[str, Any]:
        first, second = self._read(2)
        length = second & 127
        if length == 126:
            length = struct.unpack(">H", self._read(2))[0]
        mask = self._read(4)
        payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self._read(length)))
        return json.loads(payload) if first & 15 == 1 else {}

    def _answer(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.request.sendall(framed(json.dumps(answer).encode()))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, kind: str, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.kind = kind
        self.allowance = Allowance(seconds)


if __name__ == "__main__":
    kind, seconds = sys.argv[1:]
    threading.Timer(float(seconds) + LATEST, os._exit, [0]).start()
    server = Server(kind, float(seconds))
    print(server.server_address[1], flush=True)
    server.serve_forever()
