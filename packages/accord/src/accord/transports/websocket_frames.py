"""WebSocket frames (RFC 6455, section 5), for both ends. PURE.

    texts(messages) ──▶ bytes ──▶ Frames.feed ──▶ [(TEXT, message), (PING, payload), ...]

Libraries need an event, several calls and a task switch for each frame, which takes longer than handling a message.
Here one loop parses all frames of a read, and one write sends all messages. Extensions are not supported, so reserved
bits are errors (5.2).
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Sequence

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA

NORMAL, GOING_AWAY, PROTOCOL_ERROR, NO_STATUS, ABNORMAL, NOT_UTF8, TOO_BIG, KEEPALIVE_FAILED = (
    1000,
    1001,
    1002,
    1005,
    1006,
    1007,
    1009,
    1011,
)

INTERNAL_ERROR = KEEPALIVE_FAILED
"""The code of a server that cannot continue (7.4.1), and of an end whose pings are not answered."""

_FIN, _MASKED, _LENGTH = 0x80, 0x80, 0x7F
_MOST_IN_CONTROL = 125
_LARGE = 64 * 1024
"""Bytes of payload from which a frame is added to the message as it arrives."""
_BLOCK = 1024 * 1024
"""Bytes of text that are checked at once: as a string, they may take four times as much memory."""

Masking = Callable[[bytes, bytes], bytes]


class Violation(Exception):
    """The peer broke the WebSocket protocol; `code` is the close code to send (7.4.1)."""

    def __init__(self, code: int, problem: str) -> None:
        super().__init__(problem)
        self.code = code
        self.before: Sequence[tuple[int, bytes]] = ()
        """The frames that the same bytes completed before the error."""


class Frames:
    """Parses frames from bytes cut anywhere. Fragments are joined; control frames may come between them.

    Large frames and fragments are collected in one buffer, without their masks, and returned without a copy: a message
    of any shape takes its size once.

    >>> Frames(1000, masked=False).feed(bytes([0x81, 2]) + b"hi" + bytes([0x89, 0]))
    [(1, b'hi'), (9, b'')]
    """

    def __init__(self, limit: int, *, masked: bool, first: int | None = None) -> None:
        self._most = limit
        self.limit = limit if first is None else first
        """Bytes that the next message may have: `first` before there was one."""
        self._mask_bit = _MASKED if masked else 0
        """5.1: a client must mask its frames, and a server must not."""
        self._mask = masking()
        self._rest = bytearray()
        self._needed = 0
        """The size of the unfinished frame in `_rest`; it is not parsed again before that many bytes have arrived."""
        self._message = io.BytesIO()
        """The message so far, if it is large or in fragments. Tiny fragments take no extra memory in one buffer."""
        self._first = 0
        """The first byte of the frame that is being gathered."""
        self._missing = 0
        """How many bytes of its payload are still to come."""
        self._key = b""
        """The mask of its next bytes."""
        self._fragments_of: int | None = None
        self._is_closed = False
        """Whether a close frame was received, or `drop` was called: later input is not data (1.4)."""

    @property
    def buffered(self) -> int:
        """Return how many bytes of an unfinished frame or message are kept."""
        return len(self._rest) + self._message.tell()

    def drop(self) -> None:
        """Drop all buffered bytes and ignore further ones."""
        self._rest = bytearray()
        self._message = io.BytesIO()
        self._is_closed = True

    def opened(self) -> None:
        """Take messages up to the limit from now on: the first has been read."""
        self.limit = self._most

    def feed(self, data: bytes) -> Sequence[tuple[int, bytes]]:
        """Add bytes; returns the messages and control frames they complete. Raises Violation, which is final."""
        found: list[tuple[int, bytes]] = []
        try:
            self._feed(data, found)
        except Violation as violation:
            violation.before = found
            raise
        return found

    def _feed(self, data: bytes, found: list[tuple[int, bytes]]) -> None:
        if self._is_closed:
            return
        if self._missing:
            data = self._gather(data, found)
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        position, end, seen = 0, len(data), 0
        self._needed = 0
        while end - position >= 2:
            first, second = data[position], data[position + 1]
            if second & _MASKED != self._mask_bit:
                raise Violation(PROTOCOL_ERROR, "5.1: a client must mask its frames and a server must not")
            start = position + 2
            length = second & _LENGTH
            if length > _MOST_IN_CONTROL:
                start += 2 if length == 126 else 8
                if start > end:
                    break
                length = int.from_bytes(data[position + 2 : start], "big")
                if length < (126 if start - position == 4 else 1 << 16):
                    raise Violation(PROTOCOL_ERROR, "5.2: a length must take as few bytes as possible")
            if first != _FIN | TEXT or length > self.limit or self._fragments_of is not None:
                if any(kind == TEXT for kind, _ in found[seen:]):
                    self.opened()
                seen = len(found)
                self._check(first, length)
            key = start
            if self._mask_bit:
                start += 4
            stop = start + length
            if stop > end:
                if length < _LARGE or start > end:
                    self._needed = stop - position
                else:
                    self._first, self._missing, self._key = first, length, data[key:start]
                    self._gather(data[start:], found)
                    position = end
                break
            payload = data[start:stop]
            if self._mask_bit:
                payload = self._mask(payload, data[key:start])
            position = stop
            if first == _FIN | TEXT:
                found.append((TEXT, _checked_text(payload)))
            else:
                self._take(first, payload, found)
                if first & 0x0F == CLOSE:
                    self.drop()
                    return
        self._rest += data[position:]

    def _check(self, first: int, length: int) -> None:
        """Raise Violation if such a frame is not allowed here."""
        kind, is_last = first & 0x0F, bool(first & _FIN)
        if first & 0x70:
            raise Violation(PROTOCOL_ERROR, "5.2: a reserved bit is set")
        if kind in (CLOSE, PING, PONG):
            if not is_last or length > _MOST_IN_CONTROL:
                raise Violation(PROTOCOL_ERROR, "5.5: a control frame must not be fragmented or longer than 125 bytes")
            return
        if kind not in (CONTINUATION, TEXT, BINARY):
            raise Violation(PROTOCOL_ERROR, f"5.2: unknown opcode {kind}")
        if (kind == CONTINUATION) != (self._fragments_of is not None):
            raise Violation(
                PROTOCOL_ERROR, "5.4: a continuation frame must follow, and only follow, an unfinished message"
            )
        if length + self._message.tell() > self.limit:
            which = "" if self.limit == self._most else " for the first one"
            raise Violation(TOO_BIG, f"message too large: at most {self.limit:,} bytes are allowed{which}")

    def _take(self, first: int, payload: bytes, found: list[tuple[int, bytes]]) -> None:
        kind = first & 0x0F
        if kind in (CLOSE, PING, PONG):
            found.append((kind, payload))
            return
        self._message.write(payload)
        self._end_frame(first, found)

    def _gather(self, data: bytes, found: list[tuple[int, bytes]]) -> bytes:
        """Add the part of an unfinished frame to the message; returns the rest."""
        part = data[: self._missing]
        if self._key:
            self._message.write(self._mask(part, self._key))
            turned = len(part) % len(self._key)
            self._key = self._key[turned:] + self._key[:turned]
        else:
            self._message.write(part)
        self._missing -= len(part)
        if not self._missing:
            self._end_frame(self._first, found)
        return data[len(part) :]

    def _end_frame(self, first: int, found: list[tuple[int, bytes]]) -> None:
        if first & 0x0F != CONTINUATION:
            self._fragments_of = first & 0x0F
        if first & _FIN:
            kind, whole = self._fragments_of or TEXT, self._message.getvalue()
            self._message, self._fragments_of = io.BytesIO(), None
            found.append((kind, _checked_text(whole) if kind == TEXT else whole))


def _checked_text(payload: bytes) -> bytes:
    # 8.1: invalid UTF-8 fails the connection.
    if not payload.isascii():
        try:
            _decode(payload)
        except UnicodeDecodeError:
            raise Violation(NOT_UTF8, "8.1: a text message must be UTF-8") from None
    return payload


def _decode(text: bytes) -> None:
    if len(text) <= _BLOCK:
        text.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(text), _BLOCK):
        decoder.decode(text[at : at + _BLOCK])
    decoder.decode(b"", final=True)


def texts(messages: Sequence[bytes], mask: Masking | None = None) -> bytes:
    """Encode each message as a text frame, joined into one write."""
    parts: list[bytes] = []
    for message in messages:
        _put(parts, TEXT, message if message.isascii() else _made_text(message), mask)
    return b"".join(parts)


def _made_text(message: bytes) -> bytes:
    """Replace invalid UTF-8, which would end the connection; the reader then reports a strange message."""
    try:
        _decode(message)
    except UnicodeDecodeError:
        return message.decode("utf-8", "replace").encode()
    return message


def control(kind: int, payload: bytes = b"", mask: Masking | None = None) -> bytes:
    """Encode a ping, a pong or a close frame."""
    parts: list[bytes] = []
    _put(parts, kind, payload, mask)
    return b"".join(parts)


def _put(parts: list[bytes], kind: int, payload: bytes, mask: Masking | None) -> None:
    length = len(payload)
    bit = 0 if mask is None else _MASKED
    if length <= _MOST_IN_CONTROL:
        parts.append(bytes((_FIN | kind, bit | length)))
    elif length < 1 << 16:
        parts.append(bytes((_FIN | kind, bit | 126)) + length.to_bytes(2, "big"))
    else:
        parts.append(bytes((_FIN | kind, bit | 127)) + length.to_bytes(8, "big"))
    if mask is not None:
        key = os.urandom(4)  # 10.3: the key must be unpredictable
        parts.append(key)
        payload = mask(payload, key)
    parts.append(payload)


def closing(code: int, reason: str = "") -> bytes:
    """The payload of a close frame (5.5.1)."""
    return code.to_bytes(2, "big") + reason.encode()[: _MOST_IN_CONTROL - 2]


def closed_with(payload: bytes) -> tuple[int, str]:
    """Code and reason of a close frame; raises Violation for a code that must not be sent (7.4)."""
    if not payload:
        return NO_STATUS, ""
    code = int.from_bytes(payload[:2], "big")
    if len(payload) < 2 or not (1000 <= code <= 1014 or 3000 <= code <= 4999) or code in _NEVER_SENT:
        raise Violation(PROTOCOL_ERROR, "7.4: invalid close code")
    return code, _checked_text(payload[2:]).decode()


_NEVER_SENT = frozenset({1004, NO_STATUS, ABNORMAL})


def masking() -> Masking:
    """The masking function: in C if the library has it."""
    try:
        from websockets.speedups import apply_mask
    except ImportError:
        return _mask
    return apply_mask


def _mask(data: bytes, key: bytes) -> bytes:
    repeated = (key * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(data), "big")
