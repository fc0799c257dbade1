"""Our server beside others under floods of HTTP/2 frames: who ends the connection, and what it has cost by then.

    pip install granian hypercorn
    python -m benchmarks.http_floods

Each flood is a connection of its own, of at most `FRAMES` frames of 9 to 60 bytes, to a server on this machine. The
frames are those of packages/accord/tests/http/test_http2.py. docs/design/http-libraries.md holds a recorded run.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from benchmarks.http_servers import SERVERS, ask_over_http2, connected, processor_time, running

FRAMES = 20_000
BLOCK = 100
"""Frames of one write, after which the answers are read."""

GOAWAY = 7
HEADER = struct.Struct(">BHBBI")
FIELDS = [(":method", "GET"), (":scheme", "http"), (":authority", "127.0.0.1"), (":path", "/healthz")]


def reset(http: H2Connection) -> None:
    http.send_headers(number := http.get_next_available_stream_id(), FIELDS, end_stream=True)
    http.reset_stream(number, ErrorCodes.CANCEL)


def frame(kind: int, stream: int = 0, payload: bytes = b"") -> bytes:
    return HEADER.pack(len(payload) >> 16, len(payload) & 0xFFFF, kind, 0, stream) + payload


def block_of(flood: str, http: H2Connection, *, is_first: bool) -> bytes:
    """The next frames of this flood."""
    if flood == "CONTINUATION":
        return (frame(1, 1, b"\x82") if is_first else b"") + frame(9, 1) * BLOCK
    each: dict[str, Callable[[], None]] = {
        "rapid reset": lambda: reset(http),
        "PING": lambda: http.ping(b"12345678"),
        "SETTINGS": lambda: http.update_settings({SettingCodes.MAX_HEADER_LIST_SIZE: 5000}),
    }
    for _ in range(BLOCK):
        each[flood]()
    return http.data_to_send()


FLOODS = ("rapid reset", "CONTINUATION", "PING", "SETTINGS")


class Answers:
    """What a server sends, as far as its frames show it."""

    def __init__(self) -> None:
        self.goodbye: int | None = None
        """The error code of its GOAWAY."""
        self._rest = b""

    def add(self, data: bytes) -> None:
        self._rest += data
        while len(self._rest) >= 9:
            high, low, kind, _, _ = HEADER.unpack_from(self._rest)
            size = 9 + (high << 16 | low)
            if len(self._rest) < size:
                return
            if kind == GOAWAY:
                self.goodbye = struct.unpack_from(">I", self._rest, 13)[0]
            self._rest = self._rest[size:]


def sent(connection: socket.socket, flood: str, answers: Answers) -> int:
    """Send this flood until the server ends the connection; returns how many frames were sent."""
    http = H2Connection()
    http.initiate_connection()
    connection.sendall(http.data_to_send())
    connection.settimeout(0.02)
    count = 0
    with contextlib.suppress(ConnectionError):
        while count < FRAMES:
            data = block_of(flood, http, is_first=count == 0)
            while data:
                with contextlib.suppress(TimeoutError):
                    data = data[connection.send(data) :]
                with contextlib.suppress(TimeoutError):
                    if not (answer := connection.recv(1 << 20)):
                        return count
                    answers.add(answer)
            count += BLOCK
            if answers.goodbye is not None:
                return count
    return count


def result(pid: int, port: int, flood: str) -> str:
    answers = Answers()
    before, began = processor_time(pid), time.monotonic()
    with connected(port) as connection:
        count = sent(connection, flood, answers)
    took = processor_time(pid) - before
    with connected(port) as other:
        ask_over_http2(other)
    ended = "took all" if count >= FRAMES and answers.goodbye is None else f"ended after {count:,}"
    code = "" if answers.goodbye is None else f", GOAWAY {ErrorCodes(answers.goodbye).name}"
    return f"{ended}{code}; {took * 1e3:.0f} ms of processor time in {time.monotonic() - began:.1f} s"


def main() -> None:
    print(f"Floods of {FRAMES:,} frames.\n\n| server | flood | result |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("Accord", "hypercorn", "granian"):
            if name != "Accord" and find_spec(name) is None:
                print(f"| {name} | not installed |")
                continue
            assert name in SERVERS
            for flood in FLOODS:
                with running(name, Path(folder)) as (pid, port):
                    try:
                        print(f"| {name} | {flood} | {result(pid, port, flood)} |", flush=True)
                    except OSError as error:
                        print(f"| {name} | {flood} | does not answer afterwards: {error} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
