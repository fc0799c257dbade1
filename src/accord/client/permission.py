"""Permission requests, answered by a function of the client's author, or refused.

    session/request_permission ──▶ folded into the session's tool call ──▶ ask(PermissionQuestion) ──▶ an option

Refusing selects a reject option. `cancelled` is said only where the agent offers none, and when the turn was cancelled
while the question was open: agents take it for the end of the turn.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

from accord.client.remote_session import RemoteSession
from accord.handlers import Handlers
from accord.host.service import HostedSession, Service, SessionOf
from accord.schema import v1
from accord.state import ToolCallState

Choice: TypeAlias = "v1.PermissionOption | str | bool | None"
"""An option or its id; True for allow (once, if that is offered), False for reject, None for cancelled."""

Ask: TypeAlias = "Callable[[PermissionQuestion], Choice | Awaitable[Choice]]"


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """May the agent do this?"""

    session: HostedSession
    tool_call: ToolCallState
    """What it wants to do, as all of its updates have made it."""
    options: Sequence[v1.PermissionOption]

    def option(self, *kinds: v1.PermissionOptionKind) -> v1.PermissionOption | None:
        """The first option of the first of these kinds that is offered."""
        return next((option for kind in kinds for option in self.options if option.kind == kind), None)

    @property
    def allow(self) -> v1.PermissionOption | None:
        return self.option("allow_once", "allow_always")

    @property
    def reject(self) -> v1.PermissionOption | None:
        return self.option("reject_once", "reject_always")


class AskedPermissions(Service):
    """Puts each question to one function."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._open: WeakKeyDictionary[HostedSession, set[asyncio.Future[None]]] = WeakKeyDictionary()

    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        return capabilities

    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        @handlers.on(v1.RequestPermissionRequest)
        async def answer(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
            return await self._answer(session_of(request.session_id), request)

    def turn_cancelled(self, session: HostedSession) -> None:
        for cancelled in self._open.get(session, ()):
            if not cancelled.done():
                cancelled.set_result(None)

    async def release(self, session: HostedSession) -> None:
        self.turn_cancelled(session)

    async def _answer(
        self, session: HostedSession, request: v1.RequestPermissionRequest
    ) -> v1.RequestPermissionResponse:
        question = PermissionQuestion(session, _folded(session, request.tool_call), request.options)
        cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open.setdefault(session, set()).add(cancelled)
        asking = asyncio.ensure_future(self._asked(question))
        try:
            await asyncio.wait([asking, cancelled], return_when=asyncio.FIRST_COMPLETED)
            if cancelled.done():
                return v1.RequestPermissionResponse.cancelled()
            return _response(question, asking.result())
        finally:
            self._open[session].discard(cancelled)
            asking.cancel()
            await asyncio.wait([asking])

    async def _asked(self, question: PermissionQuestion) -> Choice:
        answer = self._ask(question)
        return await answer if inspect.isawaitable(answer) else answer


def refuse(_: PermissionQuestion) -> bool:
    """What is answered when the author said nothing about permissions."""
    return False


def allow(_: PermissionQuestion) -> bool:
    return True


def allow_reads(question: PermissionQuestion) -> bool:
    """Allow what only looks."""
    return question.tool_call.kind in READS


READS: tuple[v1.ToolKind, ...] = ("read", "search", "fetch", "think")

ALLOWANCES: dict[Literal["all", "reads", "none"], Ask] = {"all": allow, "reads": allow_reads, "none": refuse}


def _folded(session: HostedSession, said: v1.ToolCallUpdate) -> ToolCallState:
    if isinstance(session, RemoteSession):
        session.state.add(said)
        return session.state.tool_calls[said.tool_call_id]
    return ToolCallState(said.tool_call_id).updated(said)


def _response(question: PermissionQuestion, choice: Choice) -> v1.RequestPermissionResponse:
    if choice is True:
        choice = question.allow
    elif choice is False:
        choice = question.reject
    option_id = choice.option_id if isinstance(choice, v1.PermissionOption) else choice
    if option_id is None:
        return v1.RequestPermissionResponse.cancelled()
    offered = {option.option_id for option in question.options}
    if option_id not in offered:
        raise ValueError(f"{option_id!r} was not offered; {', '.join(sorted(offered)) or 'nothing'} was")
    return v1.RequestPermissionResponse.selected(v1.PermissionOptionId(str(option_id)))
