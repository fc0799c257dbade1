"""MCP over ACP: MCP servers of a client, reached over the connection between client and agent.

    client: accord.tools(...)  ──▶ `LentServers`: one `McpLine` to the server for each server id or MCP connection
    agent:  session.mcp        ──▶ `LinesToClient`: one `McpLine` for each server of a session

A `McpLine` joins a pair of the official package's streams with `mcp/message` of one ACP connection:

    package ── JSONRPCRequest ──▶ mcp/message ──▶ the other side          its answer comes back under the same id
    package ◀── JSONRPCRequest ── mcp/message ◀── the other side          `call` waits for the package's answer

A provider's line and an agent's line are the same; their `Form` differs. The keys of a message tell which form it has:

    by request      {serverId, requestId, method, params}    the pinned schema: requests from the agent,
                                                             notifications from the provider, no handshake
    by connection   {connectionId, method, params}           the proposal's page: both ways, after `mcp/connect`

By request, an error of the MCP server is part of a successful answer. By connection it is the answer's error.
Cancelling uses the ids of ACP: a cancelled `mcp/message` cancels the MCP request, and the other way round.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from accord.engine.handlers import Handlers
from accord.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    AccordError,
    McpServerError,
    PeerError,
    ProtocolError,
    RequestError,
)
from accord.schema.base import Json
from accord.schema.v1_and_v2 import McpServerAcp

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

MESSAGE, CONNECT, DISCONNECT = "mcp/message", "mcp/connect", "mcp/disconnect"

LIMIT_REACHED, NO_SUCH_SERVER, SERVER_FAILED = -33000, -33001, -33002
"""Codes of errors on the way to an MCP server, as opposed to the server's own errors."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

Params = dict[str, Any]


class MessageRefused(Exception):
    """The other side answered an MCP request with an error."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ByConnection:
    """The form of the proposal's page: each message names its connection, and both sides send requests."""

    def __init__(self, connection_id: str) -> None:
        self.connection_id = connection_id

    def request(self, request_id: str | int, method: str, params: Params | None) -> Params:  # noqa: ARG002
        """The params of the `mcp/message` that carries this request."""
        return _message({"connectionId": self.connection_id}, method, params)

    def notification(self, related: str | int | None, method: str, params: Params | None) -> Params:  # noqa: ARG002
        """Return the params of the `mcp/message` with this notification; None if the form has no place for it."""
        return _message({"connectionId": self.connection_id}, method, params)

    def result(self, answer: Json) -> Params:
        """The MCP result in an answer; raises MessageRefused for an error, ProtocolError for anything else."""
        return _object(answer)

    def answer(self, result: Params) -> Params:
        """The answer to `mcp/message` that carries this MCP result."""
        return result

    def refusal(self, refused: MessageRefused) -> Params:
        """Return the answer with this MCP error; raises RequestError if it is the answer's own error."""
        raise RequestError(refused.code, refused.message, refused.data)


class ByRequest:
    """The form of the pinned schema: each message names its server and the request that it belongs to."""

    def __init__(self, server_id: str, line: str = "") -> None:
        self.server_id = server_id
        self._prefix = line
        """The prefix of the ids of requests, so that two lines to one server never use the same."""

    def request_id(self, inner: str | int) -> str:
        """The id on the wire of a request that the official package knows by `inner`."""
        return f"{self._prefix}{inner}"

    def request(self, request_id: str | int, method: str, params: Params | None) -> Params:
        return _message({"serverId": self.server_id, "requestId": self.request_id(request_id)}, method, params)

    def notification(self, related: str | int | None, method: str, params: Params | None) -> Params | None:
        if related is None:
            return None
        return _message({"serverId": self.server_id, "requestId": str(related)}, method, params)

    def result(self, answer: Json) -> Params:
        fields = _object(answer)
        if "result" in fields:
            return _object(fields["result"])
        error = fields.get("error")
        if not isinstance(error, dict):
            raise ProtocolError(f"{MESSAGE}: the answer must have a result or an error")
        body = cast("Params", error)
        raise MessageRefused(_code(body.get("code")), str(body.get("message") or "no message"), body.get("data"))

    def answer(self, result: Params) -> Params:
        return {"result": result}

    def refusal(self, refused: MessageRefused) -> Params:
        error: Params = {"code": refused.code, "message": refused.message}
        return {"error": error if refused.data is None else error | {"data": refused.data}}


