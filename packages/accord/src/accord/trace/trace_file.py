"""Trace files: `TraceFile` writes one for its owner alone, and `read` and `follow` read it, even while it grows.

In a folder that other users can write to, the name of a file may be a link that one of them made, so that we overwrite
a file of our own or fill a file of theirs. So the opened descriptor is checked, not the name, and the file is emptied
only then.
"""

from __future__ import annotations

import io
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Self, cast

import msgspec

from accord.errors import AccordError, DecodeError
from accord.trace import Direction, TraceEvent

if TYPE_CHECKING:
    from pathlib import Path


FORMAT = 1
"""The version of the file format."""


class TraceHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line of a trace: the recording program, and the time."""

    version: int = msgspec.field(name="accord-trace")
    """The version of the file format."""
    started: str = ""
    """When the recording began, in ISO 8601 with an offset. The events of all parts count from here."""
    role: str = ""
    """The recording side: `client`, `agent`, `conductor` (a chain of proxies), or `tap` (between the two)."""
    peer: str = ""
    """A description of the other side."""
    masked: bool = False
    """Whether secrets were masked while recording."""
    tool: str = ""
    """The program that wrote the file, with its version."""
    command: tuple[str, ...] = ()
    """The agent's command, where the recorder started it or knows it."""
    cwd: str = ""
    """The folder in which the agent was started."""
    part: int = 1
    """The number of this file, where a long recording has several."""
    redacted: dict[str, int] | None = None
    """In an exported trace: how often each kind of text was replaced."""
    imported: str = ""
    """The format from which this trace was converted."""

    @property
    def timestamp(self) -> float:
        """Return when the recording began, in seconds since 1970; 0 if the header does not have it."""
        try:
            return datetime.fromisoformat(self.started).timestamp()
        except ValueError:
            return 0.0


