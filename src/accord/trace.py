"""Watching the wire: every frame with its time and direction, and what became of the odd ones.

An *observer* is a function that takes an `Event`. Frames are shown before they are handled and as they are sent, so
that the events stand in the order of the wire; a frame that was not simply handled is followed by an event with a note
(`ignored`, `unknown method`, `malformed: ...`). Nobody watching costs nothing.

**The file format** (`JsonLines`, version 1) is one JSON object a line. The first says what it is:

    {"accord-trace": 1, "started": "2026-11-21T09:00:00.000+00:00", "role": "client", "peer": "process agent"}

and each other one is an event: `t`, seconds since the start; `dir`, `in` or `out` as the recording side sees it; and
one of `frame` (the message as JSON, byte for byte), `text` (a frame that is not plain JSON, as a string) or `note`.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from accord.errors import DecodeError
from accord.jsonrpc.messages import Answer, Call, Malformed, Tell, parse

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("accord")

Direction = Literal["in", "out"]
IN: Direction = "in"
OUT: Direction = "out"

FORMAT = 1


class Event:
    """Something that happened on the wire."""

    __slots__ = ("_message", "direction", "frame", "note", "time")

    def __init__(
        self,
        time: float,
        direction: Direction,
        frame: bytes | None = None,
        message: Any = None,
        note: str | None = None,
    ) -> None:
        self.time = time
        """Seconds, of `time.monotonic`."""
        self.direction: Direction = direction
        self.frame = frame
        self.note = note
        self._message: Call | Tell | Answer | Malformed | None = message

    @property
    def message(self) -> Call | Tell | Answer | Malformed | None:
        """The frame as a message; parsed when first asked for."""
        if self._message is None and self.frame is not None:
            self._message = parse(self.frame)
        return self._message

    def __repr__(self) -> str:
        what = self.note if self.frame is None else self.frame[:100]
        return f"Event({self.direction} {what!r})"


Observer: TypeAlias = Callable[[Event], None]


class Watch:
    """The observers of one connection."""

    __slots__ = ("observers",)

    def __init__(self) -> None:
        self.observers: list[Observer] = []

    def frame(self, direction: Direction, frame: bytes, message: Any = None) -> None:
        self._tell(Event(time.monotonic(), direction, frame, message))

    def note(self, direction: Direction, note: str) -> None:
        self._tell(Event(time.monotonic(), direction, note=note))

    def _tell(self, event: Event) -> None:
        for observer in self.observers:
            try:
                observer(event)
            except Exception:
                log.exception("an observer of the wire failed")


class JsonLines:
    """An observer that writes the file format; give it a path, or a binary file that is open.

    Each line is flushed, so that a crash loses nothing.
    """

    def __init__(self, target: str | Path | IO[bytes], *, role: str = "", peer: str = "") -> None:
        self._own = isinstance(target, str | PathLike)
        self._file: IO[bytes] = open(target, "wb") if isinstance(target, str | PathLike) else target  # noqa: SIM115, PTH123
        self._started = time.monotonic()
        header = {"accord-trace": FORMAT, "started": datetime.now(UTC).isoformat(timespec="milliseconds")}
        header |= {key: value for key, value in (("role", role), ("peer", peer)) if value}
        self._write(msgspec.json.encode(header))

    def __call__(self, event: Event) -> None:
        start = b'{"t":%.6f,"dir":"%b",' % (event.time - self._started, event.direction.encode())
        if event.frame is None:
            self._write(start + b'"note":' + msgspec.json.encode(event.note) + b"}")
        elif _is_json(event.frame):
            self._write(start + b'"frame":' + event.frame.strip().replace(b"\n", b" ") + b"}")
        else:
            self._write(start + b'"text":' + msgspec.json.encode(event.frame.decode("utf-8", "replace")) + b"}")

    def close(self) -> None:
        if self._own:
            self._file.close()

    def _write(self, line: bytes) -> None:
        self._file.write(line + b"\n")
        self._file.flush()


def _is_json(frame: bytes) -> bool:
    """Whether every reader of JSON will read it: without bytes of no text, halves of emoji and the like."""
    try:
        msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def read(source: str | Path | IO[bytes]) -> Iterator[Event]:
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
        raise DecodeError(f"line {number}", f"not a line of a trace: {error}") from None


def _event(line: dict[str, Any]) -> Event:
    frame = msgspec.json.encode(line["frame"]) if "frame" in line else None
    if "text" in line:
        frame = str(line["text"]).encode()
    return Event(float(line["t"]), line["dir"], frame, note=line.get("note"))
