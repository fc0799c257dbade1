"""Work that an agent begins by itself, between two prompts: `async with session.work() as turn:`.

It is a stretch of foreground work like a turn, without a prompt: it has a place in the same line, the client can cancel
it, and in version 2 it is told with `running` and `idle`. In version 1 its updates come between two turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from accord.agent.open_session import OpenSession
from accord.agent.prompt_queue import CANCELLED
from accord.agent.running_turn import RunningTurn, meant_by
from accord.agent.turn import Turn
from accord.dialects.dialect import End, Failure
from accord.engine.context import Context
from accord.errors import INTERNAL_ERROR, RequestError
from accord.schema import v1


@asynccontextmanager
async def work_in(session: OpenSession) -> AsyncGenerator[Turn]:
    """Work in this session without a prompt; waits until no turn runs."""
    task = asyncio.current_task()
    if session.turns.runs_in(task):
        raise RuntimeError("session.work() inside a turn would wait for that turn; use the turn itself")
    place = session.turns.place_for_own_work()
    running = RunningTurn(session, Context(session.updates.peer), place, session.name_of_work())
    turn = Turn(running, v1.PromptRequest(session.id, []))
    has_begun = is_over = is_stopped = False

    def ended(error: BaseException | None) -> bool:
        nonlocal is_over
        if not is_over:
            is_over = True
            running.end()
            failure = None if not isinstance(error, Exception) else _failure(error)
            reason = CANCELLED if place.is_cancelled or is_stopped else "end_turn"
            session.activity.idle(End(stop_reason=reason, meta=turn.answer_meta or None, failure=failure))
        return False

    with place:
        if has_begun := await place.comes():
            # Only work that has begun has an end to tell.
            place.at_end(ended)
            place.when_overdue(lambda: _ignore(ended(None)))
            session.activity.working()
            try:
                async with running.tasks:
                    yield turn
            except BaseExceptionGroup as group:
                raise meant_by(group) from None
            except asyncio.CancelledError:
                is_stopped = not place.is_cancelled
                raise
            finally:
                running.end()
                await session.face.save()
    if not has_begun:
        raise RuntimeError("the session was closed before its own work could begin")
    if is_stopped:
        raise asyncio.CancelledError  # something has cancelled the task, and not the client this work
    if place.is_cancelled and task is not None:
        task.uncancel()  # the cancellation was for this work, and not for what its task does next


def _failure(error: Exception) -> Failure:
    if isinstance(error, RequestError):
        return Failure(error.code, error.message, error.data)
    return Failure(INTERNAL_ERROR, "Internal error")


def _ignore(_: object) -> None: ...
