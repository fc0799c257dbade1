"""Questions that wait for the user, and their end when the turn is cancelled.

A client must answer a question although its user may never do so. When the turn is cancelled, the service answers at
once, and the function that asks the user is cancelled: it has `PATIENCE` seconds to take its window away.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from accord._internal.tasks import adapted
from accord.services.service import ServedSession

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
