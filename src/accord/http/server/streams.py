"""What a server sends on one connection: its number, its stream, and what is kept to be sent again. PURE.

    put(frame) ──▶ number ──▶ the stream it belongs to ──▶ take ──▶ kept, until there is too much of it
                                                  ▲                   │
                                                  └── resume(last) ◀──┘

A message of a session (its params name it, or it answers a request that did) goes over that session's stream, the rest
over the connection's. Until somebody reads its stream a message waits here, and counts. Once handed out it is kept for
a reader that comes back and says how far it got, oldest given up first. A reader that comes back too late is told so:
what it missed is never skipped in silence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from accord.http.headers import MAKES_SESSION_KNOWN, SESSION_ANSWERED_ON_CONNECTION, session_of
from accord.http.server.limits import ServerLimits
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Answer, Call, Malformed, Message, Tell, parse


class Numbered(NamedTuple):
    number: int
    frame: bytes


class NotKept(Exception):
    """A reader wants to go on from a message behind which not everything is there any more."""


class Stream:
    """The messages of one session, or those of no session (key None)."""

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.waiting: deque[Numbered] = deque()
        self.handed_out = 0
        """The number of the last message that was handed to a reader."""
        self.given_up = 0
        """The number of the last message that was kept and is no more."""
        self.open = False
        """Whether a reader is here."""
        self.known = key is None
        """Whether a message has named the session; a stream may be opened before that."""
        self.over = False
        """Whether the session was closed, so that all of this can go with its reader."""


class Streams:
    """The streams of one connection."""

    def __init__(self, keep: int = ServerLimits().kept, requests: int = ServerLimits().requests) -> None:
        self.waiting_bytes = 0
        self.connection = Stream(None)
        self.sessions: dict[str, Stream] = {}
        """The sessions that the connection knows."""
        self._numbers = 0
        self._keep = keep
        self._most_requests = requests
        self._kept: deque[tuple[Stream, Numbered]] = deque()
        self._kept_bytes = 0
        self._theirs: dict[RequestId, _Asked] = {}
        """The client's requests that wait for an answer."""
        self._ours: dict[RequestId, str | None] = {}
        """The agent's requests that wait for an answer, oldest first, and the session of each."""

    # What the client sent decides where its answer goes

    @property
    def unanswered(self) -> int:
        """How many requests of the client wait for an answer."""
        return len(self._theirs)

    def asked(self, call: Call, session: str | None) -> None:
        """The client has sent this request."""
        if session is not None and call.method in MAKES_SESSION_KNOWN:
            self.session(session)
        self._theirs[call.id] = _Asked(call.method, session)

    def session_of_ours(self, request_id: RequestId | None) -> str | None:
        """The session of a request of ours that waits for the client's answer."""
        return None if request_id is None else self._ours.get(request_id)

    def answered(self, request_id: RequestId | None) -> None:
        """The client has answered a request of ours."""
        if request_id is not None:
            self._ours.pop(request_id, None)

    # What the agent sends

    def put(self, frame: bytes) -> tuple[Stream, bool]:
        """Give this message a number and a place; its stream, and whether that is a new session's."""
        known = len(self.sessions)
        stream = self._stream_of(parse(frame))
        self._numbers += 1
        stream.waiting.append(Numbered(self._numbers, frame))
        self.waiting_bytes += len(frame)
        return stream, len(self.sessions) > known

    def _stream_of(self, message: Message | Malformed) -> Stream:
        match message:
            case Answer():
                return self._stream_of_answer(message)
            case Call() | Tell():
                session = session_of(message.params)
                if isinstance(message, Call):
                    self._ask(message.id, session)
                return self.connection if session is None else self.session(session)
            case _:  # not for us to judge: whoever reads it will say so
                return self.connection

    def _ask(self, request_id: RequestId, session: str | None) -> None:
        self._ours[request_id] = session
        if len(self._ours) > self._most_requests:  # an answer to the oldest is still delivered, its header unchecked
            del self._ours[next(iter(self._ours))]

    def _stream_of_answer(self, answer: Answer) -> Stream:
        asked = None if answer.id is None else self._theirs.pop(answer.id, None)
        if answer.error is None and (made := session_of(answer.result)) is not None:
            self.session(made)
        if asked is None or asked.session is None or asked.method in SESSION_ANSWERED_ON_CONNECTION:
            return self.connection
        stream = self.session(asked.session)
        stream.over = answer.error is None and asked.method in ("session/close", "session/delete")
        return stream

    def session(self, key: str) -> Stream:
        """The stream of a session that a message names."""
        stream = self.expect(key)
        stream.known = True
        return stream

    def expect(self, key: str) -> Stream:
        """The stream of a session that somebody means to load."""
        stream = self.sessions.get(key)
        if stream is None:
            stream = self.sessions[key] = Stream(key)
        return stream

    # What readers take

    def take(self, stream: Stream, limit: int) -> list[Numbered]:
        """The next messages of this stream, about `limit` bytes of them, and at least one if there is any."""
        taken: list[Numbered] = []
        size = 0
        while stream.waiting and (not taken or size + len(stream.waiting[0].frame) <= limit):
            taken.append(message := stream.waiting.popleft())
            size += len(message.frame)
            self._kept.append((stream, message))
        if taken:
            stream.handed_out = taken[-1].number
            self.waiting_bytes -= size
            self._kept_bytes += size
            self._give_up_oldest()
        return taken

    def _give_up_oldest(self) -> None:
        while self._kept_bytes > self._keep and len(self._kept) > 1:
            stream, message = self._kept.popleft()
            self._kept_bytes -= len(message.frame)
            stream.given_up = message.number

    def resume(self, stream: Stream, last: int) -> None:
        """A reader is back, and has got everything up to this number; raises Gone."""
        if last > stream.handed_out:
            raise NotKept(f"message {last} was never sent on this stream")
        if last < stream.given_up:
            raise NotKept(f"message {stream.given_up} is not kept any more, and only {last} was received")
        again = [message for message in self._kept_of(stream) if message.number > last]
        again_bytes = sum(len(message.frame) for message in again)
        self._kept = deque(kept for kept in self._kept if kept[0] is not stream or kept[1].number <= last)
        self._kept_bytes -= again_bytes
        self.waiting_bytes += again_bytes
        stream.waiting.extendleft(reversed(again))
        stream.handed_out = last

    def _kept_of(self, stream: Stream) -> Iterator[Numbered]:
        return (message for owner, message in self._kept if owner is stream)

    def forget(self, stream: Stream) -> None:
        """A reader has gone: so has its stream, where its session was closed or never came.

        What waits in it stays all the same: numbers have no gaps.
        """
        needless = (stream.over or not stream.known) and not stream.waiting
        if stream.key is not None and needless and self.sessions.get(stream.key) is stream:
            del self.sessions[stream.key]
            self._kept_bytes -= sum(len(message.frame) for message in self._kept_of(stream))
            self._kept = deque(kept for kept in self._kept if kept[0] is not stream)


class _Asked(NamedTuple):
    method: str
    session: str | None
