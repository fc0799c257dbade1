"""`TraceFile`: an observer that writes a trace, masks secrets, and ends without harm when its disk is full."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from os import PathLike
from typing import IO, TYPE_CHECKING, Any

import msgspec

from accord.trace.events import TraceEvent
from accord.trace.header import FORMAT, TraceHeader, now
from accord.trace.private import open_private

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("accord")


class TraceFile:
    """An observer that writes a trace to a file.

    `target` is a path, or a binary file that is open. `role` and `peer` describe the recording in its first line.
    Secrets are masked: values of `env` and `headers`, members such as `apiKey`, answers to logins and forms, and URLs.
    With `secrets=True` everything is recorded. Each line is flushed, so a crash loses nothing.

    A path is created for its owner alone. A symbolic link or a file that other users can write is refused with an
    AccordError that says why. When writing fails later (a full disk), the recording ends and the connection goes on;
    `problem` says why.

    `header` describes the recording in more detail than `role` and `peer`. `began` is the time on the clock of
    `time.monotonic` from which events are counted: by default now.
    """

    def __init__(
        self,
        target: str | Path | IO[bytes],
        *,
        role: str = "",
        peer: str = "",
        secrets: bool = False,
        header: TraceHeader | None = None,
        began: float | None = None,
    ) -> None:
        self.problem: OSError | None = None
        """Why the recording has ended; None while it goes on."""
        self.size = 0
        """Bytes that were written."""
        self._own = isinstance(target, str | PathLike)
        self._name = str(target) if isinstance(target, str | PathLike) else "the trace"
        self._file: IO[bytes] = open_private(target) if isinstance(target, str | PathLike) else target
        from accord.redaction import masked, masked_text  # every connection loads this module; few are recorded

        self._masked = None if secrets else masked
        self._masked_text = None if secrets else masked_text
        self._began = time.monotonic() if began is None else began
        header = header or TraceHeader(FORMAT, now(), role, peer)
        described = msgspec.structs.replace(
            header,
            peer=self._text(header.peer),
            command=tuple(self._text(word) for word in header.command),
            masked=not secrets,
        )
        self._write(msgspec.json.encode(described))

    def __call__(self, event: TraceEvent) -> None:
        """Record this event."""
        if self.problem is not None:
            return
        start = b'{"t":%.6f,"dir":"%b",' % (event.time - self._began, event.direction.encode())
        if event.hop is not None or event.link is not None:
            start += self._place(event)
        frame = event.frame
        if frame is None:
            self._write(start + self._aside(event) + b"}")
            return
        if self._masked is not None:
            frame = self._masked(frame) or frame
        if _is_json(frame):
            self._write(start + b'"frame":' + frame.strip().replace(b"\n", b" ") + b"}")
        else:
            self._write(start + b'"text":' + _encoded(frame.decode("utf-8", "replace")) + b"}")

    def _place(self, event: TraceEvent) -> bytes:
        """Where the frame went, in a trace of several connections or components."""
        place = b""
        if event.hop is not None:
            place += b'"from":%b,"to":%b,' % tuple(_encoded(self._text(name)) for name in event.hop)
        if event.link is not None:
            place += b'"link":%b,' % _encoded(event.link)
        return place

    def _aside(self, event: TraceEvent) -> bytes:
        """An event that is no frame."""
        if event.stderr is not None:
            return b'"stderr":' + _encoded(self._text(event.stderr))
        if event.process is not None:
            return b'"process":' + _encoded(event.process)
        return b'"note":' + _encoded(self._text(event.note or ""))

    def close(self) -> None:
        """Close the file, if the recording opened it."""
        if self._own:
            with suppress(OSError):  # each line was flushed, so an error was reported there already
                self._file.close()

    def _text(self, text: str) -> str:
        return text if self._masked_text is None else self._masked_text(text)

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line + b"\n")
            self._file.flush()
            self.size += len(line) + 1
        except OSError as error:
            self.problem = error
            log.warning("cannot write %s: %s; the recording has ended", self._name, error.strerror or error)


def _encoded(value: Any) -> bytes:
    """This value as JSON; half of an emoji, as in the name of a file, becomes a question mark."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _is_json(frame: bytes) -> bool:
    """Whether any JSON reader accepts it: no invalid UTF-8, no half of an emoji, and the like."""
    try:
        msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
