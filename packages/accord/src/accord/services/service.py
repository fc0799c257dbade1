"""The base class of lent services, and the session as services see it.

A service is created once and may serve many connections. It registers handlers for each connection; they find the
session by its id. What a service keeps for a session it keeps by the session object, because two agents may both use
the id `1`. A service knows neither the client nor the agent, so an agent can use it for itself (`local_services`).

A client must answer a question although its user may never do so. When the turn is cancelled, the service answers at
once, and the function that asks the user is cancelled: it has `PATIENCE` seconds to take its window away.
"""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from accord._internal.tasks import adapted
from accord.engine.handlers import Handlers
from accord.project.roots import Roots
from accord.schema import v1
from accord.session import ToolCallState


class ServedSession(Protocol):
    """The session that sent a request, as services see it. It is the same object for the session's whole life."""

    @property
    def id(self) -> v1.SessionId:
        """The session's id, unique within its connection only."""
        ...

    @property
    def agent(self) -> str:
        """The agent's name: the one that it gives itself, or its command."""
        ...

    @property
    def program(self) -> str:
        """What the agent is, whatever it calls itself: its program, its URL's origin, or its module."""
        ...

    @property
    def cwd(self) -> Path:
        """The working directory."""
        ...

    @property
    def roots(self) -> Roots:
        """`cwd` and the additional directories: its files, and where its commands begin, must be inside."""
        ...

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """A tool call with all of its updates so far; None if it is unknown."""
        ...

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Apply what a permission request says about a tool call, and return the tool call."""
        ...


SessionOf: TypeAlias = Callable[[v1.SessionId], ServedSession]
"""Finds a session of one connection by its id; raises RequestError if there is none."""


class Service(ABC):
    """Something that a client lends to agents.

    Write your own service as a subclass:

        class Clock(accord.Service):
            def declare(self, capabilities):
                return capabilities

            def register(self, handlers, session_of):
                @handlers.on(WhatTimeIsIt)
                def answer(request):
                    return Time(...)
    """

    @abstractmethod
    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Return these capabilities with those of this service added."""

    @abstractmethod
    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Register handlers for the requests of one connection. `session_of` finds a session by its id."""

    def register_v2(self, handlers: Handlers, session_of: SessionOf) -> None:  # noqa: B027
        """Register handlers for a connection of version 2, over those of `register`.

        Handlers for messages of version 1 are called with converted messages there. Register one here for a message of
        version 2 that says more.
        """

    def turn_cancelled(self, session: ServedSession) -> None:  # noqa: B027
        """Answer the session's open questions with `cancelled`: the user has cancelled the turn."""

    async def release(self, session: ServedSession) -> None:  # noqa: B027
        """Release everything that is kept for the session: it, or its connection, has ended."""


Q = TypeVar("Q")
A = TypeVar("A")

PATIENCE = 1.0
"""Seconds that a cancelled question has to disappear from the user's screen."""


class TurnCancelledError(Exception):
    """The turn was cancelled before the user answered."""


class OpenQuestions:
    """The questions of one service that are not answered yet, by session."""

    def __init__(self) -> None:
        self._cancellations: WeakKeyDictionary[ServedSession, set[asyncio.Future[None]]] = WeakKeyDictionary()

    async def ask(self, session: ServedSession | None, function: Callable[[Q], A | Awaitable[A]], question: Q) -> A:
        """Return the user's answer, or raise TurnCancelledError.

        A question without a session belongs to no turn, so nothing cancels it.
        """
        cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        of_session = set[asyncio.Future[None]]() if session is None else self._cancellations.setdefault(session, set())
        of_session.add(cancelled)
        asking = asyncio.ensure_future(_answer(function, question))
        try:
            waited_for: list[asyncio.Future[Any]] = [asking, cancelled]
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
            if cancelled.done():
                raise TurnCancelledError
            return asking.result()
        finally:
            of_session.discard(cancelled)
            await _withdraw(asking)

    def cancel(self, session: ServedSession) -> None:
        """Cancel all questions of a session."""
        for cancelled in self._cancellations.get(session, ()):
            if not cancelled.done():
                cancelled.set_result(None)


async def _answer(function: Callable[[Q], A | Awaitable[A]], question: Q) -> A:
    answer: A | Awaitable[A] = adapted(function)(question)
    if inspect.isawaitable(answer):
        return await answer
    return answer


async def _withdraw(asking: asyncio.Future[Any]) -> None:
    if not asking.done():
        asking.cancel()
        await asyncio.wait([asking], timeout=PATIENCE)
    if asking.done() and not asking.cancelled():
        asking.exception()  # marks it as retrieved; after a cancellation the answer no longer matters
