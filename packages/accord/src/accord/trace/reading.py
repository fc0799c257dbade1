"""Reads traces: whole files, compressed ones, single lines, and files that are still written."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Self, cast

import msgspec

from accord.errors import DecodeError
from accord.trace.events import Direction, TraceEvent
from accord.trace.header import FORMAT, TraceHeader

if TYPE_CHECKING:
    from pathlib import Path

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
PAUSE = 0.2
"""Seconds between two looks at a file that is followed."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line after the first, with its frame as it was written."""

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


_read_line = msgspec.json.Decoder(Line).decode
_read_header = msgspec.json.Decoder(TraceHeader).decode


def read(source: str | Path | IO[bytes]) -> Iterator[TraceEvent]:
    """The events of a trace file, in order, with times since its start.

    The file may be compressed with gzip. A last line that was cut off by a crash is left out.
    """
    with Lines(source) as lines:
        first = next(lines, b"")
        if not first and lines.was_cut:
            return  # the recorder died before its first line was whole
        _header(first)
        for number, line in enumerate(lines, 2):
            yield read_event(line, number)


def read_header(source: str | Path | IO[bytes]) -> TraceHeader:
    """The first line of a trace file, which describes the recording."""
    with Lines(source) as lines:
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
    """The events of a trace that is still written; None each time that the file has no more for now.

    It ends when `goes_on` says that the file no longer grows, after the last event.
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


class Lines:
    """The whole lines of a trace, compressed or not."""

    def __init__(self, source: str | Path | IO[bytes]) -> None:
        self.was_cut = False
        """Whether the last line was not whole, and was left out."""
        self._is_own = isinstance(source, str | PathLike)
        given = open(source, "rb") if isinstance(source, str | PathLike) else source  # noqa: PTH123, SIM115
        self._given = given
        self._file: IO[bytes] = given
        if _starts(given) == _GZIP:
            import gzip

            self._file = cast("IO[bytes]", gzip.GzipFile(fileobj=given))

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
            self._given.close()


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
