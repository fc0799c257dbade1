"""Which handler takes which method, ready to be called: what `dispatch` makes and a `Connection` uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from accord.jsonrpc.frames import RequestId


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
        """Told of a notification where it arrives, before it stands in a lane, with its params also as they came."""
        self.tell = tell or _no_handler
        self.call = call or _no_handler
        """Takes the params and what is owed for them (`serving.Owed`)."""
        self.answer = answer or _no_handler
        """Makes the answer's frame from what the handler returned; raises EncodeError."""
        self.immediate = immediate
        """Whether it acts on arrival, never through a lane."""


class Routes:
    """All the routes of one side."""

    __slots__ = ("calls", "makers", "other_call", "other_tell", "tells")

    def __init__(self) -> None:
        self.calls: dict[str, Route] = {}
        """Those of the requests that have come: a connection of a server never sees most of its methods."""
        self.tells: dict[str, Route] = {}
        self.makers: list[Callable[[str], Route | None]] = []
        """Who makes the routes of requests; the last one has the first word."""
        self.other_call: Callable[[str], Route | None] = _nobody
        """Who takes a request that no route is for."""
        self.other_tell: Callable[[str], Route | None] = _nobody

    def call(self, method: str) -> Route | None:
        """The way of a request that comes for the first time."""
        for make in reversed(self.makers):
            if (route := make(method)) is not None:
                self.calls[method] = route
                return route
        return self.other_call(method)


def _nobody(_: str) -> Route | None:
    return None


def _no_handler(*_: Any) -> Any:
    raise LookupError("this route has no such direction")
