"""Observers of a connection: functions that see every message of it, as plain values."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from accord.engine.connection import Connection
from accord.schema import codec
from accord.tasks import is_awaitable
from accord.trace import OUT, TraceEvent

log = logging.getLogger("accord")


class StreamDirection(StrEnum):
    """The direction of a message, as this side sees it."""

    INCOMING = "incoming"
    OUTGOING = "outgoing"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A message on the wire, for an observer."""

    direction: StreamDirection
    message: dict[str, Any]


StreamObserver = Callable[[StreamEvent], Awaitable[None] | None]


class Observers:
    """Shows the messages of a connection to functions; what these await runs in tasks of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tasks: set[asyncio.Future[None]] = set()

    def add(self, observer: StreamObserver) -> None:
        """Show every message from now on to this function."""

        def observe(event: TraceEvent) -> None:
            if event.frame is None:
                return
            direction = StreamDirection.OUTGOING if event.direction == OUT else StreamDirection.INCOMING
            try:
                message = codec.loads(event.frame)
            except ValueError:
                return  # not JSON: the official SDK shows nothing of it either
            result = observer(StreamEvent(direction, message))
            if result is not None and is_awaitable(result):
                task = asyncio.ensure_future(result)
                self._tasks.add(task)
                task.add_done_callback(self._ended)

        self._connection.observe(observe)

    def cancel(self) -> None:
        """End what the observers still do."""
        for task in list(self._tasks):
            task.cancel()

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an observer of the connection failed", exc_info=error)
