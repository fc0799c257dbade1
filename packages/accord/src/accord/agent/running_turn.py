"""`RunningTurn`: the work on one prompt, as its connection sees it. The author holds its face, the `Turn`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

from accord.agent.open_session import OpenSession
from accord.agent.prompt_queue import QueuedPrompt
from accord.agent.providers import Current
from accord.engine.context import Context
from accord.errors import RequestError
from accord.schema import v1
from accord.schema.base import Json, Request

T = TypeVar("T")
ResultT = TypeVar("ResultT")

ASKS_THE_USER = (v1.RequestPermissionRequest, v1.CreateElicitationRequest)


class RunningTurn:
    """What one turn runs and asks, and its end. As an `Asks`, it sends requests that end with the turn."""

    __slots__ = (
        "_asking",
        "_made",
        "_name",
        "_place",
        "_questions",
        "asked",
        "beside",
        "context",
        "endpoints",
        "inner",
        "plans",
        "send",
        "send_given",
        "session",
        "spent",
        "tasks",
        "updates",
    )

    def __init__(self, session: OpenSession, context: Context, place: QueuedPrompt, name: str = "") -> None:
        self.session = session
        self._name = name
        """What tells the ids of this work from those of others that belong to the same prompt."""
        self.context = context
        self.updates = session.updates
        """What the session tells its client, in the turn and after it."""
        self.asked = session.asked
        """What requests to the client need."""
        self.plans = session.plans
        """The plans that the session shows."""
        self.inner: list[RunningTurn] = []
        """The subagents of the turn that are at work; they end with it."""
        self.tasks = asyncio.TaskGroup()
        """What runs beside the author's function."""
        self.send: Callable[[v1.SessionUpdate], Coroutine[Any, Any, None]] = session.updates.send
        """Sends an update; an error once the turn is over."""
        self.send_given: Callable[[v1.SessionUpdate], Coroutine[Any, Any, None]] = session.updates.send_given
        """Sends an update that an author made; an error once the turn is over."""
        self.spent: v1.Usage | None = None
        """The tokens that the answer reports."""
        self.endpoints: Current = {}
        """Where the models of each provider are, as it was when the turn began."""
        self.beside = 0
        """How many tasks work beside the author's function."""
        self._questions = 0
        """How many questions to the user are open."""
        self._place = place
        self._asking: set[asyncio.Task[Any]] = set()
        self._made = 0

    def new_id(self, kind: str) -> str:
        """An id for a message or a tool call, which nothing else in the session has."""
        self._made += 1
        return self.session.record.id_for(f"{self._name}{kind}{self._made}")

    async def taken(self) -> Any | None:
        """The next prompt that the turn takes from those that wait; None if there is none."""
        return await self._place.taken()

    async def request(self, request: Request[ResultT], *, force: bool = False) -> ResultT:
        """Send the client any request. It is cancelled when the turn ends, whichever task sent it."""
        if not issubclass(type(request), ASKS_THE_USER):
            return await self._while_it_lasts(self.asked.asks.request(request, force=force))
        if self._place.is_cancelled:
            # prompt-turn, Cancellation: the client has answered all open questions; do not ask its user again.
            raise asyncio.CancelledError
        self._questions += 1
        try:
            with self._waiting_for_user():
                return await self._while_it_lasts(self.asked.asks.request(request, force=force))
        finally:
            self._questions -= 1

    def _waiting_for_user(self) -> AbstractContextManager[None]:
        """The session waits for its user, if each of the turn's tasks does."""
        if self._questions <= self.beside:
            return nullcontext()
        return self.session.activity.waiting_for_user()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do this beside the author's function."""
        task = self.tasks.create_task(work)
        self.beside += 1
        task.add_done_callback(self._one_less_beside)
        return task

    def _one_less_beside(self, _: asyncio.Task[Any]) -> None:
        self.beside -= 1

    async def request_raw(self, method: str, params: Json = None, *, session_id: str | None = None) -> Json:
        """The same, in plain JSON values."""
        session_id = session_id or self.session.id
        return await self._while_it_lasts(self.asked.asks.request_raw(method, params, session_id=session_id))

    async def _while_it_lasts(self, asking: Awaitable[T]) -> T:
        task = asyncio.current_task()
        if task is None or task in self._asking:
            return await asking
        self._asking.add(task)
        try:
            return await asking
        finally:
            self._asking.discard(task)

    def end(self) -> None:
        """Refuse updates from now on and cancel open requests: the function has returned."""
        self.send = self.send_given = _too_late
        for subagent in self.inner:
            subagent.end()
        current = asyncio.current_task()
        for task in self._asking:
            if task is not current:
                task.cancel()


def meant_by(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What an author raised, without what task groups put around it; an answer of his choosing before all else."""
    raised = list(_each(group))
    chosen = next((error for error in raised if isinstance(error, RequestError)), None)
    if chosen is not None:
        return chosen
    return raised[0] if len(raised) == 1 else group.exceptions[0]


def _each(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _each(inner)
    else:
        yield error


async def _too_late(_: v1.SessionUpdate) -> None:
    # overview, Message Flow: a turn's updates come before its answer.
    raise RuntimeError("this turn is over; use session.send to tell the client something between turns")
