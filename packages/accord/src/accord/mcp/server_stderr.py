"""The standard error of an MCP server's process, made harmless where it goes to a terminal.

A server inherits our standard error, as the official package does it: what it writes there is for the user. A pipe or a
file gets it as it is. A terminal would obey an escape sequence in it, so there the server writes into a pipe, and a
thread copies that through `printable`. A thread, because a terminal that takes nothing (Ctrl-S) must hold up that
server alone, and not the event loop.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import select
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TextIO

from accord.printable import Printable

LAST_WORDS = 1.0
"""Seconds for what the server wrote before it ended. A child of it may hold the pipe open for longer."""

_CHUNK = 64 * 1024


@asynccontextmanager
async def server_stderr() -> AsyncGenerator[TextIO]:
    """A file for the standard error of a server that ends before this does."""
    # Not sys.stderr first: a program may have put something there that a process cannot write to.
    ours = sys.__stderr__ or sys.stderr
    if not _is_terminal(ours):
        yield ours
        return
    source, sink = os.pipe()
    copying = threading.Thread(target=_copy, args=(source, ours.fileno()), name="accord MCP stderr", daemon=True)
    copying.start()
    file = os.fdopen(sink, "w")
    try:
        yield file
    finally:
        file.close()
        await asyncio.to_thread(copying.join, LAST_WORDS)


def _is_terminal(file: TextIO | None) -> bool:
    try:
        return file is not None and file.isatty()
    except ValueError:  # it is closed
        return False


def _copy(source: int, terminal: int) -> None:
    text, decoder = Printable(), codecs.getincrementaldecoder("utf-8")("replace")
    with os.fdopen(source, "rb", buffering=0) as pipe:
        while chunk := pipe.read(_CHUNK):
            _write(terminal, text.add(decoder.decode(chunk)))
        _write(terminal, text.add(decoder.decode(b"", final=True)) + text.rest())


def _write(terminal: int, text: str) -> None:
    rest = text.encode("utf-8", "replace")
    with suppress(OSError):  # the terminal is gone: the server may go on
        while rest:
            try:
                rest = rest[os.write(terminal, rest) :]
            except BlockingIOError:  # the terminal is shared with a program that made it non-blocking
                select.select([], [terminal], [])
