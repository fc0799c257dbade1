"""Requests of which this program is itself an end: `Asker` sends some to a neighbour, `OwnAnswer` answers one.

A switchboard passes messages on. Here this program is the end of a few: it sends a request by a port and awaits the
answer, or answers a request that has come in by one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from accord.errors import (
    INTERNAL_ERROR,
    REQUEST_CANCELLED,
    AccordError,
    ConnectionClosed,
    PeerError,
    RequestError,
)
from accord.jsonrpc import messages
from accord.jsonrpc.endpoint import key_of
from accord.jsonrpc.frames import RequestId
from accord.proxy.link import Port
from accord.proxy.sent import Sent
from accord.proxy.switchboard import Switchboard
from accord.schema import codec
from accord.schema.base import Json
from accord.tasks import Tasks, give_up, pass_on

log = logging.getLogger("accord")


class Asker:
    """One neighbour, as this program itself asks it: what goes out by a port, and its answers."""

    def __init__(self, board: Switchboard, port: Port) -> None:
        self._board = board
        self._port = port

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Send a request, and wait for its result; raises PeerError or ConnectionClosed."""
        link = self._port.link
        if link.failure is not None:
            raise ConnectionClosed("closed", str(link.failure))
        sent = Sent(method, "", link)
        sent.id = self._board.ask(self._port, method, codec.encode(params), sent)
        return codec.loads(await sent.wait())

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        if self._port.link.failure is None:
            self._board.put(self._port.link, self._port.tell_frame(method, codec.encode(params)))


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
        self._link.owed[self._key] = self
        self._task = tasks.start(self._answer(), method)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        self._task.cancel()

    async def _answer(self) -> None:
        try:
            self._put(messages.answer(self._id, codec.encode(await self._work)))
        except (RequestError, PeerError) as error:
            self._refuse(error.code, error.message, error.data)
        except Exception as error:
            log.exception("%s failed", self._method)
            told = isinstance(error, AccordError) and error.safe_to_tell
            self._refuse(INTERNAL_ERROR, str(error) if told else "Internal error")
            pass_on(error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        give_up(self._work)  # it may have been cancelled before its first step
        if task.cancelled():
            self._refuse(REQUEST_CANCELLED, "Request cancelled")

    def _refuse(self, code: int, message: str, data: Json = None) -> None:
        self._put(messages.error_answer(self._id, code, message, data))

    def _put(self, frame: bytes) -> None:
        if self._link.pay(self._key):
            self._link.put(frame)