Form: TypeAlias = ByConnection | ByRequest
"""How the messages of one line are written."""


def enveloped(params: Params | None, version: str) -> Params:
    """Return these params of a request with the members of `_meta` that MCP requires; an existing version is not
    changed.
    """
    known: Params = dict(params or {})
    meta = known.get("_meta")
    if meta is not None and not isinstance(meta, dict):
        raise RequestError.invalid_params("_meta must be an object", path="$.params._meta")
    said = cast("Params", meta or {})
    defaults: Params = {VERSION_KEY: version, CAPABILITIES_KEY: {}, CLIENT_KEY: {"name": "unknown", "version": "0"}}
    return known | {"_meta": defaults | said}


def wants_connection(error: PeerError) -> bool:
    """Whether this error means that the other side knows only the form by connection."""
    if error.code == METHOD_NOT_FOUND:
        return True
    return error.code == INVALID_PARAMS and "connectionId" in f"{error.message} {error.data}"


def text_of(params: Params, *keys: str) -> str | None:
    """Return the text under the first of these keys that has one."""
    return next((value for key in keys if isinstance(value := params.get(key), str)), None)


def inner_of(params: Params) -> tuple[str, Params | None]:
    """The method and the params of the MCP message; raises RequestError for a bad envelope."""
    method, inner = params.get("method"), params.get("params")
    if not isinstance(method, str):
        raise RequestError.invalid_params(f"{MESSAGE}: method must be a string", path="$.method")
    if inner is not None and not isinstance(inner, dict):
        raise RequestError.invalid_params(f"{MESSAGE}: params must be an object or absent", path="$.params")
    return method, cast("Params | None", inner)


def _message(address: Params, method: str, params: Params | None) -> Params:
    message = address | {"method": method}
    return message if params is None else message | {"params": params}


def _object(value: Any) -> Params:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ProtocolError(f"{MESSAGE}: the result must be an object")
    return cast("Params", value)


