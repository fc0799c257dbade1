"""The process that a client under check starts as its agent: it only passes everything on to the checks.

    client ──stdin──▶ relay ─callback socket▶ the checks
           ◀─stdout──       ◀───────────────

The scenarios run in one program, whatever the client starts, and however often. On the socket each parcel has a letter,
its size in four bytes, and its bytes. The relay sends input (`i`), the end of its input (`e`), a signal (`s`) and that
its output is closed (`b`). It receives data for standard output (`o`) or standard error (`r`), and the command to exit
(`x`).

It is a script for `accord/callback_socket/callback_client.py`, and imports nothing of Accord, so that it starts at once
and in any environment.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
from collections.abc import Callable
from types import FrameType
from typing import BinaryIO

HEAD = struct.Struct("!cI")
"""The header of a parcel: its letter and its size."""

CHUNK = 64 * 1024

LAST_INPUT = 0.3
"""Seconds for the end of the input that a client may have sent just before a signal."""

Send = Callable[..., None]
"""Sends a parcel: its letter and its bytes."""


UNREACHABLE = "the conformance checks do not run any more"

SIGNALS = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP", "SIGINT", "SIGBREAK") if hasattr(signal, name))
"""The signals that are reported to the checks; Windows has the last two."""


def main(link: socket.socket) -> int:
    """Pass everything on to the checks over this socket; returns the exit code."""
    sending = threading.Lock()

    def send(letter: bytes, data: bytes = b"") -> None:
        with sending:
            try:
                link.sendall(HEAD.pack(letter, len(data)) + data)
            except OSError:
                os._exit(1)  # the checks have ended

    reading = threading.Thread(target=_read, args=(send,), daemon=True)

    def signalled(number: int, _: FrameType | None) -> None:
        reading.join(LAST_INPUT)
        send(b"s", str(number).encode())
        if number != signal.SIGINT:  # which a terminal sends to all that run in it
            os._exit(128 + number)

    for number in SIGNALS:
        signal.signal(number, signalled)
    reading.start()
    return _obey(link.makefile("rb"), send)


def _read(send: Send) -> None:
    while data := os.read(0, CHUNK):
        send(b"i", data)
    send(b"e")


def _obey(parcels: BinaryIO, send: Send) -> int:
    while len(head := parcels.read(HEAD.size)) == HEAD.size:
        letter, size = HEAD.unpack(head)
        data = parcels.read(size)
        if letter == b"x":
            return int(data)
        try:
            _write(1 if letter == b"o" else 2, data)
        except OSError:
            send(b"b")
    return 0


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
