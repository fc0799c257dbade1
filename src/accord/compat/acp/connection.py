"""`Connection`: JSON-RPC by method names and plain values, on our engine."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Self

import msgspec

from accord.compat.acp.exceptions import RequestError
from accord.compat.acp.meta import AGENT_METHODS, CLIENT_METHODS
from accord.compat.message_transport import Messages, MessageTransport
from accord.compat.models import ValidationError
from accord.compat.models.dumping import encode
from accord.compat.observing import Observers, StreamDirection, StreamEvent, StreamObserver
from accord.compat.remote_stream import RemoteStream
from accord.compat.streams import StreamTransport
from accord.engine.connection import Connection as Engine
from accord.engine.receiving import Role
from accord.engine.routes import Route, Routes, plain_lane
from accord.errors import INTERNAL_ERROR, INVALID_PARAMS, ConnectionClosed, PeerError, RequestError as Refusal
from accord.jsonrpc import messages
from accord.schema import codec
from accord.tasks import is_awaitable
from accord.transports.base import End, Transport

__all__ = ["Connection", "JsonValue", "MethodHandler", "StreamDirection", "StreamEvent", "StreamObserver"]

log = logging.getLogger("accord")

JsonValue = Any
MethodHandler = Callable[[str, "JsonValue | None", bool], Awaitable["JsonValue | None"]]
"""Handles a message: its method, its params, and whether it is a notification."""

UPDATE = CLIENT_METHODS["session_update"]
CANCEL = AGENT_METHODS["session_cancel"]
PATIENT = AGENT_METHODS["session_prompt"]
KNOWN = frozenset({*AGENT_METHODS.values(), *CLIENT_METHODS.values()})
"""Methods whose routes are kept. A peer can invent any number of others."""
CLOSED = "Connection closed"


class _Engine(Engine):
    """Our connection, without the gate: programs of the official SDK may speak before `initialize`."""

    def __init__(self, transport: Transport, routes: Routes, *, role: Role) -> None:
        super().__init__(transport, routes, role=role)
        self._receiving.open_gate()


class Connection:
    """A connection that calls one handler with every message; it begins to listen when it is made.

    `writer` and `reader` are asyncio's streams; or `writer` alone is an object that moves whole messages, or one of our
    own transports.
    """

    def __init__(
        self,
        handler: MethodHandler,
        writer: asyncio.StreamWriter | Messages | Transport,
        reader: asyncio.StreamReader | None = None,
        *,
        observers: list[StreamObserver] | None = None,
        listening: bool = True,
        receive_timeout: float | None = None,
        role: Role = "agent",
    ) -> None:
        self._handler = handler
        self._transport = _transport(writer, reader, receive_timeout)
        routes = Routes()
        routes.makers.append(lambda method: self._call_route(method) if method in KNOWN else None)
        routes.put_tell(UPDATE, self._tell_route(UPDATE))
        routes.put_tell(CANCEL, self._tell_route(CANCEL))
        routes.other_call = self._call_route
        routes.other_tell = self._tell_route
        self._engine = _Engine(self._transport, routes, role=role)
        self._observers = Observers(self._engine)
        self._main: asyncio.Task[End] | None = None
        for observer in observers or ():
            self.add_observer(observer)
        if listening:
            self._main = asyncio.create_task(self._listen(), name="accord compat listen")

    async def _listen(self) -> End:
        await self._engine.open()
        return await self._engine.closed()

    async def main_loop(self) -> None:
        """Listen until the other side ends the connection; raises what broke it."""
        self._main = self._main or asyncio.create_task(self._listen(), name="accord compat listen")
        await asyncio.shield(self._main)
        error = getattr(self._transport, "error", None)
        if isinstance(error, TimeoutError):
            raise RequestError.internal_error({"details": "Agent timeout"})
        if isinstance(error, Exception):
            raise error

    async def close(self) -> None:
        """End the connection; what still runs for it is cancelled."""
        await self._engine.close()
        if self._main is not None and not self._main.done() and self._main is not asyncio.current_task():
            self._main.cancel()
        self._observers.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def add_observer(self, observer: StreamObserver) -> None:
        """Call this function with every message from now on."""
        self._observers.add(observer)

    # Sending

    async def send_request(self, method: str, params: JsonValue | None = None) -> Any:
        """Send a request; its result as plain values. Raises RequestError for an error, ConnectionError at the end."""
        lane = _lane(params)
        data = None if params is None else encode(params)
        try:
            raw = await self._engine.call(method, data, lane=lane, patient=method == PATIENT)
        except PeerError as error:
            raise RequestError(error.code, error.message, error.data) from error
        except ConnectionClosed as error:
            raise ConnectionError(f"{CLOSED}: {error}") from error
        return codec.loads(raw)

    async def send_notification(self, method: str, params: JsonValue | None = None) -> None:
        """Send a notification; waits while the other side does not read. Raises ConnectionError at the end."""
        try:
            if self._engine.tell(messages.tell(method, None if params is None else encode(params))):
                await self._engine.breathe()
        except ConnectionClosed as error:
            raise ConnectionError(f"{CLOSED}: {error}") from error

    # Receiving

    def _call_route(self, method: str) -> Route:
        async def call(params: Any, _: object) -> Any:
            return await self._handled(method, params)

        return Route(
            method,
            decode=_loads,
            decode_tolerantly=_loads,
            lane_of=plain_lane,
            suspends=True,
            call=call,
            answer=lambda request_id, result: messages.answer(request_id, encode(result)),
        )

    def _tell_route(self, method: str) -> Route:
        async def tell(params: Any) -> None:
            try:
                await self._answer(method, params, True)
            except Exception:
                log.exception("the handler of the notification %s failed (method=%s)", method, method)

        immediate = method == CANCEL
        return Route(
            method,
            decode=_loads,
            decode_tolerantly=_loads,
            lane_of=plain_lane,
            suspends=not immediate,
            immediate=immediate,
            stream=method == UPDATE,
            tell=tell,
        )

    async def _answer(self, method: str, params: Any, is_notification: bool) -> Any:
        result = self._handler(method, params, is_notification)
        return await result if is_awaitable(result) else result

    async def _handled(self, method: str, params: Any) -> Any:
        try:
            return await self._answer(method, params, False)
        except RequestError as error:
            raise Refusal(error.code, str(error), error.data) from error
        except ValidationError as error:
            raise Refusal(INVALID_PARAMS, "Invalid params", {"errors": error.errors()}) from error
        except Exception as error:
            log.exception("the handler of the request %s failed (method=%s)", method, method)
            raise Refusal(INTERNAL_ERROR, "Internal error", _details(error)) from error


def _transport(writer: Any, reader: asyncio.StreamReader | None, receive_timeout: float | None) -> Transport:
    if isinstance(writer, Transport):
        return writer
    if isinstance(writer, RemoteStream):
        return writer.handed_over()
    if reader is None:
        return MessageTransport(writer)
    return StreamTransport(reader, writer, read_timeout=receive_timeout)


def _loads(raw: bytes | msgspec.Raw) -> Any:
    return codec.loads(raw)


def _lane(params: Any) -> str | None:
    """The session that a request belongs to: its answer is released after the session's earlier notifications."""
    session_id = getattr(params, "__dict__", {}).get("session_id")
    return session_id if isinstance(session_id, str) else plain_lane(params)


def _details(error: Exception) -> Any:
    """What the other side is told of a failure: the official SDK sends the error's text, and programs show it."""
    text = str(error)
    try:
        return json.loads(text)
    except ValueError:
        return {"details": text}
