"""Reads the lines of a trace for the index: the sender, kind and session of each message.

A line is first read into `Line` by a strict decoder that skips what the index does not need. A line that does not fit,
as a hostile peer may send, is read tolerantly; a line that is not JSON at all becomes a `BROKEN` one. No line raises.

`TraceReader` reads a trace file by position while it may still grow. The file is not mapped into memory: a mapped file
that another process truncates ends its reader with SIGBUS. Reading by position is as fast. A compressed trace is
unpacked into a private temporary file first.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from accord import AccordError, DecodeError
from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame, parse
from accord.schema.codec import loads

MOST_UNPACKED = 4 * 1024**3
"""Bytes that a compressed trace may have when it is unpacked."""


class TraceReader:
    """An open trace file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = _opened(self.path)
        self._identity = _identity(self.path)
        self._is_packed = self.path.suffix == ".gz"

    @property
    def size(self) -> int:
        """Return the file's present size in bytes."""
        return os.fstat(self._file.fileno()).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from this position on; fewer at the end of the file."""
        self._file.seek(offset)
        return self._file.read(size)

    def is_replaced(self, consumed: int) -> bool:
        """Whether the path names another file by now, or the file has become shorter than the part that was read."""
        if self._is_packed:
            return False
        now = _identity(self.path)
        return self.size < consumed or (now is not None and now != self._identity)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _opened(path: Path) -> IO[bytes]:
    try:
        # Not blocking: opening a named pipe without a writer would wait for one.
        file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
    except OSError as error:
        raise AccordError(f"cannot read the trace {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise AccordError(f"cannot read the trace {path}: it is not a regular file")
    return _unpacked(path, file) if path.suffix == ".gz" else file


def _unpacked(path: Path, packed: IO[bytes]) -> IO[bytes]:
    """The content of a compressed trace, up to where a crash cut it off."""
    unpacked = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with packed, gzip.open(packed) as content:
            shutil.copyfileobj(_BoundedStream(content), unpacked)
    except EOFError:
        pass
    except (OSError, zlib.error) as error:
        unpacked.close()
        raise AccordError(f"cannot unpack the trace {path}: {error}") from error
    unpacked.flush()
    return unpacked


class _BoundedStream:
    def __init__(self, content: gzip.GzipFile) -> None:
        self._content = content
        self._left = MOST_UNPACKED

    def read(self, size: int = -1) -> bytes:
        data = self._content.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise OSError(f"more than {MOST_UNPACKED:,} bytes when it is unpacked")
        return data


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a path; None if it is gone: the open file then stays unchanged."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


BROKEN, REQUEST, NOTIFICATION, ANSWER, ERROR, NOTE, STDERR, EVENT = range(8)
"""The kinds of a line. `BROKEN` is a line or a frame that is not a message; `EVENT` is an unknown one."""

LONGEST_NAME = 300
"""Characters of a name (of a method, a session, an update) that the index stores."""

EMPTY = msgspec.Raw(b"")


class _Update(msgspec.Struct, gc=False):
    sessionUpdate: str = ""  # noqa: N815
    messageId: str | None = None  # noqa: N815
    state: str | None = None
    stopReason: str | None = None  # noqa: N815
    toolCallId: str = ""  # noqa: N815


class _Params(msgspec.Struct, gc=False):
    sessionId: str = ""  # noqa: N815
    update: _Update | None = None


class _Result(msgspec.Struct, gc=False):
    sessionId: str = ""  # noqa: N815
    stopReason: str = ""  # noqa: N815


class _Frame(msgspec.Struct, gc=False):
    id: msgspec.Raw = EMPTY
    method: str = ""
    params: _Params | None = None
    result: _Result | None = None
    error: msgspec.Raw = EMPTY


class DecodedLine(msgspec.Struct, gc=False, rename={"from_": "from"}):
    t: float = 0.0
    dir: str = ""
    frame: _Frame | None = None
    from_: str = ""
    to: str = ""
    link: int | str = ""


class Line(msgspec.Struct):
    """The part of one line that the index stores."""

    kind: int = BROKEN
    time: float = 0.0
    dir: str = ""
    id: bytes = b""
    """The JSON of the message's id."""
    method: str = ""
    session: str = ""
    update: str = ""
    """The kind of a session update."""
    message: str = ""
    """The id of the message that an update is a chunk of."""
    state: str = ""
    """The state in a `state_update` of version 2."""
    tool: str = ""
    """The id of the tool call that an update is about."""
    stop: str = ""
    """The stop reason in an answer, or in a `state_update`."""
    link: str = ""
    """In a trace of several connections: the one of the message."""
    hop: tuple[str, str] = ("", "")
    """In a trace of several links: the components that sent and received the message."""


