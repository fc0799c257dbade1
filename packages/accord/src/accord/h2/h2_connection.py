"""HTTP/2 without I/O (RFC 9113), for both roles: streams, flow control, and checks of what the peer sends. PURE.

    received bytes ──▶ H2Connection.receive ──▶ events              for the shell that owns the socket
    H2Connection.open, send_headers, send_data ... ──▶ H2Connection.output ──▶ bytes to write

A rule that the peer breaks has one of two consequences. A `Fault` ends the connection: GOAWAY is written, and the last
event is `ConnectionFailed`. A malformed message ends its stream: RST_STREAM is written, and the event is `StreamReset`,
or `Chore` if the caller does not know the stream yet.

Flow control: received bytes count until the shell acknowledges them. Half a window is announced at once, so that few
frames are needed. A stream that closes releases the bytes that the connection's window still counts for it.

A server that sends GOAWAY accepts no more streams; those up to the number that it names continue to their end (6.8). It
did not process the others: each is reported as a `StreamReset` with REFUSED_STREAM, before the `GoAwayReceived`.

Of closed streams only the last `REMEMBERED` numbers are kept, with the way in which each closed: late frames for a
stream that was reset are dropped, and those for one that has ended are a fault (5.1).

There is no server push, no Extended CONNECT and no upgrade from HTTP/1.1. Priorities are checked and ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import ClassVar, TypeAlias

import msgspec

from accord.h2.h2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    ENABLE_PUSH,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HAS_PRIORITY,
    HEADER_TABLE_SIZE,
    INITIAL_WINDOW_SIZE,
    LARGEST,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
    PADDED,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Code,
    Fault,
    Fields,
    H2FrameReader,
    frame,
    header_frames,
    number_bytes,
    number_in,
    read_settings,
    settings_payload,
    without_padding,
)
from accord.h2.h2_headers import (
    MOST_HEADERS,
    BlockReader,
    BlockWriter,
    Head,
    MalformedMessage,
    Text,
    check_trailers,
    request_of,
    response_of,
)


class HeadReceived(msgspec.Struct, frozen=True, gc=False):
    """The header of a request or of a response has arrived."""

    stream: int
    head: Head
    ends: bool
    """Whether the message ends with it."""


class DataReceived(msgspec.Struct, frozen=True, gc=False):
    """A part of a body has arrived. `counted` must be acknowledged; padding makes it more than the data."""

    stream: int
    data: bytes
    counted: int
    ends: bool


class StreamReset(msgspec.Struct, frozen=True, gc=False):
    """A stream has ended early; `detail` has the reason if it was ended here."""

    stream: int
    code: int
    detail: str = ""


class WindowChanged(msgspec.Struct, frozen=True, gc=False):
    """A window or a limit has changed: senders that wait for room may continue."""


class Chore(msgspec.Struct, frozen=True, gc=False):
    """A frame that cost work and had no effect."""


class GoAwayReceived(msgspec.Struct, frozen=True, gc=False):
    """The peer is closing the connection: it accepts no new streams. Open ones continue to their end."""

    code: int


class ConnectionFailed(msgspec.Struct, frozen=True, gc=False):
    """The peer broke a rule. Write `output`, and then close the connection."""

    detail: str


Event: TypeAlias = HeadReceived | DataReceived | StreamReset | WindowChanged | Chore | GoAwayReceived | ConnectionFailed

WINDOW_CHANGED, CHORE = WindowChanged(), Chore()


DEFAULT_WINDOW = 65_535
LARGEST_WINDOW = 2**31 - 1

LAST_NUMBER = 2**31 - 1
"""The highest number of a stream."""

MOST_CONTINUATIONS = 64
"""The most CONTINUATION frames of a header block."""

BAD_FIELD = "a field with characters that are not allowed"

REMEMBERED = 1000
"""How many closed streams are remembered."""


class StreamClosed(Exception):
    """Raised for sending on a stream that is not open."""


class _Stream:
    """One open stream."""

    __slots__ = ("credit", "has_head", "is_head", "left", "receives", "room", "sends", "taken", "unread")

    def __init__(self, room: int, credit: int) -> None:
        self.room = room
        """Bytes that may be sent; negative if the peer has made its window smaller (6.9.2)."""
        self.credit = credit
        """Bytes that may be received."""
        self.unread = 0
        """Bytes that were received and not acknowledged."""
        self.taken = 0
        """Bytes that were acknowledged here but not to the peer."""
        self.sends = self.receives = True
        self.has_head = False
        """Whether the header of the peer's message has arrived."""
        self.is_head = False
        """Whether the request is a HEAD."""
        self.left: int | None = None
        """Bytes of the body that are still missing according to Content-Length."""


