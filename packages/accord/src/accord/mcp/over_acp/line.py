"""`Line`: a pair of the official package's streams, joined with `mcp/message` of one ACP connection.

    package ── JSONRPCRequest ──▶ mcp/message ──▶ the other side          its answer comes back under the same id
    package ◀── JSONRPCRequest ── mcp/message ◀── the other side          `call` waits for the package's answer

A provider's line and an agent's line are the same; their `Form` differs. Cancelling goes by the ids of ACP: a cancelled
`mcp/message` cancels the MCP request, and the other way round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

from accord.errors import AccordError, PeerError
from accord.mcp.over_acp.forms import MESSAGE, SERVER_FAILED, SUBSCRIPTION_KEY, ByRequest, Form, Params, Refused
from accord.schema.base import Json

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

WAITING = 64
"""Messages that may wait for the official package to read them."""


class Sends(Protocol):
    """A peer, as far as a line needs it."""

    async def request_raw(self, method: str, params: Json = None) -> Json: ...

    async def notify_raw(self, method: str, params: Json = None) -> None: ...


class Line:
    """One MCP connection over an ACP connection."""

    def __init__(self, peer: Sends, form: Form) -> None:
        self.form = form
        self.read: MemoryObjectReceiveStream[SessionMessage | Exception]
        """What the official package reads."""
        self.write: MemoryObjectSendStream[SessionMessage]
        """What the official package writes to."""
        self._peer = peer
        import anyio

        self._into, self.read = anyio.create_memory_object_stream[Any](WAITING)
        self.write, self._out_of = anyio.create_memory_object_stream[Any](WAITING)
        self._tasks: dict[str | int, asyncio.Task[None]] = {}
        """Requests of the package to the other side, by the package's ids."""
        self._open: dict[str | int, asyncio.Future[Params]] = {}
        """Requests of the other side to the package, by the ids that the package knows them by."""

    @property
    def in_flight(self) -> int:
        """How many requests of the other side are not answered yet."""
        return len(self._open)

    def has_open(self, request_id: str | int) -> bool:
        """Whether the other side has a request of this id open."""
        return request_id in self._open

    def asked(self, request_id: str) -> str | int | None:
        """The package's id of its open request that has this id on the wire; None if there is none."""
        form = self.form
        if isinstance(form, ByRequest):
            return next((inner for inner in self._tasks if form.request_id(inner) == request_id), None)
        return None

    # From the package to the other side

    async def run(self) -> None:
        """Carry what the package writes, until it closes its stream or this is cancelled; then close the line."""
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
                future.set_exception(Refused(SERVER_FAILED, "the MCP server has ended"))
                future.exception()  # whoever waited may be gone

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
                    future.set_exception(Refused(error.code, error.message, error.data))
            case _:
                pass

    def _start(self, request_id: str | int, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[request_id] = asyncio.create_task(work, name=f"accord mcp request {request_id}")
        task.add_done_callback(lambda _: self._tasks.pop(request_id, None))

    async def _ask(self, request_id: str | int, method: str, params: Params | None) -> None:
        import mcp_types

        try:
            result = await self.send(request_id, method, params)
        except Refused as refused:
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
            raise Refused(error.code, error.message, error.data) from error
        except AccordError as error:
            raise Refused(SERVER_FAILED, str(error)) from error

    # From the other side to the package

    async def call(self, request_id: str | int, method: str, params: Params | None) -> Params:
        """Have the package handle a request; its result. Raises Refused. Cancelling this cancels the request."""
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
        """Give the package a notification; `to` is its own request that it belongs to, if it belongs to one."""
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
        # A server that does not read, or has ended, cannot be told.
        with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._into.send_nowait(SessionMessage(notification))

    async def _feed(self, message: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        try:
            await self._into.send(SessionMessage(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise Refused(SERVER_FAILED, "the MCP server has ended") from None


def _subscription(params: Params | None) -> str | int | None:
    """The request that a change event belongs to."""
    meta = (params or {}).get("_meta")
    said = cast("Params", meta).get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
    return said if isinstance(said, str | int) else None
