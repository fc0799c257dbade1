"""The deadlines and limits of a connection, and the counts of what it has done."""

from __future__ import annotations

import msgspec

from accord.engine.backlog import BACKLOG, STALLED
from accord.engine.read_pause import MARK


class Limits(msgspec.Struct, frozen=True):
    """The deadlines and limits of a connection. The defaults suit an editor and an agent on one machine."""

    grace: float = 1.0
    """Seconds that each step of closing may take."""
    stuck_after: float = 10.0
    """Seconds without progress in a session's handlers, after which the answers that wait for them are released."""
    intake: int = MARK
    """Bytes of notifications that may wait for their handlers. Past it reading pauses, if it can pause."""
    lane: int = 64 * 1024 * 1024
    """Bytes that may wait when reading cannot pause. Past it the notifications of the fullest session are dropped."""
    reply: int = 64 * 1024 * 1024
    """Bytes of updates that a Reply keeps for its reader when reading cannot pause. Past it the Reply fails."""
    early: int = 16 * 1024 * 1024
    """Bytes of updates that a client keeps for sessions that it does not know yet."""
    state: int = 32 * 1024 * 1024
    """Bytes that a client keeps of a session's state. Past it the oldest messages are forgotten."""
    backlog: int = BACKLOG
    """Bytes of waiting requests and of answers, while the peer does not read answers. Past it reading stops."""
    stalled: float = STALLED
    """Seconds that `backlog` may stop reading while the peer reads none of our output. Then the connection ends."""
    handling: int = 1_000
    """Requests of the peer that are handled at the same time. More are refused with an error."""
    handling_bytes: int = 64 * 1024 * 1024
    """Bytes of those requests together. More are refused with an error, unless there is just one."""


class Statistics(msgspec.Struct, frozen=True):
    """What a connection has done and is doing."""

    frames_in: int
    """Messages received, malformed ones included."""
    frames_out: int
    """Messages sent."""
    bytes_in: int
    """Bytes of the messages received, without what the transport adds to them."""
    bytes_out: int
    """Bytes of the messages sent, without what the transport adds to them."""
    pending: int
    """Our requests that are not answered yet."""
    handling: int
    """The peer's requests that are not answered yet, those that wait for room in the output included."""
    queued: int
    """About how many bytes of memory the notifications take that wait for their handlers."""
    unsent: int
    """Bytes of output that the peer has not read."""
    ignored: int
    """Notifications without a handler, or with params that could not be read."""
    malformed: int
    """Frames that were not valid messages, or too large."""
    pollution: int
    """Lines on an agent's standard output that were not JSON."""
    strays: int
    """Answers to requests that we did not make."""
