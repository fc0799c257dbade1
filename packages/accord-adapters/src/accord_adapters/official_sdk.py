"""The official Python SDK (`agent-client-protocol`, imported as `acp`) on our engine.

    from accord_adapters import official_sdk

    official_sdk.install()                                   # in a program, before or after it imports acp
    python -m accord_adapters.official_sdk PROGRAM [ARGUMENT ...]      # around a program that stays as it is

The package stays the official one, in whichever release is installed: its models, its routers, its helpers and its
names. Its connections all meet in one class, `acp.connection.Connection`, which has the same interface in every release
from 0.8 on: a handler that is called with `(method, params, is_notification)`, `send_request`, `send_notification`,
`add_observer`, `main_loop` and `close`. `install` puts `EngineConnection`'s methods into that class. So every reference
to it, even a subclass or a name that was imported before, runs on our engine.

The engine adds: order within a session, answers after the updates before them, exactly one answer to each request,
`$/cancel_request` in both directions, flow control, limits, and closing within deadlines. `run_agent` gets our
transport over standard input and output, which keeps stray prints out of the protocol.

PROGRAM is a file, or `-m MODULE`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import logging
import runpy
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, cast

import acp.connection
import acp.stdio
import msgspec
from acp.connection import StreamDirection, StreamEvent
from acp.exceptions import RequestError
from acp.telemetry import span_context
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from accord import (
    Connection as Engine,
    ConnectionClosed,
    PeerError,
    RequestError as Refusal,
    StdioTransport,
    TraceEvent,
)
from accord.engine import IncomingRequest, Route, Routes, plain_lane
from accord.errors import INTERNAL_ERROR, INVALID_PARAMS
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import LIMIT
from accord.schema import codec
from accord.trace import OUT
from accord.transports import End, Transport
from accord_adapters.official_transports import Messages, MessageTransport, ReadTimeout, StreamTransport

log = logging.getLogger("accord")

UPDATE, CANCEL, PROMPT = "session/update", "session/cancel", "session/prompt"

USAGE = "usage: python -m accord_adapters.official_sdk (FILE | -m MODULE) [ARGUMENT ...]"

Handler = Callable[[str, Any, bool], Awaitable[Any]]
Observer = Callable[[StreamEvent], Awaitable[None] | None]


class StandardOutput(asyncio.StreamWriter):
    """Passes our transport over standard input and output to `Connection`, where the SDK expects a stream's writer."""

    def __init__(self, transport: StdioTransport) -> None:
        # There is no stream of asyncio behind it: the transport opens when the connection begins to listen.
        self.ours = transport

    def __del__(self) -> None:
        pass

    def write(self, data: Any) -> None:
        """Refuse: there is no stream behind it."""
        given = f"{len(data)} bytes were written to the streams of run_agent, which are for a Connection only"
        raise TypeError(f"{given}: acp.stdio_streams() gives streams to write to")


