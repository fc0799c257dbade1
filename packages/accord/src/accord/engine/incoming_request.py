"""`IncomingRequest`: a request of the peer, from its arrival until it is answered.

A request goes through these states; `incoming_requests` moves it on:

    arrived ──▶ waits to begin ──▶ its handler runs ──▶ answered

It waits to begin while output is full (`held_requests`), or until earlier messages have started (`lanes`). A request
that is cancelled before it has begun is begun, and cancelled right after that: so its handler can still clean up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Protocol

import msgspec

from accord.engine.routes import Route
from accord.jsonrpc.line_frames import RequestId


class RequestOwner(Protocol):
    """The part of a connection that answers its requests: `Answering`."""

    def answer_now(self, request: IncomingRequest, result: Any) -> None:
        """Answer with this while the handler goes on."""
        ...

    def do_what_comes_after(self, request: IncomingRequest) -> None:
        """Call the functions that wait until the answer was sent."""
        ...

    def failure(self, request: IncomingRequest, error: BaseException) -> tuple[int, str, Any]:
        """The code, message and data that tell the peer of this error of a handler."""
        ...


class IncomingRequest(msgspec.Struct, eq=False):
    """A request of the peer that has no answer yet."""

    id: RequestId
    key: Hashable
    """What it is looked up by: the `key_of` its id."""
    method: str
    route: Route | None
    """Its route; None if no handler takes it."""
    owner: RequestOwner
    size: int
    """Bytes of its frame; 0 while it is held."""
    on_answered: Callable[[bool], None] | None
    """Called after its answer, with whether that is a result; None if no call is needed."""
    lane: str | None = None
    in_lane: bool = False
    """Whether notifications that arrived before it have not started yet."""
    running: bool = True
    cancelled: bool = False
    stepped: bool = False
    """Whether the handler's task has had its first step."""
    task: asyncio.Task[None] | None = None
    _begin: Callable[[], None] | None = None
    on_cancel: Callable[[], None] | None = None
    """Called instead of cancelling the task, if the handler has asked for that."""
    after_answer: list[Callable[[], Awaitable[Any] | None]] | None = None

    holding_up = None  # a request's handler never holds up an answer

    def will_begin(self, begin: Callable[[], None]) -> None:
        """Keep the function that starts the handler, for `begin`."""
        self._begin = begin

    @property
    def waits_to_begin(self) -> bool:
        """Whether the handler has not started."""
        return self._begin is not None

    def begin(self) -> None:
        """Start the handler; a second time does nothing."""
        begin, self._begin = self._begin, None
        if begin is not None:
            begin()
            if self.cancelled:
                self._cancel_task()

    def cancel(self) -> None:
        """Cancel the handler. One that has not started is cancelled right after its start."""
        self.cancelled = True
        if not self.waits_to_begin:
            self._cancel_task()

    def _cancel_task(self) -> None:
        if self.task is not None:
            # The task's first step is already in the loop's queue; this comes after it.
            asyncio.get_running_loop().call_soon(self._cancel_now, self.task)

    def _cancel_now(self, task: asyncio.Task[None]) -> None:
        if self.on_cancel is not None:
            self.on_cancel()
        else:
            task.cancel()

    def after(self, do: Callable[[], Awaitable[Any] | None]) -> None:
        """Call this function once the answer has been sent; now, if it has been."""
        if self.after_answer is None:
            self.after_answer = []
        self.after_answer.append(do)
        if not self.running:
            self.owner.do_what_comes_after(self)
