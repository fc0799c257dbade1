"""Requests that are held until the peer has read some of our output, in the order of arrival and by session.

A request that is held keeps its bytes, and is not decoded. Only the session that it names is read, because a
notification that acts at once, such as a cancellation, starts the earlier requests of its session. See `backlog` for
the reason to hold requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec
from msgspec import Raw

from accord.engine.backlog import Backlog
from accord.engine.incoming_request import IncomingRequest
from accord.jsonrpc.wire_messages import RequestFrame
from accord.schema.codec import REFUSALS

EMPTY = Raw(b"{}")
"""The params of a message that has none."""

WEIGHT = 1_000
"""Bytes that a request takes while it is held, its frame aside."""


class HeldRequests:
    """The requests that wait for room in the output."""

    __slots__ = ("_backlog", "_in_order", "_of", "count")

    def __init__(self, backlog: Backlog) -> None:
        self.count = 0
        self._backlog = backlog
        self._in_order: deque[tuple[IncomingRequest, int]] | None = (
            None  # an empty deque takes 760 bytes of each connection
        )
        """Requests that a cancellation has started early stay here, and are counted, until their turn comes."""
        self._of: dict[str | None, deque[IncomingRequest]] = {}

    def put(self, request: IncomingRequest, message: RequestFrame) -> None:
        """Hold this request, after all others."""
        size = request.size + WEIGHT
        request.lane, request.size = _session_of(message), 0
        self.count += 1
        if self._in_order is None:
            self._in_order = deque()
        self._in_order.append((request, size))
        self._of.setdefault(request.lane, deque()).append(request)
        self._backlog.add(size)

    def begun(self, request: IncomingRequest, size: int) -> None:
        """This request is no longer held: its handler starts."""
        request.size = size
        self.count -= 1

    def drop(self) -> None:
        """Forget all of them."""
        self.count = 0
        self._in_order = None
        self._of.clear()

    def take(self) -> IncomingRequest | None:
        """Remove and return the next one; None if none is left."""
        while self._in_order:
            request, size = self._in_order.popleft()
            self._backlog.remove(size)
            if request.size == 0:
                of_session = self._of[request.lane]
                of_session.popleft()
                if not of_session:
                    del self._of[request.lane]
                return request
        return None

    def take_all_of(self, lane: str | None) -> Iterable[IncomingRequest]:
        """Remove and return those of this session."""
        return self._of.pop(lane, ())


class _InSession(msgspec.Struct):
    session_id: str | None = msgspec.field(default=None, name="sessionId")


_in_session = msgspec.json.Decoder(_InSession)


def _session_of(message: RequestFrame) -> str | None:
    """The session that a request names; None also for invalid params, which get an error later."""
    try:
        return _in_session.decode(message.params or EMPTY).session_id
    except REFUSALS:
        return None
