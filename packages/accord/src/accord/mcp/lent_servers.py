"""`LentServers`: the MCP servers that a client lends over one ACP connection, and the requests to them."""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import msgspec

from accord._internal.tasks import Tasks
from accord.engine.handlers import Handlers
from accord.errors import RequestError
from accord.mcp.mcp_line import (
    CONNECT,
    DISCONNECT,
    LIMIT_REACHED,
    MESSAGE,
    NO_SUCH_SERVER,
    SERVER_FAILED,
    ByConnection,
    ByRequest,
    Form,
    McpLine,
    MessageRefused,
    Params,
    Sends,
    enveloped,
    inner_of,
    text_of,
)
from accord.mcp.tool_server import ToolServer
from accord.schema.base import Json

log = logging.getLogger("accord")

ACTIVE = 64
"""Requests to one server that may be open at a time."""

CONNECTIONS = 64
"""MCP connections that an agent may have open at a time, to all servers together."""


class _Served(msgspec.Struct):
    """A line to a server that runs."""

    line: McpLine
    work: asyncio.Task[None]


class LentServers:
    """The MCP servers of this program that one agent may use: those that were declared to it, by their ids."""

    def __init__(self, peer: Callable[[], Sends], tasks: Tasks) -> None:
        self._peer = peer
        self._tasks = tasks
        self._servers: dict[str, ToolServer] = {}
        self._by_request: dict[str, _Served] = {}
        """The lines of servers in the form by request, by the server's id."""
        self._by_connection: dict[str, _Served] = {}
        self._numbers = itertools.count(1)

    def add(self, server_id: str, server: ToolServer) -> None:
        """Lend this server under an id that was never used on the connection."""
        self._servers[server_id] = server

    def end_connections(self) -> None:
        """End all lines, because the ACP connection has ended; the servers can be used over the next."""
        for served in [*self._by_request.values(), *self._by_connection.values()]:
            served.line.close()
            served.work.cancel()
        self._by_request.clear()
        self._by_connection.clear()

    def handlers(self) -> Handlers:
        """The handlers of the methods with which an agent uses the servers."""
        handlers = Handlers()
        handlers.on_request(CONNECT)(self._connect)
        handlers.on_request(DISCONNECT)(self._disconnect)
        handlers.on_request(MESSAGE)(self._message)
        handlers.on_notification(MESSAGE)(self.notified)
        return handlers

    def owns(self, params: Json) -> bool:
        """Whether a message with these params is for one of these servers; a proxy passes on all others."""
        if not isinstance(params, dict):
            return False
        message = cast("Params", params)
        if (connection_id := text_of(message, "connectionId")) is not None:
            return connection_id in self._by_connection
        return (text_of(message, "serverId", "acpId") or "") in self._servers

    async def asked(self, method: str, params: Json) -> Json:
        """Answer a request to one of these servers."""
        if method == CONNECT:
            return self._connect(params)
        return self._disconnect(params) if method == DISCONNECT else await self._message(params)

    # By connection

    def _connect(self, params: Json) -> Json:
        server_id = text_of(cast("Params", params), "serverId", "acpId") or ""
        server = self._server(server_id)
        if len(self._by_connection) >= CONNECTIONS:
            raise RequestError(LIMIT_REACHED, f"{CONNECTIONS} MCP connections are open; close one first")
        connection_id = f"mcp-{uuid.uuid4().hex}"  # other components of a chain make such ids as well
        served = self._begin(server, ByConnection(connection_id))
        self._by_connection[connection_id] = served
        served.work.add_done_callback(lambda _: self._by_connection.pop(connection_id, None))
        return {"connectionId": connection_id}

    def _disconnect(self, params: Json) -> Json:
        served = self._connection(cast("Params", params))
        served.line.close()
        self._by_connection = {key: other for key, other in self._by_connection.items() if other is not served}
        return {}

    async def notified(self, params: Json) -> None:
        """Pass a notification to its server."""
        message = cast("Params", params)
        served = self._by_connection.get(text_of(message, "connectionId") or "")
        if served is not None:
            with suppress(MessageRefused):  # the server has ended; its connection will be closed
                await served.line.tell(*inner_of(message))

    # Requests, by either

    async def _message(self, params: Json) -> Json:
        message = cast("Params", params)
        method, inner = inner_of(message)
        if "connectionId" in message:
            served = self._connection(message)
            return await self._ask(served.line, f"acp-{next(self._numbers)}", method, inner)
        server_id, request_id = text_of(message, "serverId"), text_of(message, "requestId")
        if server_id is None or request_id is None:
            raise RequestError.invalid_params(f"{MESSAGE} needs serverId and requestId, or connectionId")
        line = self._line_of(server_id)
        if line.has_open(request_id):
            raise RequestError.invalid_params(f"requestId {request_id!r} is already active", path="$.requestId")
        from mcp_types.version import LATEST_MODERN_VERSION

        return await self._ask(line, request_id, method, enveloped(inner, LATEST_MODERN_VERSION))

    async def _ask(self, line: McpLine, request_id: str, method: str, params: Params | None) -> Json:
        if line.in_flight >= ACTIVE:
            raise RequestError(LIMIT_REACHED, f"{ACTIVE} requests to this MCP server are open; wait for one of them")
        try:
            return line.form.answer(await line.call(request_id, method, params))
        except MessageRefused as refused:
            if refused.code == SERVER_FAILED:  # the server did not answer
                raise RequestError(refused.code, refused.message, refused.data) from None
            return line.form.refusal(refused)

    def _line_of(self, server_id: str) -> McpLine:
        """The line to a server that is spoken to by request; its server is started by the first request."""
        server = self._server(server_id)
        served = self._by_request.get(server_id)
        if served is None:
            served = self._by_request[server_id] = self._begin(server, ByRequest(server_id))
            served.work.add_done_callback(lambda _: self._by_request.pop(server_id, None))
        return served.line

    def _server(self, server_id: str) -> ToolServer:
        server = self._servers.get(server_id)
        if server is None:
            raise RequestError(NO_SUCH_SERVER, "there is no MCP server of this id", {"serverId": server_id})
        return server

    def _connection(self, message: Params) -> _Served:
        served = self._by_connection.get(text_of(message, "connectionId") or "")
        if served is None:
            raise RequestError.invalid_params("there is no MCP connection of this id", path="$.connectionId")
        return served

    def _begin(self, server: ToolServer, form: Form) -> _Served:
        line = McpLine(self._peer(), form)
        return _Served(line, self._tasks.start(_serve(server, line), f"mcp server {server.name}"))


async def _serve(server: ToolServer, line: McpLine) -> None:
    """Run a server on a line until either ends."""
    carrying = asyncio.create_task(line.run(), name=f"accord mcp line to {server.name}")
    try:
        await server.run(line.read, line.write)
    except Exception:  # its own fault must not become the client's
        log.exception("the MCP server %s has failed", server.name)
    finally:
        line.close()
        carrying.cancel()
        await asyncio.gather(carrying, return_exceptions=True)
