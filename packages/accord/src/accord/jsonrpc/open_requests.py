"""The requests of one connection, both ways: ids, open requests, owed answers, abandoned requests. Pure.

Each direction has ids of its own: a 1 that we send and a 1 that we receive are two requests. Ids are compared with
their type: Python's dictionaries keep `1` and `"1"` apart, and `parse` accepts no boolean or fraction as an id.

| our requests | |
|---|---|
| `add_outgoing(note) -> id` | we send a request |
| `answered(id) -> note` | its answer arrives: its note, once; None if no open request has this id |
| `abandon(id) -> bool` | we no longer want the answer; if it still arrives, it does not count as a stray |

| the peer's requests | |
|---|---|
| `add_incoming(key, note) -> bool` | a request arrives; False if an unanswered one has the same key |
| `remove_incoming(key) -> bool` | we answer it: True once, then False |

A *note* is the object that the engine keeps with an open request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from accord.jsonrpc.line_frames import RequestId

OutgoingT = TypeVar("OutgoingT")
IncomingT = TypeVar("IncomingT")

MOST_ABANDONED = 10_000
"""Ids of abandoned requests that are remembered. Past it the oldest is forgotten; its late answer is then a stray."""


def key_of(request_id: RequestId) -> Hashable:
    """A dictionary key for an id that the peer has chosen.

    Python hashes an integer to its remainder modulo 2**61 - 1. A peer that may choose integers of any size could make
    them all collide, and each look-up would compare them all. Of the integers within 64 bits only a few share a hash.
    Larger ones are looked up by their text, whose hash the peer cannot predict.
    """
    if isinstance(request_id, int) and not _LEAST <= request_id <= _MOST:
        return (hex(request_id),)  # a tuple, so that it differs from each id that is a string
    return request_id


def head_of(request_id: int) -> bytes:
    """How nearly every peer begins the answer to the request of ours that has this id: up to the result or error.

    Open requests are looked up by it, so an answer that begins like this is found before its envelope is read.
    """
    return _HEAD % request_id


class OpenRequests(Generic[OutgoingT, IncomingT]):
    """The open requests of both sides of one connection."""

    __slots__ = ("_abandoned", "_next_id", "incoming", "outgoing", "strays")

    def __init__(self) -> None:
        self.outgoing: dict[bytes, OutgoingT] = {}
        """Our open requests, by the `head_of` their answers."""
        self.incoming: dict[Hashable, IncomingT] = {}
        """The peer's unanswered requests, by the `key_of` their ids."""
        self.strays = 0
        """How many answers belonged to no request of ours."""
        self._abandoned: OrderedDict[int, None] = OrderedDict()
        self._next_id = 1

    def add_outgoing(self, note: OutgoingT) -> int:
        """A new id for our request; it is never used again on this connection."""
        request_id = self._next_id
        self._next_id = request_id + 1
        self.outgoing[_HEAD % request_id] = note
        return request_id

    def is_open(self, request_id: int) -> bool:
        """Whether this request of ours is neither answered nor abandoned."""
        return head_of(request_id) in self.outgoing

    def forget(self, request_id: int) -> OutgoingT | None:
        """Remove this request of ours, without expecting its answer; its note, or None if it is not open."""
        return self.outgoing.pop(head_of(request_id), None)

    def answered(self, request_id: RequestId | None) -> OutgoingT | None:
        """An answer has arrived: the note of its request, or None if no open request has this id."""
        if isinstance(request_id, int):
            note = self.forget(request_id)
            if note is not None:
                return note
            if request_id in self._abandoned:
                del self._abandoned[request_id]
                return None
        self.strays += 1
        return None

    def abandon(self, request_id: int) -> bool:
        """Forget this request. False if its answer has arrived: then there is nothing to cancel."""
        if self.forget(request_id) is None:
            return False
        self._abandoned[request_id] = None
        if len(self._abandoned) > MOST_ABANDONED:
            self._abandoned.popitem(last=False)
        return True

    def add_incoming(self, key: Hashable, note: IncomingT) -> bool:
        """A request of the peer has arrived. False if an unanswered one has the same key."""
        if key in self.incoming:
            return False
        self.incoming[key] = note
        return True

    def has_incoming(self, request_id: RequestId | None) -> bool:
        """Whether a request with this id is unanswered: an answer with the id would be its answer."""
        return request_id is not None and key_of(request_id) in self.incoming

    def remove_incoming(self, key: Hashable) -> bool:
        """Mark this request as answered. True exactly once: after False, no answer may be sent."""
        return self.incoming.pop(key, None) is not None

    def drop_all(self) -> Iterator[OutgoingT]:
        """Remove and yield all open requests of ours, oldest first, at the end of the connection."""
        while self.outgoing:
            for head in list(self.outgoing):
                # The caller's work on one request may have abandoned another.
                if (note := self.outgoing.pop(head, None)) is not None:
                    yield note


_HEAD = b'{"jsonrpc":"2.0","id":%d'
_LEAST, _MOST = -(2**63), 2**64 - 1
