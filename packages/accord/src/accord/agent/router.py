"""`Router`: reads `initialize` before it has a type, chooses the version, and lets the handlers of that version answer.

An `initialize` that fails leaves the router in place: the client may try again, also with another version. One that was
answered well decides the version of the connection for good. In version 2 it may be repeated until another request
comes, with the chosen version or a higher one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from accord.agent.negotiation import Version, chosen_version, version_asked, with_known_parts
from accord.engine.incoming_request import IncomingRequest
from accord.engine.peer import Peer
from accord.engine.routes import Route, Routes
from accord.errors import DecodeError, RequestError
from accord.jsonrpc.line_frames import RequestId
from accord.schema import codec

INITIALIZE = "initialize"


class Refused(msgspec.Struct, frozen=True):
    """An `initialize` that asks for a version that is not served."""

    error: RequestError


class Chosen(msgspec.Struct, frozen=True):
    """An `initialize` as the chosen version reads it."""

    version: Version
    route: Route
    request: Any


class Router:
    """The route of `initialize`, for an agent of several versions or of one.

    `routes_of` gives the routes of a version; `choose` is called with the version before its handler runs.
    """

    def __init__(
        self,
        served: Sequence[Version],
        routes_of: Callable[[Version], Routes],
        choose: Callable[[Version], None],
    ) -> None:
        self._served = tuple(served)
        self._routes_of = routes_of
        self._choose = choose
        self._chosen: Chosen | None = None
        """The `initialize` that is being answered."""
        self._agreed: Version | None = None
        """The version of the connection, once an `initialize` was answered well."""

    def add_routes(self, routes: Routes, peer: Peer) -> None:  # noqa: ARG002
        """Put the route of `initialize` before all others; the part of a `RouteSource`."""
        route = Route(
            INITIALIZE,
            decode=self._read,
            decode_tolerantly=self._read,
            lane_of=_no_session,
            suspends=False,
            call=self._call,
            answer=self._answer,
            handshake=True,
        )
        routes.makers.append(lambda method: route if method == INITIALIZE else None)
        routes.calls.pop(INITIALIZE, None)

    def _read(self, raw: bytes | Raw) -> Chosen | Refused:
        params = codec.loads(raw)
        asked = version_asked(params)
        try:
            version = chosen_version(asked, self._served)
        except RequestError as error:
            return Refused(error)
        if self._agreed is not None and version < self._agreed:
            return Refused(RequestError.invalid_request("the connection is already initialized with a higher version"))
        route = self._routes_of(version).call(INITIALIZE)
        if route is None:
            raise DecodeError("$.protocolVersion", f"version {version} has no handler")
        fitting = raw if asked <= version else Raw(codec.encode(with_known_parts(params, version)))
        return Chosen(version, route, route.read(fitting))

    def _call(self, read: Chosen | Refused, owed: IncomingRequest) -> Any:
        if isinstance(read, Refused):
            raise read.error
        self._choose(read.version)
        self._chosen = read
        return read.route.call(read.request, owed)

    def _answer(self, request_id: RequestId, result: Any) -> bytes:
        assert self._chosen is not None, "a result without a chosen version"
        frame: bytes = self._chosen.route.answer(request_id, result)
        self._agreed = self._chosen.version
        return frame


def _no_session(_: Any) -> None:
    return None