class H2Connection:
    """One HTTP/2 connection. `streams` is how many the peer may have open; a client's peer opens none.

    `changing` names fields whose value differs each time.
    """

    def __init__(
        self,
        *,
        is_client: bool,
        stream_window: int,
        connection_window: int,
        streams: int = 0,
        changing: Collection[str] = (),
    ) -> None:
        self._is_client = is_client
        self._frames = H2FrameReader(expects_preface=not is_client)
        self._writer, self._reader = BlockWriter(changing), BlockReader()
        self._streams: dict[int, _Stream] = {}
        self._closed: dict[int, bool] = {}
        """The last streams that closed, and whether by a reset."""
        self._limit = streams
        self._next = 1
        """The lowest number that no stream has had: clients open all streams, with odd numbers."""
        self._has_settings = False
        self._is_over = False
        self._peer_leaves = False
        """Whether the peer has sent GOAWAY."""
        self._block: tuple[int, int, bytearray] | None = None
        """The stream, the flags and the beginning of an incomplete header block."""
        self._continuations = 0
        self._events: list[Event] = []
        # the peer's limits
        self._room = self._peer_window = DEFAULT_WINDOW
        self._peer_streams = LARGEST_WINDOW
        # our limits
        self._window, self._credit_of_all = stream_window, connection_window
        self._credit = connection_window
        self._taken = 0
        role = {ENABLE_PUSH: 0} if is_client else {MAX_CONCURRENT_STREAMS: streams}
        settings = {**role, INITIAL_WINDOW_SIZE: stream_window, MAX_HEADER_LIST_SIZE: MOST_HEADERS}
        self._out = [
            PREFACE if is_client else b"",
            frame(SETTINGS, 0, 0, settings_payload(settings)),
            frame(WINDOW_UPDATE, 0, 0, number_bytes(connection_window - DEFAULT_WINDOW)),
        ]

    # Out

    def output(self) -> bytes:
        """Take the bytes to write."""
        if not (out := self._out):
            return b""
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        return data

    @property
    def can_open(self) -> bool:
        """Whether another stream can be opened now."""
        return len(self._streams) < self._peer_streams and self._next <= LAST_NUMBER and not self._peer_leaves

    def open(self, fields: Text, *, ends: bool, is_head: bool = False) -> int:
        """Send the header of a request, on a stream of its own; returns its number."""
        block = self._writer.encode(fields)
        number = self._next
        self._next += 2
        stream = self._streams[number] = _Stream(self._peer_window, self._window)
        stream.is_head = is_head
        stream.sends = not ends
        self._out.append(header_frames(number, block, ends=ends))
        return number

    def send_headers(self, number: int, fields: Text, *, ends: bool) -> None:
        """Send the header of a message; raises StreamClosed."""
        stream = self._open_for_sending(number)
        self._out.append(header_frames(number, self._writer.encode(fields), ends=ends))
        if ends:
            stream.sends = False
            self._close_if_done(number, stream)

    def room(self, number: int) -> int:
        """The most bytes that one `send_data` may send now; raises StreamClosed."""
        return min(self._room, self._open_for_sending(number).room, LARGEST)

    def send_data(self, number: int, data: bytes, *, ends: bool) -> None:
        """Send a part of a body, at most as long as `room` says; raises StreamClosed."""
        stream = self._open_for_sending(number)
        size = len(data)
        self._room -= size
        stream.room -= size
        self._out.append(frame(DATA, END_STREAM if ends else 0, number, data))
        if ends:
            stream.sends = False
            self._close_if_done(number, stream)

    def acknowledge(self, number: int, counted: int) -> None:
        """Let the peer send as much again. On a closed stream, do nothing."""
        if (stream := self._streams.get(number)) is None:
            return
        stream.unread -= counted
        self._give_back(counted)
        if stream.receives:
            stream.taken += counted
            if stream.taken * 2 >= self._window:
                self._out.append(frame(WINDOW_UPDATE, 0, number, number_bytes(stream.taken)))
                stream.credit += stream.taken
                stream.taken = 0

    def reset(self, number: int, code: Code) -> None:
        """End a stream; do nothing if it has ended."""
        if (stream := self._streams.get(number)) is not None:
            self._out.append(frame(RST_STREAM, 0, number, number_bytes(code)))
            self._close(number, stream, was_reset=True)

    def ping(self, data: bytes) -> None:
        """Send a PING with these 8 bytes."""
        self._out.append(frame(PING, 0, 0, data))

    def close(self, code: Code) -> None:
        """Send GOAWAY. Later input is ignored."""
        if not self._is_over:
            self._is_over = True
            last = 0 if self._is_client else max(self._next - 2, 0)  # the highest stream of the peer's
            self._out.append(frame(GOAWAY, 0, 0, number_bytes(last, code)))

    def _open_for_sending(self, number: int) -> _Stream:
        stream = self._streams.get(number)
        if stream is None or not stream.sends:
            raise StreamClosed(f"stream {number} is not open")
        return stream

    def _give_back(self, counted: int) -> None:
        """Count bytes of the connection's window that may arrive again."""
        self._taken += counted
        if self._taken * 2 >= self._credit_of_all:
            self._out.append(frame(WINDOW_UPDATE, 0, 0, number_bytes(self._taken)))
            self._credit += self._taken
            self._taken = 0

    # The end of a stream

    def _close_if_done(self, number: int, stream: _Stream) -> None:
        if not (stream.sends or stream.receives):
            self._close(number, stream, was_reset=False)

    def _close(self, number: int, stream: _Stream, *, was_reset: bool) -> None:
        del self._streams[number]
        self._remember(number, was_reset=was_reset)
        if stream.unread:
            self._give_back(stream.unread)

    def _remember(self, number: int, *, was_reset: bool) -> None:
        closed = self._closed
        closed[number] = was_reset
        if len(closed) > REMEMBERED:
            del closed[next(iter(closed))]

    def _refuse(self, number: int, code: Code, detail: str) -> None:
        """End a stream because of an error on it (5.4.2)."""
        if number not in self._streams:
            self._out.append(frame(RST_STREAM, 0, number, number_bytes(code)))
            self._remember(number, was_reset=True)
            self._events.append(CHORE)
        else:
            self.reset(number, code)
            self._events.append(StreamReset(number, code, detail))

    # In

    def receive(self, data: bytes) -> list[Event]:
        """Return the events in these bytes. After `ConnectionFailed` and after `close` nothing is received any more."""
        if self._is_over:
            return []
        events = self._events = []
        handlers = self._handlers
        try:
            for kind, flags, number, payload in self._frames.feed(data):
                if self._block is not None and (kind != CONTINUATION or number != self._block[0]):
                    raise Fault(Code.PROTOCOL_ERROR, "a header block was interrupted by another frame")  # noqa: TRY301
                if not self._has_settings and kind != SETTINGS:
                    raise Fault(Code.PROTOCOL_ERROR, "the first frame is not SETTINGS")  # noqa: TRY301
                if kind < len(handlers):
                    handlers[kind](self, flags, number, payload)
                else:
                    events.append(CHORE)
        except Fault as fault:
            self.close(fault.code)
            events.append(ConnectionFailed(str(fault)))
        return events

    def _on_data(self, flags: int, number: int, payload: bytes) -> None:
        counted = len(payload)
        if counted > self._credit:
            raise Fault(Code.FLOW_CONTROL_ERROR, "more data than the window of the connection allows")
        self._credit -= counted
        data = without_padding(payload) if flags & PADDED else payload
        stream = self._streams.get(number)
        if stream is None or not stream.receives:
            self._give_back(counted)
            self._refuse_late(number)
            return
        if counted > stream.credit:
            raise Fault(Code.FLOW_CONTROL_ERROR, "more data than the window of a stream allows")
        stream.credit -= counted
        stream.unread += counted
        ends = bool(flags & END_STREAM)
        if not stream.has_head:
            self._refuse(number, Code.PROTOCOL_ERROR, "a body without a header")
            return
        if stream.left is not None:
            stream.left -= len(data)
            if stream.left < 0 or (ends and stream.left):
                self._refuse(number, Code.PROTOCOL_ERROR, "a body that is not as long as its content-length")
                return
        self._events.append(DataReceived(number, data, counted, ends))
        if ends:
            stream.receives = False
            self._close_if_done(number, stream)

    def _refuse_late(self, number: int) -> None:
        """Answer a frame on a stream whose end has arrived (5.1)."""
        if number in self._streams:
            self._refuse(number, Code.STREAM_CLOSED, "a frame after the end of its message")
            return
        if self._is_idle(number):
            raise Fault(Code.PROTOCOL_ERROR, f"a frame on stream {number}, which was never opened")
        if not self._closed.get(number, False):
            raise Fault(Code.STREAM_CLOSED, f"a frame on stream {number}, which has ended")
        self._out.append(frame(RST_STREAM, 0, number, number_bytes(Code.STREAM_CLOSED)))
        self._events.append(CHORE)  # each is answered, so thousands of them are a flood

    def _is_idle(self, number: int) -> bool:
        return number % 2 == 0 or number >= self._next

    def _on_headers(self, flags: int, number: int, payload: bytes) -> None:
        if flags & PADDED:
            payload = without_padding(payload)
        if flags & HAS_PRIORITY:
            if len(payload) < 5:
                raise Fault(Code.FRAME_SIZE_ERROR, "HEADERS is too short for its priority")
            _check_priority(number, payload)
            payload = payload[5:]
        if number % 2 == 0:
            raise Fault(Code.PROTOCOL_ERROR, f"HEADERS on stream {number}: clients open streams with odd numbers")
        if flags & END_HEADERS:
            self._on_block(number, payload, ends=bool(flags & END_STREAM))
        else:
            self._block = (number, flags, bytearray(payload))
            self._continuations = 0

    def _on_continuation(self, flags: int, number: int, payload: bytes) -> None:
        if self._block is None:
            raise Fault(Code.PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        _, first, block = self._block
        block += payload
        self._continuations += 1
        if self._continuations > MOST_CONTINUATIONS:
            raise Fault(Code.PROTOCOL_ERROR, f"more than {MOST_CONTINUATIONS} CONTINUATION frames in a header block")
        if len(block) > MOST_HEADERS:
            raise Fault(Code.ENHANCE_YOUR_CALM, f"a header block has more than {MOST_HEADERS:,} bytes")
        if flags & END_HEADERS:
            self._block = None
            self._on_block(number, bytes(block), ends=bool(first & END_STREAM))

    def _on_block(self, number: int, block: bytes, *, ends: bool) -> None:
        """Handle a whole header block. It is decoded whatever the stream's state: it changes the table (4.3)."""
        fields, is_valid = self._reader.decode(block)
        stream = self._streams.get(number)
        try:
            if stream is None:
                self._on_first(number, fields, is_valid=is_valid, ends=ends)
            elif not stream.receives:
                self._refuse_late(number)
            elif not is_valid:
                raise MalformedMessage(BAD_FIELD)  # noqa: TRY301
            elif stream.has_head:
                self._on_trailers(number, stream, fields, ends=ends)
            else:
                self._on_response(number, stream, fields, ends=ends)
        except MalformedMessage as error:
            self._refuse(number, Code.PROTOCOL_ERROR, str(error))

    def _on_first(self, number: int, fields: Fields, *, is_valid: bool, ends: bool) -> None:
        """Open a stream for a request."""
        if self._is_client:
            self._refuse_late(number)
            return
        if number < self._next:
            if number not in self._closed:  # 5.1.1: it was skipped, or closed long ago
                raise Fault(Code.PROTOCOL_ERROR, f"stream {number} is opened after a later one")
            self._refuse_late(number)
            return
        self._next = number + 2
        if len(self._streams) >= self._limit:
            self._refuse(number, Code.REFUSED_STREAM, "too many streams")
            return
        if not is_valid:
            raise MalformedMessage(BAD_FIELD)
        head = request_of(fields)
        if ends and head.length:
            raise MalformedMessage("a body that is not as long as its content-length")
        stream = self._streams[number] = _Stream(self._peer_window, self._window)
        stream.has_head, stream.receives, stream.left = True, not ends, head.length
        self._events.append(HeadReceived(number, head, ends))

    def _on_response(self, number: int, stream: _Stream, fields: Fields, *, ends: bool) -> None:
        head = response_of(fields)
        if head.status < 200:
            if ends:
                raise MalformedMessage("a response that ends before its final status")
            return
        has_body = not (stream.is_head or head.status in (204, 304))
        if ends and has_body and head.length:
            raise MalformedMessage("a body that is not as long as its content-length")
        stream.has_head, stream.left = True, head.length if has_body else 0
        self._events.append(HeadReceived(number, head, ends))
        if ends:
            stream.receives = False
            self._close_if_done(number, stream)

    def _on_trailers(self, number: int, stream: _Stream, fields: Fields, *, ends: bool) -> None:
        check_trailers(fields)
        if not ends:
            raise MalformedMessage("trailers that do not end their message")
        if stream.left:
            raise MalformedMessage("a body that is not as long as its content-length")
        stream.receives = False
        self._events.append(DataReceived(number, b"", 0, ends=True))
        self._close_if_done(number, stream)

    def _on_priority(self, flags: int, number: int, payload: bytes) -> None:  # noqa: ARG002
        if not number:
            raise Fault(Code.PROTOCOL_ERROR, "PRIORITY without a stream")
        if len(payload) != 5:
            raise Fault(Code.FRAME_SIZE_ERROR, f"PRIORITY must have 5 bytes, got {len(payload)}")
        _check_priority(number, payload)
        self._events.append(CHORE)

    def _on_reset(self, flags: int, number: int, payload: bytes) -> None:  # noqa: ARG002
        code = number_in(payload, "RST_STREAM")
        if self._is_idle(number):
            raise Fault(Code.PROTOCOL_ERROR, f"RST_STREAM on stream {number}, which was never opened")
        if (stream := self._streams.get(number)) is not None:
            self._close(number, stream, was_reset=True)
            self._events.append(StreamReset(number, code))

    def _on_settings(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise Fault(Code.PROTOCOL_ERROR, "SETTINGS on a stream")
        if flags & ACK:
            if payload:
                raise Fault(Code.FRAME_SIZE_ERROR, "an acknowledgement of SETTINGS with settings")
            if not self._has_settings:
                raise Fault(Code.PROTOCOL_ERROR, "the first frame is not SETTINGS")
            return
        self._has_settings = True
        for name, value in dict(read_settings(payload)).items():  # the last of each counts
            self._set(name, value)
        self._out.append(frame(SETTINGS, ACK, 0))
        self._events += (WINDOW_CHANGED, CHORE)

    def _set(self, name: int, value: int) -> None:
        """Apply a setting of the peer (6.5.2)."""
        if name == INITIAL_WINDOW_SIZE:
            if value > LARGEST_WINDOW:
                raise Fault(Code.FLOW_CONTROL_ERROR, f"the window of a stream must not exceed {LARGEST_WINDOW:,}")
            change, self._peer_window = value - self._peer_window, value
            for stream in self._streams.values():
                stream.room += change
                if stream.room > LARGEST_WINDOW:
                    raise Fault(Code.FLOW_CONTROL_ERROR, f"the window of a stream exceeds {LARGEST_WINDOW:,}")
        elif name == HEADER_TABLE_SIZE:
            self._writer.resize(value)
        elif name == MAX_CONCURRENT_STREAMS:
            self._peer_streams = value
        elif name == MAX_FRAME_SIZE:
            if not LARGEST <= value < 2**24:
                raise Fault(
                    Code.PROTOCOL_ERROR, f"MAX_FRAME_SIZE must be from {LARGEST:,} to 16,777,215, got {value:,}"
                )
        elif name == ENABLE_PUSH and value > (0 if self._is_client else 1):
            raise Fault(Code.PROTOCOL_ERROR, f"ENABLE_PUSH must not be {value}")

    def _on_push_promise(self, flags: int, number: int, payload: bytes) -> None:  # noqa: ARG002
        raise Fault(Code.PROTOCOL_ERROR, "PUSH_PROMISE is not allowed here")

    def _on_ping(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise Fault(Code.PROTOCOL_ERROR, "PING on a stream")
        if len(payload) != 8:
            raise Fault(Code.FRAME_SIZE_ERROR, f"PING must have 8 bytes, got {len(payload)}")
        if not flags & ACK:
            self._out.append(frame(PING, ACK, 0, payload))
            self._events.append(CHORE)

    def _on_goaway(self, flags: int, number: int, payload: bytes) -> None:  # noqa: ARG002
        if number:
            raise Fault(Code.PROTOCOL_ERROR, "GOAWAY on a stream")
        if len(payload) < 8:
            raise Fault(Code.FRAME_SIZE_ERROR, f"GOAWAY must have at least 8 bytes, got {len(payload)}")
        self._peer_leaves = True
        if self._is_client:  # the peer of a server names a stream of the server's own, and a server opens none
            last = int.from_bytes(payload[:4], "big") & LAST_NUMBER
            for refused in [it for it in self._streams if it > last]:
                self._close(refused, self._streams[refused], was_reset=True)
                self._events.append(StreamReset(refused, Code.REFUSED_STREAM, "the server is closing the connection"))
        self._events.append(GoAwayReceived(int.from_bytes(payload[4:8], "big")))

    def _on_window_update(self, flags: int, number: int, payload: bytes) -> None:  # noqa: ARG002
        more = number_in(payload, "WINDOW_UPDATE") & LARGEST_WINDOW
        if not number:
            self._room += more
            if not more:
                raise Fault(Code.PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
            if self._room > LARGEST_WINDOW:
                raise Fault(Code.FLOW_CONTROL_ERROR, f"the window of the connection exceeds {LARGEST_WINDOW:,}")
        elif self._is_idle(number):
            raise Fault(Code.PROTOCOL_ERROR, f"WINDOW_UPDATE on stream {number}, which was never opened")
        elif not more:  # also on a stream that has closed
            self._refuse(number, Code.PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
        elif (stream := self._streams.get(number)) is None:
            return
        else:
            stream.room += more
            if stream.room > LARGEST_WINDOW:
                self._refuse(number, Code.FLOW_CONTROL_ERROR, f"the window of a stream exceeds {LARGEST_WINDOW:,}")
        if not self._events or self._events[-1] is not WINDOW_CHANGED:  # there may be thousands in one read
            self._events.append(WINDOW_CHANGED)

    _handlers: ClassVar[tuple[Callable[..., None], ...]] = (
        _on_data,
        _on_headers,
        _on_priority,
        _on_reset,
        _on_settings,
        _on_push_promise,
        _on_ping,
        _on_goaway,
        _on_window_update,
        _on_continuation,
    )
    """The handler of each kind of frame, by its number."""


def _check_priority(number: int, payload: bytes) -> None:
    if int.from_bytes(payload[:4], "big") & LAST_NUMBER == number:
        raise Fault(Code.PROTOCOL_ERROR, f"stream {number} depends on itself")