def now() -> str:
    """The time as a header has it: ISO 8601 with an offset."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


log = logging.getLogger("accord")

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
PAUSE = 0.2
"""Seconds between two checks of a file that is followed."""


class TraceLine(msgspec.Struct, frozen=True, gc=False):
    """A line after the first, with its frame unchanged."""

    t: float
    dir: Direction
    frame: msgspec.Raw = msgspec.Raw()  # no None here: msgspec would decode the value
    text: str | None = None
    note: str | None = None
    stderr: str | None = None
    process: dict[str, Any] | None = None
    link: int | str | None = None
    sender: str | None = msgspec.field(default=None, name="from")
    to: str | None = None


_read_line = msgspec.json.Decoder(TraceLine).decode
_read_header = msgspec.json.Decoder(TraceHeader).decode


def read(source: str | Path | IO[bytes]) -> Iterator[TraceEvent]:
    """The events of a trace file, in order, with times since its start.

    The file may be compressed with gzip. A last line that was cut off by a crash is left out.
    """
    with TraceLines(source) as lines:
        first = next(lines, b"")
        if not first and lines.was_cut:
            return  # the recorder died while it wrote the first line
        _header(first)
        for number, line in enumerate(lines, 2):
            yield read_event(line, number)


def read_header(source: str | Path | IO[bytes]) -> TraceHeader:
    """The first line of a trace file, which describes the recording."""
    with TraceLines(source) as lines:
        return _header(next(lines, b""))


def read_event(line: bytes, number: int = 0) -> TraceEvent:
    """The event of one line of a trace file, which is not the first; `number` is for the error if it cannot be read."""
    try:
        read = _read_line(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"line {number}", f"not a line of an Accord trace: {error}") from None
    frame: bytes | None = bytes(read.frame)
    if not frame:
        frame = None if read.text is None else read.text.encode()
    hop = (read.sender, read.to) if read.sender is not None and read.to is not None else None
    return TraceEvent(read.t, read.dir, frame, None, read.note, hop, read.link, read.stderr, read.process)


def follow(source: str | Path, goes_on: Callable[[], bool] = lambda: True) -> Iterator[TraceEvent | None]:
    """Yield the events of a trace that is still being written; None each time that the file has no more for now.

    It ends after the last event when `goes_on` returns that the file no longer grows.
    """
    with open(source, "rb") as file:  # noqa: PTH123
        number, rest = 0, b""
        while True:
            is_last = not goes_on()
            while line := file.readline():
                rest += line
                if not rest.endswith(b"\n"):
                    break
                number += 1
                whole, rest = rest, b""
                if number == 1:
                    _header(whole)
                else:
                    yield read_event(whole, number)
            if is_last:
                return
            yield None
            time.sleep(PAUSE)


class TraceLines:
    """The whole lines of a trace, compressed or not."""

    def __init__(self, source: str | Path | IO[bytes]) -> None:
        self.was_cut = False
        """Whether the last line was not whole, and was left out."""
        self._is_own = isinstance(source, str | PathLike)
        opened = open(source, "rb") if isinstance(source, str | PathLike) else source  # noqa: PTH123, SIM115
        self._opened = opened
        self._file: IO[bytes] = opened
        if _starts(opened) == _GZIP:
            import gzip

            self._file = cast("IO[bytes]", gzip.GzipFile(fileobj=opened))

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            line = self._file.readline()
        except EOFError:  # a compressed file that was cut off
            line = b""
            self.was_cut = True
        if line and not line.endswith(b"\n"):
            self.was_cut = True
            line = b""
        if not line:
            raise StopIteration
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own:
            self._opened.close()


def _starts(file: IO[bytes]) -> bytes:
    """The first two bytes, which are still to be read."""
    if isinstance(file, io.BytesIO):
        return file.getvalue()[:2]
    peek = getattr(file, "peek", None)  # a pipe without a buffer cannot look ahead; such a trace is plain
    return bytes(peek(2)[:2]) if peek is not None else b""


def _header(line: bytes) -> TraceHeader:
    try:
        header = _read_header(line.removeprefix(_BOM))
    except msgspec.ValidationError as error:
        if not line.removeprefix(_BOM).lstrip().startswith(b"{"):
            raise DecodeError("line 1", "not a line of an Accord trace: it is no JSON object") from None
        raise DecodeError("$", f"not an Accord trace of version {FORMAT}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError("line 1", f"not a line of an Accord trace: {error}") from None
    if header.version != FORMAT:
        raise DecodeError("$", f"not an Accord trace of version {FORMAT}")
    return header


def open_private(path: str | Path) -> IO[bytes]:
    """Open a file for a recording that only this user can read."""
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
    if sys.platform != "win32":
        os.set_blocking(fd, True)
        if stat.S_ISREG(found.st_mode):
            os.fchmod(fd, 0o600)
    if stat.S_ISREG(found.st_mode):
        os.ftruncate(fd, 0)
    return file


def _not_private(found: os.stat_result) -> str | None:
    """Return why this file must not hold a trace; None if it may. A device, such as /dev/null, stores nothing."""
    if sys.platform == "win32" or stat.S_ISCHR(found.st_mode):
        return None
    if found.st_uid != os.geteuid():
        return "it belongs to another user; choose a file of your own"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users can write it; chmod go-w, or choose another file"
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return "it has a second name (a hard link); choose another file"
    return None


class TraceFile:
    """An observer that writes a trace to a file.

    `target` is a path, or a binary file that is open. `role` and `peer` describe the recording in its first line.
    Secrets are masked: values of `env` and `headers`, members such as `apiKey`, answers to logins and forms, and URLs.
    With `secrets=True` everything is recorded. Each line is flushed, so a crash loses nothing.

    A path is created for its owner alone. A symbolic link or a file that other users can write is refused with an
    AccordError that gives the reason. When writing fails later (a full disk), the recording ends and the connection
    continues; `problem` is the reason.

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
        """Why the recording has ended; None while it continues."""
        self.size = 0
        """Bytes that were written."""
        self._own = isinstance(target, str | PathLike)
        self._name = str(target) if isinstance(target, str | PathLike) else "the trace"
        self._file: IO[bytes] = open_private(target) if isinstance(target, str | PathLike) else target
        from accord.redaction import mask_urls, masked  # every connection loads this module; few are recorded

        self._masked = None if secrets else masked
        self._masked_text = None if secrets else mask_urls
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
        """Return where the frame went, in a trace of several connections or components."""
        place = b""
        if event.hop is not None:
            place += b'"from":%b,"to":%b,' % tuple(_encoded(self._text(name)) for name in event.hop)
        if event.link is not None:
            place += b'"link":%b,' % _encoded(event.link)
        return place

    def _aside(self, event: TraceEvent) -> bytes:
        """Return an event that is no frame."""
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
    """Return this value as JSON; half of an emoji, as in the name of a file, becomes a question mark."""
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
