"""The event streams of one connection: numbers messages, and keeps them to be sent again. PURE.

    put(frame, where it belongs) ──▶ number ──▶ its stream ──▶ take ──▶ kept, until the limit is reached
                                                    ▲                     │
                                                    └──── resume(last) ◀──┘

A message of a session goes over that session's stream, all others over the connection's stream; `calls` decides which.
A message waits here, and is counted, until the client reads its stream. After that it is kept for a client that resumes
the stream; past the limit, the oldest messages are dropped. A client that resumes too late gets an error: missed
messages are never skipped silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from accord.http.server.server_limits import ServerLimits
from accord.http.server.unanswered_requests import StreamRoute


class Numbered(NamedTuple):
    """A message and its number."""

    number: int
    frame: bytes


class NotReplayable(Exception):
    """The client resumes after a message whose successors are no longer kept."""


class Stream(msgspec.Struct, eq=False):
    """The messages of one session, or of the connection (`key` is None)."""

    key: str | None
    known: bool
    """Whether a message has named the session; a client may open its stream before that."""
    waiting: list[Numbered] = []
    handed_out: int = 0
    """The number of the last message that a reader took."""
    dropped: int = 0
    """The number of the last message that is no longer kept."""
    open: bool = False
    """Whether a reader is connected."""
    over: bool = False
    """Whether the session was closed, so that the stream can be dropped when its reader disconnects."""


class Streams:
    """The streams of one connection. `keep` is how many bytes of sent messages are kept."""

    def __init__(self, keep: int = ServerLimits().kept) -> None:
        self.waiting_bytes = 0
        self.connection = Stream(None, known=True)
        self.sessions: dict[str, Stream] = {}
        """The streams of the sessions that this connection knows."""
        self._numbers = 0
        self._keep = keep
        self._replayable: list[tuple[Stream, Numbered]] = []
        self._replayable_bytes = 0

    def put(self, frame: bytes, sent: StreamRoute) -> tuple[Stream, bool]:
        """Number this message and add it to its stream; returns that stream, and whether a stream is new."""
        known = len(self.sessions)
        if sent.made is not None:
            self.session(sent.made)
        stream = self.connection if sent.session is None else self.session(sent.session)
        if sent.closes is not None:
            stream.over = sent.closes
        self._numbers += 1
        stream.waiting.append(Numbered(self._numbers, frame))
        self.waiting_bytes += len(frame)
        return stream, len(self.sessions) > known

    def session(self, key: str) -> Stream:
        """The stream of a session that a message has named."""
        stream = self.expect(key)
        stream.known = True
        return stream

    def expect(self, key: str) -> Stream:
        """The stream of a session that the client is about to load."""
        stream = self.sessions.get(key)
        if stream is None:
            stream = self.sessions[key] = Stream(key, known=False)
        return stream

    # Reading

    def take(self, stream: Stream, limit: int) -> list[Numbered]:
        """Take the next messages of this stream: about `limit` bytes, and at least one if any waits."""
        taken: list[Numbered] = []
        size = 0
        for message in stream.waiting:
            if taken and size + len(message.frame) > limit:
                break
            taken.append(message)
            size += len(message.frame)
            self._replayable.append((stream, message))
        if taken:
            del stream.waiting[: len(taken)]
            stream.handed_out = taken[-1].number
            self.waiting_bytes -= size
            self._replayable_bytes += size
            self._drop_oldest()
        return taken

    def _drop_oldest(self) -> None:
        oldest = 0
        while self._replayable_bytes > self._keep and oldest < len(self._replayable) - 1:
            stream, message = self._replayable[oldest]
            self._replayable_bytes -= len(message.frame)
            stream.dropped = message.number
            oldest += 1
        del self._replayable[:oldest]

    def resume(self, stream: Stream, last: int) -> None:
        """Queue again every message of this stream after the number `last`; raises NotReplayable."""
        if last > stream.handed_out:
            raise NotReplayable(f"message {last} was never sent on this stream")
        if last < stream.dropped:
            raise NotReplayable(
                f"cannot resume after message {last}: messages up to {stream.dropped} are no longer kept"
            )
        again = [message for message in self._replayable_of(stream) if message.number > last]
        again_bytes = sum(len(message.frame) for message in again)
        self._replayable = [pair for pair in self._replayable if pair[0] is not stream or pair[1].number <= last]
        self._replayable_bytes -= again_bytes
        self.waiting_bytes += again_bytes
        stream.waiting[:0] = again
        stream.handed_out = last

    def _replayable_of(self, stream: Stream) -> Iterator[Numbered]:
        return (message for owner, message in self._replayable if owner is stream)

    def forget(self, stream: Stream) -> None:
        """Drop this stream after its reader has disconnected, if its session was closed or never opened.

        A stream with waiting messages stays, because numbers must have no gaps.
        """
        is_unused = (stream.over or not stream.known) and not stream.waiting
        if stream.key is not None and is_unused and self.sessions.get(stream.key) is stream:
            del self.sessions[stream.key]
            self._replayable_bytes -= sum(len(message.frame) for message in self._replayable_of(stream))
            self._replayable = [pair for pair in self._replayable if pair[0] is not stream]
