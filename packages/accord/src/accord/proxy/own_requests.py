"""Requests of which this program is itself an end: it sends some to a neighbour, and answers others.

A switchboard passes messages on. Here this program is the end of a few: it sends a request by a port and awaits the
answer, or answers a request that has come in by one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Raw

from accord._internal.tasks import Tasks, give_up, pass_on
from accord.engine.lanes import Inside, inside
from accord.errors import INTERNAL_ERROR, REQUEST_CANCELLED, AccordError, ConnectionClosed, PeerError, RequestError
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.open_requests import key_of
from accord.jsonrpc.wire_messages import ErrorObject
from accord.proxy.link import ComponentFailure, Link, Port
from accord.proxy.switchboard import Switchboard
from accord.schema import codec
from accord.schema.base import Json


class RawPeerError(PeerError):
    """The other side answered with an error, which can be passed on as it came."""

    def __init__(self, method: str, raw: bytes) -> None:
        error = codec.decode(raw, ErrorObject)
        super().__init__(method, error.code, error.message, error.data)
        self.raw = raw
        """The error as JSON."""


class OwnRequest:
    """A request that a handler sent, until its answer is given to the handler."""

    def __init__(self, method: str, lane: str, link: Link) -> None:
        self.id = 0
        self.method = method
        self.lane = lane
        self.outcome: tuple[Raw | None, bytes | Raw | None] = None, None
        self.maker: Inside | None = (maker := inside.get())
        self._holding_up = None if maker is None else maker.holding_up
        self._link = link
        self._future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def wait(self) -> bytes:
        """The result as JSON; raises RawPeerError or ConnectionClosed. A cancelled caller cancels the request."""
        if self._holding_up is not None:
            self._holding_up.begins_to_wait(self)
        try:
            return await self._future
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            if self._holding_up is not None:
                self._holding_up.no_longer_waits(self)

    def cancel(self) -> None:
        """Tell the other side that the answer is no longer needed."""
        if self.id in self._link.awaited:
            self._link.send_cancel(self.id)

    def answered(self, result: Raw | None, error: bytes | Raw | None) -> None:
        self.outcome = result, error
        self.release()

    def failed(self, failure: ComponentFailure) -> None:
        self.fail(ConnectionClosed("closed", str(failure)))

    def release(self) -> None:
        result, error = self.outcome
        if self._future.done():
            return
        if error is None:
            self._future.set_result(b"null" if result is None else bytes(result))
        else:
            self.fail(RawPeerError(self.method, bytes(error)))

    def fail(self, error: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            self._future.exception()  # mark as retrieved: no caller may be left to await it


class QueuedAnswer:
    """An answer that is passed on when the messages before it have been."""

    def __init__(self, deliver: Callable[[], None]) -> None:
        self.maker: Inside | None = None
        self._deliver: Callable[[], None] | None = deliver

    def release(self) -> None:
        deliver, self._deliver = self._deliver, None
        if deliver is not None:
            deliver()

    def fail(self, error: Exception) -> None:  # noqa: ARG002
        self.release()


log = logging.getLogger("accord")


class RawNeighbour:
    """One neighbour, as this program itself asks it: what goes out by a port, and its answers."""

    def __init__(self, board: Switchboard, port: Port) -> None:
        self._board = board
        self._port = port

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Send a request, and wait for its result; raises PeerError or ConnectionClosed."""
        link = self._port.link
        if link.failure is not None:
            raise ConnectionClosed("closed", str(link.failure))
        sent = OwnRequest(method, "", link)
        sent.id = self._board.ask(self._port, method, codec.encode(params), sent)
        return codec.loads(await sent.wait())

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        if self._port.link.failure is None:
            self._board.put(self._port.link, self._port.notification_frame(method, codec.encode(params)))


class OwnAnswer:
    """A request that came in by a port and is answered here, until it is."""

    def __init__(
        self, port: Port, request_id: RequestId, method: str, work: Coroutine[Any, Any, Json], tasks: Tasks
    ) -> None:
        self._link = port.link
        self._id = request_id
        self._key = key_of(request_id)
        self._method = method
        self._work = work
        self._link.unanswered[self._key] = self
        self._task = tasks.start(self._answer(), method)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        self._task.cancel()

    async def _answer(self) -> None:
        try:
            self._put(wire_messages.encode_response(self._id, codec.encode(await self._work)))
        except (RequestError, PeerError) as error:
            self._refuse(error.code, error.message, error.data)
        except Exception as error:
            log.exception("%s failed", self._method)
            is_public = isinstance(error, AccordError) and error.safe_to_tell
            self._refuse(INTERNAL_ERROR, str(error) if is_public else "Internal error")
            pass_on(error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        give_up(self._work)  # it may have been cancelled before its first step
        if task.cancelled():
            self._refuse(REQUEST_CANCELLED, "Request cancelled")

    def _refuse(self, code: int, message: str, data: Json = None) -> None:
        self._put(wire_messages.encode_error(self._id, code, message, data))

    def _put(self, frame: bytes) -> None:
        if self._link.claim(self._key):
            self._link.put(frame)
