"""`Told`: a notification that goes through handlers, or waits for earlier messages of its lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

from msgspec import Raw

from accord.engine.lanes import WEIGHT
from accord.errors import DecodeError
from accord.proxy.home import Home, Side
from accord.proxy.hop import Hop
from accord.proxy.link import Port
from accord.proxy.merging import with_changes
from accord.proxy.registered import Entry
from accord.proxy.steps import run_steps
from accord.schema import codec
from accord.schema.base import Notification
from accord.tasks import is_awaitable, pass_on

log = logging.getLogger("accord")


class Told:
    """A notification that goes through handlers, or waits for earlier messages."""

    def __init__(
        self,
        live: Home,
        side: Side,
        port: Port,
        method: str,
        params: Raw | None,
        session: str | None,
        entry: Entry | None,
    ) -> None:
        self.live = live
        self.side: Side = side
        self.port = port
        self.method = method
        self.params = b"{}" if params is None else bytes(params)
        self.session = session
        self.entry = entry
        self.message: Any = None
        self.size = len(self.params) + WEIGHT
        self.is_immediate = entry is not None and entry.immediate

    def run(self) -> Awaitable[None] | None:
        """Call the steps; returns what has to be awaited if one of them suspends."""
        if self.entry is None:
            self._send_on(None)
            return None
        try:
            self.message = codec.decode(self.params, self.entry.params)
        except DecodeError as error:
            log.warning("%s passes unseen: its params are invalid: %s", self.method, error)
            self._send_on(None)
            return None
        hop: Hop[Any] = Hop(self.live, self.side, self.session, self._forward)
        try:
            value = run_steps(self.entry, self.message, hop)
            if is_awaitable(value):
                return self._finish_later(value)
            self._finish(value)
        except BaseException as error:
            self._failed(error)
        return None

    async def _finish_later(self, value: Awaitable[Any]) -> None:
        try:
            self._finish(await value)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failed(error)

    def _finish(self, value: Any) -> None:
        if value is None:
            return
        if not isinstance(value, Notification):
            raise TypeError(f"a handler of {self.method} returns a notification or None, got {type(value).__name__}")
        self._send_on(value)

    def _send_on(self, message: Any) -> None:
        same = message is None or message is self.message
        params = self.params if same else with_changes(self.params, self.message, message)
        method = self.method if message is None or same else message.__method__
        self.live.board.pass_tell(self.port, method, params)

    async def _forward(self, message: Any) -> None:
        self._send_on(self.message if message is None else message)

    def _failed(self, error: BaseException) -> None:
        # What a handler could not look at does not pass: it may be there to keep something from the other side.
        log.error("the handler of %s failed; the message was dropped", self.method, exc_info=error)
        pass_on(error)