class EngineConnection:
    """The methods of `acp.connection.Connection`, on our engine.

    It calls one handler with every message. `writer` and `reader` are asyncio's streams; or `writer` alone is an object
    that moves whole messages.
    """

    def __init__(
        self,
        handler: Handler,
        writer: asyncio.StreamWriter | Messages,
        reader: asyncio.StreamReader | None = None,
        *,
        observers: list[Observer] | None = None,
        listening: bool = True,
        receive_timeout: float | None = None,
        **parts: object,
    ) -> None:
        if replaced := sorted(name for name, part in parts.items() if part is not None):
            raise TypeError(f"Connection on Accord's engine has no use for {', '.join(replaced)}: leave it out")
        self._handler = handler
        self._observing: set[asyncio.Future[None]] = set()
        if isinstance(writer, StandardOutput):
            transport: Transport = writer.ours
        elif reader is None:
            transport = MessageTransport(cast("Messages", writer), self._undelivered)
        else:
            transport = StreamTransport(reader, cast("asyncio.StreamWriter", writer))
        if receive_timeout is not None:
            transport = ReadTimeout(transport, receive_timeout)
        self._transport = transport
        routes = Routes()
        requests = self._request_route()
        routes.other_call = lambda _: requests
        routes.other_tell = self._notification_route
        for method in (UPDATE, CANCEL):
            routes.put_tell(method, self._notification_route(method))
        # The engine asks only how to treat lines that are not JSON: an agent's go to the log, a client's get an answer.
        self._engine = Engine(transport, routes, role="agent" if isinstance(writer, StandardOutput) else "client")
        self._engine.open_gate()  # programs of the SDK may speak before `initialize`
        self._listening: asyncio.Task[End] | None = None
        for observer in observers or ():
            self.add_observer(observer)
        if listening:
            self._listen()

    def _listen(self) -> asyncio.Task[End]:
        async def listen() -> End:
            await self._engine.open()
            return await self._engine.closed()

        if self._listening is None:
            self._listening = asyncio.create_task(listen(), name="accord listen")
        return self._listening

    async def main_loop(self) -> None:
        """Listen until the other side ends the connection; raises the error that broke it. A cancellation ends it, as
        there.
        """
        try:
            await asyncio.shield(self._listen())
        except asyncio.CancelledError:
            return
        transport = self._transport
        if isinstance(transport, ReadTimeout) and transport.has_expired:
            raise RequestError.internal_error({"details": "Agent timeout"})
        if (error := getattr(transport, "error", None)) is not None:
            raise error

    async def close(self) -> None:
        """End the connection; its running tasks are cancelled."""
        await self._engine.close()
        if (task := self._listening) is not None and not task.done() and task is not asyncio.current_task():
            task.cancel()
        for observer in list(self._observing):
            observer.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Observers

    def add_observer(self, observer: Observer) -> None:
        """Call this function with every message from now on; its awaitable runs in a task of its own."""

        def observe(event: TraceEvent) -> None:
            if event.frame is None:
                return
            try:
                message: Any = codec.loads(event.frame)
            except ValueError:
                return  # not JSON: the SDK ignores it, too
            direction = StreamDirection.OUTGOING if event.direction == OUT else StreamDirection.INCOMING
            result = observer(StreamEvent(direction, message))
            if inspect.isawaitable(result):
                task = asyncio.ensure_future(result)
                self._observing.add(task)
                task.add_done_callback(self._observed)

        self._engine.observe(observe)

    def _observed(self, task: asyncio.Future[None]) -> None:
        self._observing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an observer of the connection failed", exc_info=error)

    # Sending

    async def send_request(self, method: str, params: Any = None) -> Any:
        """Send a request; its result as plain values. Raises RequestError for an error, ConnectionError at the end."""
        data = None if params is None else _json(params)
        try:
            raw = await self._engine.call(method, data, lane=plain_lane(params), patient=method == PROMPT)
        except PeerError as error:
            raise RequestError(error.code, error.message, error.data) from error
        except ConnectionClosed as error:
            raise ConnectionError(f"Connection closed: {error}") from error
        return codec.loads(raw)

    async def send_notification(self, method: str, params: Any = None) -> None:
        """Send a notification; waits while the other side does not read. Raises ConnectionError at the end."""
        try:
            await self._engine.notify(method, None if params is None else _json(params))
        except ConnectionClosed as error:
            raise ConnectionError(f"Connection closed: {error}") from error

    def _undelivered(self, message: dict[str, Any], error: Exception) -> None:
        if "method" in message and "id" in message:
            self._engine.undelivered(message["id"], error)
        elif self._engine.is_open:
            log.error("%s could not be sent: %s", message.get("method", "an answer"), error)

    # Receiving

    def _request_route(self) -> Route:
        async def call(params: Any, request: IncomingRequest) -> Any:
            with span_context("acp.request", attributes={"method": request.method}):
                return await self._handle(request.method, params)

        return Route(
            "any request",
            decode=codec.loads,
            decode_tolerantly=codec.loads,
            lane_of=plain_lane,
            suspends=True,
            call=call,
            answer=lambda request_id, result: wire_messages.encode_response(request_id, _json(result)),
        )

    def _notification_route(self, method: str) -> Route:
        async def tell(params: Any) -> None:
            with span_context("acp.notification", attributes={"method": method}):
                try:
                    await self._called(method, params, True)
                except Exception:
                    log.exception("the handler of the notification %s failed", method)

        immediate = method == CANCEL
        return Route(
            method,
            decode=codec.loads,
            decode_tolerantly=codec.loads,
            lane_of=plain_lane,
            suspends=not immediate,
            immediate=immediate,
            stream=method == UPDATE,
            tell=tell,
        )

    async def _called(self, method: str, params: Any, is_notification: bool) -> Any:
        result = self._handler(method, params, is_notification)
        return await result if inspect.isawaitable(result) else result

    async def _handle(self, method: str, params: Any) -> Any:
        try:
            return await self._called(method, params, False)
        except RequestError as error:
            raise Refusal(error.code, str(error), error.data) from error
        except ValidationError as error:
            data = {"errors": to_jsonable_python(error.errors(), serialize_unknown=True)}
            raise Refusal(INVALID_PARAMS, "Invalid params", data) from error
        except Exception as error:
            log.exception("the handler of the request %s failed", method)
            raise Refusal(INTERNAL_ERROR, "Internal error", _details(error)) from error


def install() -> None:
    """Make the connections of `acp` use our engine from now on. Twice is harmless."""
    official = acp.connection.Connection
    if "_request_route" in vars(official):
        return
    # All of their methods are removed, so that none can be called halfway.
    for name in [name for name, value in vars(official).items() if inspect.isfunction(value)]:
        delattr(official, name)
    for name, value in vars(EngineConnection).items():
        if inspect.isfunction(value):
            setattr(official, name, value)
    # `run_agent` and similar functions look it up here when they are called. `acp.stdio_streams` stays unchanged.
    acp.stdio.stdio_streams = _standard_streams  # pyright: ignore[reportAttributeAccessIssue]


async def _standard_streams(limit: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return our own standard input and output, for a `Connection`; a limit below ours has no effect."""
    return asyncio.StreamReader(), StandardOutput(StdioTransport.standard(limit=max(limit or 0, LIMIT)))


def _json(value: Any) -> bytes:
    """Return a value as JSON: a model with its set fields, or whatever `json.dumps` accepts."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json(by_alias=True, exclude_none=True, exclude_unset=True).encode()
        return msgspec.json.encode(value)
    except Exception:  # half an emoji, or an integer of any size
        if isinstance(value, BaseModel):
            value = value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
        return json.dumps(value, separators=(",", ":")).encode()


def _details(error: Exception) -> Any:
    """Return the other side's details of a failure: the SDK sends the error's text, and programs show it."""
    text = str(error)
    try:
        return json.loads(text)
    except ValueError:
        return {"details": text}


def main(arguments: list[str]) -> None:
    """Run the program that these arguments name, with the rest as its own arguments."""
    is_module = arguments[:1] == ["-m"]
    program = arguments[int(is_module) :]
    if not program or program[0] in ("-h", "--help"):
        sys.exit(f"{USAGE}\n\n{__doc__}")
    if not is_module and not Path(program[0]).is_file():
        sys.exit(f"{program[0]} is not a file; {USAGE}")
    install()
    sys.argv = program
    if is_module:
        sys.path.insert(0, "")
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(program[0]).resolve().parent))
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    # Under its own name, because the program may import this module, too.
    importlib.import_module("accord_adapters.official_sdk").main(sys.argv[1:])
