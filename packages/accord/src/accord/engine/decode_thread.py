"""Heavy messages are read in a thread. What arrives meanwhile waits, so that the order of the wire stays.

receive ─▶ a heavy frame ─▶ `read`: in a thread ──▶ its message is handled ──▶ the frames that waited, one of which
           and those that follow it: `wait`                                    may be heavy again
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import Callable, Sequence

from accord.engine.read_pause import ReadPause
from accord.errors import INVALID_REQUEST
from accord.jsonrpc import chunked_decode
from accord.jsonrpc.line_frames import Oversized
from accord.jsonrpc.wire_messages import Malformed, Message

log = logging.getLogger("accord")

START = 1024
"""Bytes of a frame that are kept for the notes about it."""


class DecodeThread:
    """Reads the heavy frames of one connection, one after the other."""

    def __init__(
        self,
        read_pause: ReadPause,
        loop: asyncio.AbstractEventLoop,
        handle: Callable[[Message | Malformed, bytes, int], None],
        receive: Callable[[Sequence[bytes | Oversized]], None],
    ) -> None:
        self.busy = False
        """Whether a frame is being read, so that later frames have to wait."""
        self.on_idle: Callable[[], object] | None = None
        """Called once, when no frame is left."""
        self._read_pause = read_pause
        self._loop = loop
        self._handle = handle
        self._receive = receive
        self._waiting: list[bytes | Oversized] = []
        self._has_ended = False

    def read(self, frame: bytes, *, keep: bool) -> None:
        """Read this frame; it is handled when that is done. Only its start is kept unless the whole is needed."""
        self.busy = True
        self._read_pause.hold()
        args = ([frame], frame if keep else frame[:START], len(frame), contextvars.copy_context())
        threading.Thread(target=self._read, args=args, name="accord reads a heavy message", daemon=True).start()

    def wait(self, frames: Sequence[bytes | Oversized]) -> None:
        """Let these frames wait for the one that is being read."""
        self._waiting += frames

    def end(self) -> None:
        """Drop what is not handled yet: the connection has ended."""
        self._has_ended = True
        self._waiting.clear()

    def _read(self, frames: list[bytes], kept: bytes, size: int, context: contextvars.Context) -> None:
        try:
            message = chunked_decode.read(frames)
        except Exception as error:
            log.exception("reading a message of %s bytes failed", f"{size:,}")
            message = Malformed(INVALID_REQUEST, f"it could not be read: {error}")
        with contextlib.suppress(RuntimeError):  # the program has closed the loop
            self._loop.call_soon_threadsafe(self._was_read, message, kept, size, context=context)

    def _was_read(self, message: Message | Malformed, kept: bytes, size: int) -> None:
        if self._has_ended:
            return
        self._handle(message, kept, size)
        self.busy = False
        frames, self._waiting = self._waiting, []
        if frames:
            self._receive(frames)
        if not self.busy:
            self._read_pause.let_go()
            if (on_idle := self.on_idle) is not None:
                self.on_idle = None
                on_idle()
