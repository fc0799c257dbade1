"""The frames of a WebSocket (RFC 6455, section 5), for either end. PURE.

    text(message) ──▶ bytes ──▶ Frames.feed ──▶ [(TEXT, message), (PING, payload), ...]

Libraries have this too, with an event, several calls and a task switch for each frame. A link whose messages cost a few
microseconds in all cannot pay for that: so here a read is taken apart in one loop, and messages become one write.
Extensions are not spoken, so reserved bits are errors, as 5.2 wants it.
"""

from __future__ import annotations

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
"""What a server says that cannot go on (7.4.1), and whoever gets no answer to its pings."""

_FIN, _MASKED, _LENGTH = 0x80, 0x80, 0x7F
_MOST_IN_CONTROL = 125

Masking = Callable[[bytes, bytes], bytes]


class Violation(Exception):
    """The other side broke the rules; `code` is what to close with (7.4.1)."""

    def __init__(self, code: int, problem: str) -> None:
        super().__init__(problem)
        self.code = code
        self.before: Sequence[tuple[int, bytes]] = ()
        """What the same bytes had completed before."""


class Frames:
    """Takes what arrives in pieces cut anywhere. Messages in fragments are joined; control frames come between.

    >>> Frames(1000, masked=False).feed(bytes([0x81, 2]) + b"hi" + bytes([0x89, 0]))
    [(1, b'hi'), (9, b'')]
    """

    def __init__(self, limit: int, *, masked: bool) -> None:
        self._limit = limit
        self._mask_bit = _MASKED if masked else 0
        """5.1: what a client sends is masked, what a server sends is not; else the connection fails."""
        self._mask = masking()
        self._rest = bytearray()
        self._needed = 0
        """Bytes that the frame at the beginning of the rest has; no use looking at it again before they are there."""
        self._fragments = bytearray()
        """The message so far. One buffer, so that each byte costs a byte, however small its fragment was."""
        self._fragments_of: int | None = None
        self._is_closed = False
        """Whether a close frame was received, or `drop` was called: what follows is no longer data (1.4)."""

    @property
    def buffered(self) -> int:
        """How many bytes of an unfinished frame or message are kept."""
        return len(self._rest) + len(self._fragments)

    def drop(self) -> None:
        """Keep nothing, and take no more."""
        self._rest = bytearray()
        self._fragments = bytearray()
        self._is_closed = True

    def feed(self, data: bytes) -> Sequence[tuple[int, bytes]]:
        """The messages and control frames that these bytes complete; raises Violation, after which nothing counts."""
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
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        position, end = 0, len(data)
        self._needed = 0
        while end - position >= 2:
            first, second = data[position], data[position + 1]
            if second & _MASKED != self._mask_bit:
                raise Violation(PROTOCOL_ERROR, "a frame is masked as only the other end's may be")
            start = position + 2
            length = second & _LENGTH
            if length > _MOST_IN_CONTROL:
                start += 2 if length == 126 else 8
                if start > end:
                    break
                length = int.from_bytes(data[position + 2 : start], "big")
                if length < (126 if start - position == 4 else 1 << 16):
                    raise Violation(PROTOCOL_ERROR, "5.2: a length must take as few bytes as possible")
            if first != _FIN | TEXT or length > self._limit or self._fragments_of is not None:
                self._check(first, length)
            key = start
            if self._mask_bit:
                start += 4
            stop = start + length
            if stop > end:
                self._needed = stop - position
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
        """Whether there may be such a frame here."""
        kind, is_last = first & 0x0F, bool(first & _FIN)
        if first & 0x70:
            raise Violation(PROTOCOL_ERROR, "a reserved bit is set")
        if kind in (CLOSE, PING, PONG):
            if not is_last or length > _MOST_IN_CONTROL:
                raise Violation(PROTOCOL_ERROR, "a control frame is short and whole")
            return
        if kind not in (CONTINUATION, TEXT, BINARY):
            raise Violation(PROTOCOL_ERROR, f"there are no frames of the kind {kind}")
        if (kind == CONTINUATION) != (self._fragments_of is not None):
            raise Violation(PROTOCOL_ERROR, "a message in fragments is gone on with, and nothing else is")
        if length + len(self._fragments) > self._limit:
            raise Violation(TOO_BIG, f"a message has at most {self._limit:,} bytes")

    def _take(self, first: int, payload: bytes, found: list[tuple[int, bytes]]) -> None:
        kind = first & 0x0F
        if kind in (CLOSE, PING, PONG):
            found.append((kind, payload))
            return
        if kind != CONTINUATION:
            self._fragments_of = kind
        self._fragments += payload
        if first & _FIN:
            kind, whole = self._fragments_of or TEXT, bytes(self._fragments)
            self._fragments, self._fragments_of = bytearray(), None
            found.append((kind, _checked_text(whole) if kind == TEXT else whole))


def _checked_text(payload: bytes) -> bytes:
    # 8.1: text that is no UTF-8 fails the connection.
    if not payload.isascii():
        try:
            payload.decode()
        except UnicodeDecodeError:
            raise Violation(NOT_UTF8, "a text frame is not UTF-8") from None
    return payload


def texts(messages: Sequence[bytes], mask: Masking | None = None) -> bytes:
    """Each message as a text frame, all of them as one piece."""
    parts: list[bytes] = []
    for message in messages:
        _put(parts, TEXT, message if message.isascii() else _made_text(message), mask)
    return b"".join(parts)


def _made_text(message: bytes) -> bytes:
    """What is handed on may be no UTF-8, which would end the link: better a message that its reader finds odd."""
    try:
        message.decode()
    except UnicodeDecodeError:
        return message.decode("utf-8", "replace").encode()
    return message


def control(kind: int, payload: bytes = b"", mask: Masking | None = None) -> bytes:
    """A ping, a pong or a close."""
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
        key = os.urandom(4)  # 10.3: nobody may foresee it
        parts.append(key)
        payload = mask(payload, key)
    parts.append(payload)


def closing(code: int, reason: str = "") -> bytes:
    """What a close frame says (5.5.1)."""
    return code.to_bytes(2, "big") + reason.encode()[: _MOST_IN_CONTROL - 2]


def closed_with(payload: bytes) -> tuple[int, str]:
    """Code and reason of a close frame; raises Violation for a code that nobody may send (7.4)."""
    if not payload:
        return NO_STATUS, ""
    code = int.from_bytes(payload[:2], "big")
    if len(payload) < 2 or not (1000 <= code <= 1014 or 3000 <= code <= 4999) or code in _NEVER_SENT:
        raise Violation(PROTOCOL_ERROR, "a close frame has no such code")
    return code, _checked_text(payload[2:]).decode()


_NEVER_SENT = frozenset({1004, NO_STATUS, ABNORMAL})


def masking() -> Masking:
    """What masks and unmasks: in C, where the library brings it."""
    try:
        from websockets.speedups import apply_mask
    except ImportError:
        return _mask
    return apply_mask


def _mask(data: bytes, key: bytes) -> bytes:
    repeated = (key * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(data), "big")
