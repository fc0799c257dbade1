"""`LinesToClient`: an agent's MCP connections to the servers that its client lends over ACP."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from accord.engine.handlers import Handlers
from accord.errors import AccordError, McpServerError, PeerError, RequestError
from accord.mcp.over_acp.forms import (
    CONNECT,
    DISCONNECT,
    MESSAGE,
    SERVER_FAILED,
    ByConnection,
    ByRequest,
    Params,
    Refused,
    inner_of,
    text_of,
    wants_connection,
)
from accord.mcp.over_acp.line import Line, Sends
from accord.schema import v1
from accord.schema.base import Json

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


class LinesToClient:
    """The MCP connections of one agent's ACP connection; what the client sends is given to the right one."""

    def __init__(self, peer: Sends) -> None:
        self._peer = peer
        self._numbers = itertools.count(1)
        self._by_server: dict[str, set[Line]] = {}
        self._by_connection: dict[str, Line] = {}

    @asynccontextmanager
    async def open(self, server: v1.McpServerAcp) -> AsyncGenerator[TransportStreams]:
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

    async def connect(self, line: Line, server: v1.McpServerAcp) -> ByConnection:
        """Open a connection in the older form of the wire; raises what the client answers."""
        params: Json = {"serverId": server.server_id, "acpId": server.server_id}
        answer = await self._peer.request_raw(CONNECT, params)
        connection_id = text_of(cast("Params", answer), "connectionId") if isinstance(answer, dict) else None
        if connection_id is None:
            raise McpServerError(server.name, f"{CONNECT} was answered without a connectionId")
        self._by_connection[connection_id] = line
        return ByConnection(connection_id)

    async def _hang_up(self, line: Line) -> None:
        if isinstance(line.form, ByConnection):
            self._by_connection.pop(line.form.connection_id, None)
            with contextlib.suppress(AccordError):
                await self._peer.request_raw(DISCONNECT, {"connectionId": line.form.connection_id})

    def handlers(self) -> Handlers:
        """The handlers of what the client's servers send."""
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
        except Refused as refused:
            return line.form.refusal(refused)

    async def notified(self, params: Json) -> None:
        """Give an `mcp/message` notification to the line that it belongs to."""
        message = cast("Params", params)
        method, inner = inner_of(message)
        with contextlib.suppress(Refused):
            if (connection_id := text_of(message, "connectionId")) is not None:
                if (line := self._by_connection.get(connection_id)) is not None:
                    await line.tell(method, inner)
                return
            request_id = text_of(message, "requestId") or ""
            for line in self._by_server.get(text_of(message, "serverId") or "", ()):
                if (asked := line.asked(request_id)) is not None:
                    await line.tell(method, inner, to=asked)
                    return


class _Trying(Line):
    """A line that begins by request, and goes over to a connection when the client's answer asks for that."""

    def __init__(self, peer: Sends, form: ByRequest, lines: LinesToClient, server: v1.McpServerAcp) -> None:
        super().__init__(peer, form)
        self._lines = lines
        self._server = server
        self._is_settled = False

    async def send(self, request_id: str | int, method: str, params: Params | None) -> Params:
        try:
            result = await super().send(request_id, method, params)
        except Refused as refused:
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
            raise Refused(SERVER_FAILED, str(error)) from error
