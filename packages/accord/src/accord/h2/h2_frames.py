"""HTTP/2 frames (RFC 9113, 4 and 6): splits bytes into frames within limits, and writes frames. PURE."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

Fields = list[tuple[bytes, bytes]]
"""Names in lower case, and values."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The preface of a client (3.4)."""

LARGEST = 16_384
"""The most bytes of a frame's payload. We announce no other limit, and send no larger frames either."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
HAS_PRIORITY = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

_HEADER = Struct(">HBBBL")
_SETTING = Struct(">HL")
_NUMBER = 2**31 - 1


class Code(IntEnum):
    """Why a stream or a connection ends (7)."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class Fault(Exception):
    """The peer broke a rule, and the connection must end with this code (5.4.1)."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class H2Frame(NamedTuple):
    """One frame; `stream` is 0 for the connection itself."""

    kind: int
    flags: int
    stream: int
    payload: bytes


class H2FrameReader:
    """Splits received bytes into frames. At most one incomplete frame is kept."""

    def __init__(self, *, expects_preface: bool) -> None:
        self._rest = bytearray()
        self._needed = 0
        """The least number of bytes with which the frame in `_rest` can continue."""
        self._preface = PREFACE if expects_preface else b""

    def feed(self, data: bytes) -> Iterator[H2Frame]:
        """The frames that are complete with these bytes; raises Fault."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        at = len(self._preface)
        if at:
            if not data.startswith(self._preface[: len(data)]):
                raise Fault(Code.PROTOCOL_ERROR, "the connection does not begin with the preface of HTTP/2")
            if len(data) < at:
                self._keep(data, at)
                return
            self._preface = b""
        end = len(data)
        while end - at >= 9:
            high, low, kind, flags, stream = _HEADER.unpack_from(data, at)
            size = high << 8 | low
            if size > LARGEST:
                raise Fault(Code.FRAME_SIZE_ERROR, f"a frame has {size:,} bytes: at most {LARGEST:,} are allowed")
            begin, following = at + 9, at + 9 + size
            if following > end:
                self._keep(data[at:], 9 + size)
                return
            at = following
            yield H2Frame(kind, flags, stream & _NUMBER, data[begin:following])
        if at < end:
            self._keep(data[at:], 9)

    def _keep(self, rest: bytes, needed: int) -> None:
        self._rest += rest
        self._needed = needed


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Build a frame."""
    size = len(payload)
    return _HEADER.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


def header_frames(stream: int, block: bytes, *, ends: bool) -> bytes:
    """Build the frames of a header block: HEADERS, and CONTINUATION for the part that does not fit in it."""
    flags = END_STREAM if ends else 0
    if len(block) <= LARGEST:
        return frame(HEADERS, flags | END_HEADERS, stream, block)
    parts = [block[at : at + LARGEST] for at in range(0, len(block), LARGEST)]
    first, *middle, last = parts
    return b"".join(
        [
            frame(HEADERS, flags, stream, first),
            *(frame(CONTINUATION, 0, stream, part) for part in middle),
            frame(CONTINUATION, END_HEADERS, stream, last),
        ]
    )


def number_bytes(*numbers: int) -> bytes:
    """Encode numbers of 32 bits, as in frames."""
    return b"".join([number.to_bytes(4, "big") for number in numbers])


def settings_payload(settings: dict[int, int]) -> bytes:
    """Build the payload of SETTINGS."""
    return b"".join([_SETTING.pack(*setting) for setting in settings.items()])


def read_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    """The settings in a payload, in order; raises Fault."""
    if len(payload) % _SETTING.size:
        raise Fault(Code.FRAME_SIZE_ERROR, "the size of SETTINGS is not a multiple of 6")
    return _SETTING.iter_unpack(payload)


def without_padding(payload: bytes) -> bytes:
    """The payload of a padded frame without its padding (6.1); raises Fault."""
    if not payload or payload[0] >= len(payload):
        raise Fault(Code.PROTOCOL_ERROR, "the padding of a frame is larger than the frame")
    return payload[1 : len(payload) - payload[0]]


def number_in(payload: bytes, name: str) -> int:
    """The one number of 32 bits in a payload; raises Fault."""
    if len(payload) != 4:
        raise Fault(Code.FRAME_SIZE_ERROR, f"{name} must have 4 bytes, got {len(payload)}")
    return int.from_bytes(payload, "big")
