"""Traces of the wire: each frame with its time and direction, and notes about frames that were not simply handled.

An *observer* is a function that takes a `TraceEvent`. It is called before a received frame is handled, and when a frame
is sent, so the events are in the order of the wire. A frame that was ignored, refused or malformed is followed by an
event with a note that says so (`malformed: ...`). Without an observer, tracing costs nothing.

**The file format** (`TraceFile`, version 1) is one JSON object per line. The first line describes the recording:

    {"accord-trace": 1, "started": "2026-11-21T09:00:00.000+00:00", "role": "client", "peer": "process agent"}

Each further line is an event: `t`, seconds since the start; `dir`, `in` or `out` as the recording side sees it; and one
of `frame` (the message as JSON, byte for byte unless it held secrets), `text` (a frame that is not plain JSON, as a
string) or `note`. In a trace of a chain of proxies, `from` and `to` name the components.

A trace holds private messages. So only its owner can read the file, and secrets that can be recognised are masked in it
(`redaction`). The wire itself is not changed.
"""

from __future__ import annotations

import io
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from accord.errors import AccordError, DecodeError
from accord.jsonrpc.messages import Answer, Call, Malformed, Tell, parse

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("accord")

Direction = Literal["in", "out"]
IN: Direction = "in"
OUT: Direction = "out"

FORMAT = 1
"""The version of the file format."""


class TraceEvent:
    """A frame on the wire, or a note about the frame before it."""

    __slots__ = ("_message", "direction", "frame", "hop", "note", "time")

    def __init__(
        self,
        time: float,
        direction: Direction,
        frame: bytes | None = None,
        message: Any = None,
        note: str | None = None,
        hop: tuple[str, str] | None = None,
    ) -> None:
        self.time = time
        """Seconds on the clock of `time.monotonic`; in a trace that was read, since its start."""
        self.direction: Direction = direction
        """`in` or `out`, as this side sees it."""
        self.frame = frame
        """The bytes of the message; None for a note."""
        self.note = note
        """What became of the frame before; None for a frame."""
        self.hop = hop
        """In a trace of a chain of proxies: the component that sent the frame, and the one that gets it; else None."""
        self._message: Call | Tell | Answer | Malformed | None = message

    @property
    def message(self) -> Call | Tell | Answer | Malformed | None:
        """The frame as a message; parsed when first asked for."""
        if self._message is None and self.frame is not None:
            self._message = parse(self.frame)
        return self._message

    def __repr__(self) -> str:
        content = self.note if self.frame is None else self.frame[:100]
        return f"TraceEvent({self.direction} {content!r})"


Observer: TypeAlias = Callable[[TraceEvent], None]


class Watch:
    """The observers of one connection, and how they are called."""

    __slots__ = ("observers",)

    def __init__(self) -> None:
        self.observers: list[Observer] = []

    def frame(self, direction: Direction, frame: bytes, message: Any = None) -> None:
        self._tell(TraceEvent(time.monotonic(), direction, frame, message))

    def note(self, direction: Direction, note: str) -> None:
        self._tell(TraceEvent(time.monotonic(), direction, note=note))

    def _tell(self, event: TraceEvent) -> None:
        for observer in self.observers:
            try:
                observer(event)
            except Exception:
                log.exception("an observer of the connection failed")