decode = msgspec.json.Decoder(DecodedLine).decode
"""Decode a line of the usual form; raises one of `REFUSALS` for any other."""

REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def line_of(found: DecodedLine, data: bytes) -> Line:
    """Return the index's part of a decoded line.

    >>> data = b'{"t":1,"dir":"out","frame":{"id":1,"method":"initialize"}}'
    >>> line = line_of(decode(data), data)
    >>> line.kind == REQUEST, line.method, line.id
    (True, 'initialize', b'1')
    """
    frame = found.frame
    if frame is None:
        return tolerant_line(data)
    line = Line(time=found.t, dir=found.dir, id=bytes(frame.id))
    if found.from_:
        line.hop = (found.from_[:LONGEST_NAME], found.to[:LONGEST_NAME])
    if found.link != "":
        line.link = str(found.link)[:LONGEST_NAME]
    if frame.method:
        line.kind = REQUEST if line.id else NOTIFICATION
        line.method = frame.method[:LONGEST_NAME]
        params = frame.params
        if params is not None:
            line.session = params.sessionId[:LONGEST_NAME]
            update = params.update
            if update is not None:
                line.update, line.message = update.sessionUpdate[:LONGEST_NAME], update.messageId or ""
                line.state, line.tool = update.state or "", update.toolCallId[:LONGEST_NAME]
                line.stop = (update.stopReason or "")[:LONGEST_NAME]
        return line
    line.kind = ERROR if bytes(frame.error) not in (b"", b"null") else ANSWER
    if frame.result is not None:
        line.session, line.stop = frame.result.sessionId[:LONGEST_NAME], frame.result.stopReason[:LONGEST_NAME]
    return line


def tolerant_line(data: bytes) -> Line:
    """Return the index's part of a line of another form; fields that do not fit are empty."""
    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except REFUSALS:
        return Line()
    line = Line(EVENT, _number(found.get("t")), _word(found.get("dir")))
    line.hop = (_word(found.get("from")), _word(found.get("to")))
    line.link = _word(found.get("link")) or bytes(found.get("link", EMPTY)).decode("ascii", "replace")[:20]
    if "frame" in found or "text" in found:
        _take_message(line, _frame_in(found))
    elif "stderr" in found:
        line.kind = STDERR
    elif "note" in found:
        line.kind = NOTE
    return line


def frame_of(data: bytes) -> bytes | None:
    """Return the bytes of the message in a line; None if the line has none, or is not JSON."""
    try:
        return _frame_in(msgspec.json.decode(data, type=dict[str, msgspec.Raw]))
    except REFUSALS:
        return None


def _frame_in(found: Mapping[str, msgspec.Raw]) -> bytes | None:
    if "text" in found:
        return _word(found["text"], None).encode("utf-8", "surrogatepass")
    return bytes(found["frame"]) if "frame" in found else None


def _take_message(line: Line, frame: bytes | None) -> None:
    """Read a frame that the fast path refused."""
    line.kind = BROKEN
    message = None if frame is None else parse(frame)
    if message is None or isinstance(message, Malformed):
        return
    if isinstance(message, ResponseFrame):
        line.kind = ANSWER if message.error is None else ERROR
        result = _object(message.result)
        line.session, line.stop = _short(result.get("sessionId")), _short(result.get("stopReason"))
    else:
        assert isinstance(message, RequestFrame | NotificationFrame)
        line.kind = REQUEST if isinstance(message, RequestFrame) else NOTIFICATION
        line.method = message.method[:LONGEST_NAME]
        params = _object(message.params)
        update = params.get("update")
        line.session = _short(params.get("sessionId"))
        if isinstance(update, dict):
            line.update = _short(cast("dict[str, Any]", update).get("sessionUpdate"))
    if isinstance(message, RequestFrame | ResponseFrame):
        line.id = msgspec.json.encode(message.id)


def _object(value: Any) -> dict[str, Any]:
    """The members of some JSON; empty if it is not an object."""
    try:
        found = loads(value) if isinstance(value, bytes | msgspec.Raw) else value
    except DecodeError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _short(value: Any) -> str:
    return value[:LONGEST_NAME] if isinstance(value, str) else ""


def _number(raw: msgspec.Raw | None) -> float:
    try:
        return 0.0 if raw is None else msgspec.json.decode(raw, type=float)
    except msgspec.DecodeError:
        return 0.0


def _word(raw: msgspec.Raw | None, most: int | None = LONGEST_NAME) -> str:
    try:
        value = None if raw is None else loads(raw)
    except DecodeError:
        return ""
    return value[:most] if isinstance(value, str) else ""