def _code(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else INTERNAL_ERROR


WAITING = 64
"""Messages that may wait for the official package to read them."""


class Sends(Protocol):
    """A peer, as far as a line needs it."""

    async def request_raw(self, method: str, params: Json = None) -> Json: ...

    async def notify_raw(self, method: str, params: Json = None) -> None: ...


class McpLine:
    """One MCP connection over an ACP connection."""

    def __init__(self, peer: Sends, form: Form) -> None:
        self.form = form
        self.read: MemoryObjectReceiveStream[SessionMessage | Exception]
        """The stream that the official package reads."""
        self.write: MemoryObjectSendStream[SessionMessage]
        """The stream that the official package writes to."""
        self._peer = peer
        import anyio

        self._into, self.read = anyio.create_memory_object_stream[Any](WAITING)
        self.write, self._out_of = anyio.create_memory_object_stream[Any](WAITING)
        self._tasks: dict[str | int, asyncio.Task[None]] = {}
        """Requests of the package to the other side, by the package's ids."""
        self._open: dict[str | int, asyncio.Future[Params]] = {}
        """Requests of the other side to the package, by the package's ids for them."""

    @property
    def in_flight(self) -> int:
        """Return how many requests of the other side are not answered yet."""
        return len(self._open)

    def has_open(self, request_id: str | int) -> bool:
        """Whether the other side has a request of this id open."""
        return request_id in self._open

    def asked(self, request_id: str) -> str | int | None:
        """Return the package's id of its open request that has this id on the wire; None if there is none."""
        form = self.form
        if isinstance(form, ByRequest):
            return next((inner for inner in self._tasks if form.request_id(inner) == request_id), None)
        return None

    # From the package to the other side

    async def run(self) -> None:
        """Send the package's messages until it closes its stream or this is cancelled; then close the line."""
        import anyio

        try:
            async for message in self._out_of:
                await self._carry(message)
        except anyio.ClosedResourceError:
            pass  # this side closed the line
        finally:
            self.close()

    def close(self) -> None:
        """End the line: the package reads the end of its stream, and open requests of the other side fail."""
        for stream in (self._into, self.read, self.write, self._out_of):
            stream.close()
        for task in list(self._tasks.values()):
            task.cancel()
        for future in list(self._open.values()):
            if not future.done():
                future.set_exception(MessageRefused(SERVER_FAILED, "the MCP server has ended"))
                future.exception()  # the waiting task may be gone

    async def _carry(self, message: SessionMessage) -> None:
        import mcp_types

        match message.message:
            case mcp_types.JSONRPCRequest(id=request_id, method=method, params=params):
                self._start(request_id, self._ask(request_id, method, params))
            case mcp_types.JSONRPCNotification(method="notifications/cancelled", params=params):
                if (task := self._tasks.get((params or {}).get("requestId", ""))) is not None:
                    task.cancel()
            case mcp_types.JSONRPCNotification(method=method, params=params):
                related = getattr(message.metadata, "related_request_id", None) or _subscription(params)
                if (carried := self.form.notification(related, method, params)) is not None:
                    await self._peer.notify_raw(MESSAGE, carried)
            case mcp_types.JSONRPCResponse(id=request_id, result=result):
                if (future := self._open.get(request_id)) is not None and not future.done():
                    future.set_result(result)
            case mcp_types.JSONRPCError(id=request_id, error=error) if request_id is not None:
                if (future := self._open.get(request_id)) is not None and not future.done():
                    future.set_exception(MessageRefused(error.code, error.message, error.data))
            case _:
                pass

    def _start(self, request_id: str | int, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[request_id] = asyncio.create_task(work, name=f"accord mcp request {request_id}")
        task.add_done_callback(lambda _: self._tasks.pop(request_id, None))

    async def _ask(self, request_id: str | int, method: str, params: Params | None) -> None:
        import mcp_types

        try:
            result = await self.send(request_id, method, params)
        except MessageRefused as refused:
            error = mcp_types.ErrorData(code=refused.code, message=refused.message, data=refused.data)
            await self._feed(mcp_types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))
        else:
            await self._feed(mcp_types.JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result))

    async def send(self, request_id: str | int, method: str, params: Params | None) -> Params:
        """Send a request of the package to the other side; its result. Raises Refused."""
        try:
            return self.form.result(
                await self._peer.request_raw(MESSAGE, self.form.request(request_id, method, params))
            )
        except PeerError as error:
            raise MessageRefused(error.code, error.message, error.data) from error
        except AccordError as error:
            raise MessageRefused(SERVER_FAILED, str(error)) from error

    # From the other side to the package

    async def call(self, request_id: str | int, method: str, params: Params | None) -> Params:
        """Let the package handle a request; returns its result. Raises Refused. Cancelling this cancels the request."""
        import mcp_types

        future = self._open[request_id] = asyncio.get_running_loop().create_future()
        try:
            await self._feed(mcp_types.JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params))
            result: Params = await future
        except asyncio.CancelledError:
            self._withdraw(request_id)
            raise
        finally:
            self._open.pop(request_id, None)
        return result

    async def tell(self, method: str, params: Params | None, *, to: str | int | None = None) -> None:
        """Pass a notification to the package; `to` is the package's own request that it belongs to, if any."""
        import mcp_types

        if to is not None and params is not None and _subscription(params) is not None:
            params = params | {"_meta": params["_meta"] | {SUBSCRIPTION_KEY: to}}
        await self._feed(mcp_types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params))

    def _withdraw(self, request_id: str | int) -> None:
        import anyio
        import mcp_types
        from mcp.shared.message import SessionMessage

        params = {"requestId": request_id, "reason": "cancelled"}
        notification = mcp_types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
        # A server that does not read, or has ended, cannot be notified.
        with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._into.send_nowait(SessionMessage(notification))

    async def _feed(self, message: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        try:
            await self._into.send(SessionMessage(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise MessageRefused(SERVER_FAILED, "the MCP server has ended") from None


def _subscription(params: Params | None) -> str | int | None:
    """The request that a change event belongs to."""
    meta = (params or {}).get("_meta")
    said = cast("Params", meta).get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
    return said if isinstance(said, str | int) else None


class LinesToClient:
    """The MCP connections of one agent's ACP connection; the client's messages are passed to the right one."""

    def __init__(self, peer: Sends) -> None:
        self._peer = peer
        self._numbers = itertools.count(1)
        self._by_server: dict[str, set[McpLine]] = {}
        self._by_connection: dict[str, McpLine] = {}

    @asynccontextmanager
    async def open(self, server: McpServerAcp) -> AsyncGenerator[TransportStreams]:
        """A transport of the official package to this server."""
        line = _Trying(self._peer, ByRequest(server.server_id, f"{next(self._numbers)}."), self, server)
        carrying = asyncio.create_task(line.run(), name=f"accord mcp line to {server.name}")
        lines = self._by_server.setdefault(server.server_id, set())
        lines.add(line)
        try:
            yield line.read, line.write
        finally:
            lines.discard(line)
            line.close()
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
            await self._hang_up(line)

    async def connect(self, line: McpLine, server: McpServerAcp) -> ByConnection:
        """Open a connection in the older form of the wire; raises the client's error."""
        params: Json = {"serverId": server.server_id, "acpId": server.server_id}
        answer = await self._peer.request_raw(CONNECT, params)
        connection_id = text_of(cast("Params", answer), "connectionId") if isinstance(answer, dict) else None
        if connection_id is None:
            raise McpServerError(server.name, f"{CONNECT} was answered without a connectionId")
        self._by_connection[connection_id] = line
        return ByConnection(connection_id)

    async def _hang_up(self, line: McpLine) -> None:
        if isinstance(line.form, ByConnection):
            self._by_connection.pop(line.form.connection_id, None)
            with contextlib.suppress(AccordError):
                await self._peer.request_raw(DISCONNECT, {"connectionId": line.form.connection_id})

    def handlers(self) -> Handlers:
        """Return the handlers for messages of the client's servers."""
        handlers = Handlers()
        handlers.on_request(MESSAGE)(self.asked)
        handlers.on_notification(MESSAGE)(self.notified)
        return handlers

    async def asked(self, params: Json) -> Json:
        """Answer an `mcp/message` request, which only a server with a connection sends."""
        message = cast("Params", params)
        line = self._by_connection.get(text_of(message, "connectionId") or "")
        if line is None:
            raise RequestError.invalid_params("there is no MCP connection of this id", path="$.connectionId")
        method, inner = inner_of(message)
        try:
            return line.form.answer(await line.call(f"acp-{next(self._numbers)}", method, inner))
        except MessageRefused as refused:
            return line.form.refusal(refused)

    async def notified(self, params: Json) -> None:
        """Pass an `mcp/message` notification to its line."""
        message = cast("Params", params)
        method, inner = inner_of(message)
        with contextlib.suppress(MessageRefused):
            if (connection_id := text_of(message, "connectionId")) is not None:
                if (line := self._by_connection.get(connection_id)) is not None:
                    await line.tell(method, inner)
                return
            request_id = text_of(message, "requestId") or ""
            for line in self._by_server.get(text_of(message, "serverId") or "", ()):
                if (asked := line.asked(request_id)) is not None:
                    await line.tell(method, inner, to=asked)
                    return


class _Trying(McpLine):
    """A line that begins by request, and switches to a connection when the client's answer asks for that."""

    def __init__(self, peer: Sends, form: ByRequest, lines: LinesToClient, server: McpServerAcp) -> None:
        super().__init__(peer, form)
        self._lines = lines
        self._server = server
        self._is_settled = False

    async def send(self, request_id: str | int, method: str, params: Params | None) -> Params:
        try:
            result = await super().send(request_id, method, params)
        except MessageRefused as refused:
            error = refused.__cause__
            if self._is_settled or not isinstance(error, PeerError) or not wants_connection(error):
                raise
            await self._change_form()
            return await super().send(request_id, method, params)
        finally:
            self._is_settled = True
        return result

    async def _change_form(self) -> None:
        try:
            self.form = await self._lines.connect(self, self._server)
        except AccordError as error:
            raise MessageRefused(SERVER_FAILED, str(error)) from error