class TraceFile:
    """An observer that writes a trace to a file.

    `target` is a path, or a binary file that is open. `role` and `peer` describe the recording in its first line.
    Secrets are masked: values of `env` and `headers`, members such as `apiKey`, answers to logins and forms, and URLs.
    With `secrets=True` everything is recorded. Each line is flushed, so a crash loses nothing.

    A path is created for its owner alone. A symbolic link or a file that other users can write is refused with an
    AccordError that says why. When writing fails later (a full disk), the recording ends and the connection goes on;
    `problem` says why.
    """

    def __init__(
        self, target: str | Path | IO[bytes], *, role: str = "", peer: str = "", secrets: bool = False
    ) -> None:
        self.problem: OSError | None = None
        """Why the recording has ended; None while it goes on."""
        self._own = isinstance(target, str | PathLike)
        self._name = str(target) if isinstance(target, str | PathLike) else "the trace"
        self._file: IO[bytes] = _private(target) if isinstance(target, str | PathLike) else target
        from accord.redaction import masked, masked_text  # every connection loads this module; few are recorded

        self._masked = None if secrets else masked
        self._masked_text = None if secrets else masked_text
        self._started = time.monotonic()
        header: dict[str, Any] = {
            "accord-trace": FORMAT,
            "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        header |= {key: value for key, value in (("role", role), ("peer", self._text(peer))) if value}
        header |= {} if secrets else {"masked": True}
        self._write(msgspec.json.encode(header))

    def __call__(self, event: TraceEvent) -> None:
        """Record this event."""
        if self.problem is not None:
            return
        start = b'{"t":%.6f,"dir":"%b",' % (event.time - self._started, event.direction.encode())
        if event.hop is not None:
            start += b'"from":%b,"to":%b,' % tuple(msgspec.json.encode(self._text(name)) for name in event.hop)
        frame = event.frame
        if frame is None:
            self._write(start + b'"note":' + msgspec.json.encode(self._text(event.note or "")) + b"}")
            return
        if self._masked is not None:
            frame = self._masked(frame) or frame
        if _is_json(frame):
            self._write(start + b'"frame":' + frame.strip().replace(b"\n", b" ") + b"}")
        else:
            self._write(start + b'"text":' + msgspec.json.encode(frame.decode("utf-8", "replace")) + b"}")

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
        except OSError as error:
            self.problem = error
            log.warning("cannot write %s: %s; the recording has ended", self._name, error.strerror or error)


def _private(path: str | Path) -> IO[bytes]:
    """Open a file for a recording that only this user can read.

    In a folder that other users can write to, the name may be a link that one of them made, so that we overwrite a file
    of our own or fill a file of theirs. So the opened descriptor is checked, not the name, and emptied only then.
    """
    # Not blocking: opening a named pipe without a reader is an error, and does not stop the program.
    flags = os.O_WRONLY | os.O_CREAT
    flags |= sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        is_link = os.path.islink(path)  # noqa: PTH114
        problem = "it is a symbolic link; name the file itself" if is_link else error.strerror
        raise AccordError(f"cannot record in {path}: {problem}") from error
    file = os.fdopen(fd, "wb")
    found = os.fstat(fd)
    if problem := _not_private(found):
        file.close()
        raise AccordError(f"cannot record in {path}: {problem}")
    if os.name == "posix":
        os.set_blocking(fd, True)
        if stat.S_ISREG(found.st_mode):
            os.fchmod(fd, 0o600)
    if stat.S_ISREG(found.st_mode):
        os.ftruncate(fd, 0)
    return file


def _not_private(found: os.stat_result) -> str | None:
    """Why this file must not hold a trace; None if it may. A device, such as /dev/null, keeps nothing."""
    if stat.S_ISCHR(found.st_mode) or not hasattr(os, "geteuid"):
        return None
    if found.st_uid != os.geteuid():
        return "it belongs to another user; choose a file of your own"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users can write it; chmod go-w, or choose another file"
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return "it has a second name (a hard link); choose another file"
    return None


def _is_json(frame: bytes) -> bool:
    """Whether any JSON reader accepts it: no invalid UTF-8, no half of an emoji, and the like."""
    try:
        msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def read(source: str | Path | IO[bytes]) -> Iterator[TraceEvent]:
    """The events of a trace file, in order, with times since its start.

    A last line that was cut off by a crash is left out.
    """
    file = open(source, "rb") if isinstance(source, str | PathLike) else source  # noqa: SIM115, PTH123
    with file if isinstance(source, str | PathLike) else io.BytesIO():
        lines = iter(file)
        header = _line(next(lines, b""), 1)
        if header.get("accord-trace") != FORMAT:
            raise DecodeError("$", f"not an Accord trace of version {FORMAT}")
        for number, line in enumerate(lines, 2):
            if line.endswith(b"\n"):
                yield _event(_line(line, number))


def _line(line: bytes, number: int) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"line {number}", f"not a line of an Accord trace: {error}") from None


def _event(line: dict[str, Any]) -> TraceEvent:
    frame = msgspec.json.encode(line["frame"]) if "frame" in line else None
    if "text" in line:
        frame = str(line["text"]).encode()
    hop = (str(line["from"]), str(line["to"])) if "from" in line and "to" in line else None
    return TraceEvent(float(line["t"]), line["dir"], frame, note=line.get("note"), hop=hop)
