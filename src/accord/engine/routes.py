"""The route of each method: how its params are read, which handler is called, and how its answer is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from accord.errors import DecodeError
from accord.jsonrpc.frames import RequestId
from accord.schema.codec import REFUSALS

MISFITS = (*REFUSALS, DecodeError)
"""What `Route.decode` raises: a strict decoder a refusal of msgspec, the one for plain values a DecodeError."""


class Route:
    """One method's way from raw params to its handler, and from its result to raw JSON."""

    __slots__ = (
        "answer",
        "arrived",
        "call",
        "decode",
        "decode_tolerantly",
        "immediate",
        "lane_of",
        "method",
        "suspends",
        "tell",
    )

    def __init__(
        self,
        method: str,
        *,
        decode: Callable[[bytes | Raw], Any],
        decode_tolerantly: Callable[[bytes | Raw], Any],
        lane_of: Callable[[Any], str | None],
        suspends: bool,
        tell: Callable[[Any], Any] | None = None,
        call: Callable[[Any, Any], Any] | None = None,
        answer: Callable[[RequestId, Any], bytes] | None = None,
        immediate: bool = False,
    ) -> None:
        self.method = method
        self.decode = decode
        """Strict and fast; raises one of `codec.REFUSALS`."""
        self.decode_tolerantly = decode_tolerantly
        """For what the strict way refused; raises DecodeError."""
        self.lane_of = lane_of
        """The session that these params belong to."""
        self.suspends = suspends
        """Whether the handler is an `async def`."""
        self.arrived: Callable[[Any, bytes | Raw], None] | None = None
        """Called with each notification on arrival, before it enters a lane: its params as a value, and as JSON."""
        self.tell = tell or _no_handler
        self.call = call or _no_handler
        """Takes the params and the request that they belong to (`answering.Owed`)."""
        self.answer = answer or _no_handler
        """Makes the answer's frame from what the handler returned; raises EncodeError."""
        self.immediate = immediate
        """Whether it acts on arrival, never through a lane."""

    def read(self, raw: bytes | Raw) -> Any:
        """The params in this JSON; raises DecodeError."""
        try:
            return self.decode(raw)
        except MISFITS:
            return self.decode_tolerantly(raw)


class Routes:
    """The routes of one connection."""

    __slots__ = ("calls", "makers", "other_call", "other_tell", "tells")

    def __init__(self) -> None:
        self.calls: dict[str, Route] = {}
        """Routes of requests, made when their method first arrives: most connections see few of the methods."""
        self.tells: dict[str, Route] = {}
        self.makers: list[Callable[[str], Route | None]] = []
        """Functions that make the routes of requests. The one that was added last is tried first."""
        self.other_call: Callable[[str], Route | None] = _no_route
        """Makes the route of a request that no maker knows."""
        self.other_tell: Callable[[str], Route | None] = _no_route
        """Makes the route of a notification that is not in `tells`."""

    def call(self, method: str) -> Route | None:
        """The route of a request whose method arrives for the first time; None if no handler takes it."""
        for make in reversed(self.makers):
            if (route := make(method)) is not None:
                self.calls[method] = route
                return route
        return self.other_call(method)


def _no_route(_: str) -> Route | None:
    return None


def _no_handler(*_: Any) -> Any:
    raise LookupError(
        "this route is for the other kind of message: requests and notifications have routes of their own"
    )
