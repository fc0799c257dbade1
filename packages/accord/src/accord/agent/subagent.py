"""`Subagent`: a running subagent.

A subagent is a turn in its own session, which the client may read and, if the author allows it, cancel. The author's
code uses it like a turn (`say`, `tool`, `ask`, ...); only the route of its updates differs:

    client with subagents      `OwnSession`     updates and questions go out under the subagent's id, and the session
                                                that started it tells how the subagent stands
    any other client           `OneToolCall`    a tool call that grows by what the subagent says; its own tool calls and
                                                questions are those of the session that started it

Updates of a subagent are stored in the record of its session (`replay_tree`). A subagent ends with its block, and
updates and questions end with the turn that it works in. After that, only the report of its end may be sent.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET

from accord.agent.plan import SessionPlans
from accord.agent.record import Record, SessionUpdates, encoded_update, public_error
from accord.agent.replay_tree import subagent_id, update_head
from accord.agent.session import StateT
from accord.agent.tool import Tool
from accord.agent.turn import ASKS_THE_USER, Turn, TurnRequests, meant_by
from accord.dialects import Activity, ActivityEnd, Failure
from accord.errors import ConnectionClosed, StoreError
from accord.mistakes import check_text
from accord.schema import v1
from accord.schema.base import JsonObject, Request
from accord.schema.sendable import check_meta, content_block, with_meta
from accord.schema.v1 import ContentBlock
from accord.session import updates
from accord.session.updates import IdleStateUpdate, StateUpdate, Update as SentUpdate
from accord.session.values import Update

ResultT = TypeVar("ResultT")

RUNNING = updates.RunningStateUpdate()
WAITS_FOR_THE_USER = updates.RequiresActionStateUpdate()


class Introduction(msgspec.Struct, frozen=True):
    """The facts about a subagent that the client gets before anything else."""

    title: str
    description: str | None
    is_cancellable: bool
    prompt: Sequence[ContentBlock]
    """The task of the subagent; empty if the author gives none."""
    meta: JsonObject | None = None
    """The `_meta` of the announcement."""

    def update(self, subagent: updates.SessionId) -> updates.SubagentUpdate:
        """The update that announces the subagent."""
        can = updates.SubagentSessionCapabilities(updates.SessionCancelCapabilities() if self.is_cancellable else None)
        description = UNSET if self.description is None else self.description
        meta = UNSET if self.meta is None else self.meta
        return updates.SubagentUpdate(subagent, self.title, description, can, RUNNING, meta=meta)


class OwnSession:
    """A subagent with its own session, for clients that show subagents."""

    def __init__(self, parent: Turn, subagent: updates.SessionId) -> None:
        session = parent.session
        client, dialect = session._link.client, session._link.client.dialect()
        requester = client.requester_for(session, dialect)
        self.link = msgspec.structs.replace(session._link, session_id=subagent, requester=requester)
        record = SubagentRecord(session._record, subagent)
        self.updates = SessionUpdates(record, client.peer, session._link.cwd, dialect)
        self.updates.known()
        self._parent = parent
        self._id = subagent

    async def begin(self, introduction: Introduction) -> None:
        # The announcement comes before any update that names the subagent.
        await self._parent._send(introduction.update(self._id))
        self._report("running")
        if introduction.prompt:
            await self.message(introduction.prompt, to_subagent=True)

    async def send(self, update: SentUpdate) -> None:
        await self.updates.send(update)

    async def retitle(self, title: str, meta: JsonObject | None) -> None:
        await self._parent._send(with_meta("subagent.retitle", updates.SubagentUpdate(self._id, title), meta))

    async def stand(self, state: StateUpdate) -> None:
        await self._parent._send(updates.SubagentUpdate(self._id, state=state))
        self._report("running" if state is RUNNING else "requires_action")

    def _report(self, activity: Activity, end: ActivityEnd | None = None) -> None:
        """In version 2 a subagent also reports its state itself; the dialect of version 1 drops it."""
        update = self.updates.dialect.state(activity, None, end)
        if update is not None:
            self.updates.report(update)

    async def message(
        self, content: Sequence[ContentBlock], meta: JsonObject | None = None, *, to_subagent: bool
    ) -> None:
        """Show a message between the two sessions in both, each with its own id for it."""
        outer, inner = (updates.MessageId(self._parent._new_id("x")) for _ in range(2))
        parent = self._parent._link.session_id
        said: Any = {"content": list(content), "meta": UNSET if meta is None else meta}
        if to_subagent:
            sent = updates.SessionMessage(outer, recipient_session_id=self._id, **said)
            received = updates.SessionMessage(inner, sender_session_id=parent, sender_message_id=outer, **said)
            await self._parent._send(sent)
            await self.updates.send(received)
        else:
            sent = updates.SessionMessage(inner, recipient_session_id=parent, **said)
            received = updates.SessionMessage(outer, sender_session_id=self._id, sender_message_id=inner, **said)
            await self.updates.send(sent)
            await self._parent._send(received)

    async def end(self, state: IdleStateUpdate) -> None:
        error = state.error
        failure = None if error is None else Failure(error.code, error.message, error.data)
        self._report(
            "idle", ActivityEnd(stop_reason=state.stop_reason or "end_turn", usage=state.usage, failure=failure)
        )
        # Also after the turn: a client must not see a subagent at work for ever.
        await self._parent._updates.send(updates.SubagentUpdate(self._id, state=state))


class OneToolCall:
    """A subagent as a tool call of its session, for clients that do not know subagents."""

    def __init__(self, parent: Turn, title: str) -> None:
        self.link = parent._link
        self.updates = parent._updates
        self._parent = parent
        self._title = title
        self._tool: Tool

    async def begin(self, introduction: Introduction) -> None:
        self._tool = await self._parent.tool(self._title, kind="other", meta=introduction.meta).__aenter__()
        if introduction.prompt:
            await self._tool.raw_input({"prompt": _text_of(introduction.prompt)})

    async def send(self, update: SentUpdate) -> None:
        if isinstance(update, updates.AgentMessageChunk):
            await self._grow(update.content, update.meta)
        elif isinstance(update, updates.Notice) or hasattr(update, "tool_call_id"):
            await self._parent._send(update)

    async def _grow(self, content: ContentBlock, meta: JsonObject | None) -> None:
        if isinstance(content, v1.TextContent):
            await self._tool.text(content.text, meta=meta)
        else:
            await self._tool.content(content, meta=meta)

    async def retitle(self, title: str, meta: JsonObject | None) -> None:
        await self._tool.retitle(title)
        if meta is not None:
            await self._tool.set_meta(meta)

    async def stand(self, state: StateUpdate) -> None:
        """The questions that a subagent asks are seen by themselves."""

    async def message(
        self,
        content: Sequence[ContentBlock],
        meta: JsonObject | None = None,
        *,
        to_subagent: bool,  # noqa: ARG002
    ) -> None:
        for block in content:
            await self._grow(block, meta)

    async def end(self, state: IdleStateUpdate) -> None:
        if state.error is not None:
            await self._tool.fail(state.error.message)
        elif state.stop_reason == "cancelled":
            await self._tool.fail()
        await self._tool.__aexit__(None, None, None)


WayOut: TypeAlias = OwnSession | OneToolCall
"""The way a subagent is shown to the client."""


class SubagentRequests(TurnRequests):
    """The requests of one subagent; while a question is open, the subagent waits for its user."""

    __slots__ = ("_open_questions", "_way_out")

    def __init__(self, parent: Turn, way_out: WayOut) -> None:
        super().__init__(parent.session, parent._place, way_out.link)
        self._way_out = way_out
        self._open_questions = 0

    async def request(self, request: Request[ResultT], *, force: bool = False) -> ResultT:
        """Send the client any request. It is cancelled when the subagent ends, whichever task sent it."""
        if not issubclass(type(request), ASKS_THE_USER):
            return await super().request(request, force=force)
        self._open_questions += 1
        if self._open_questions == 1:
            await self._way_out.stand(WAITS_FOR_THE_USER)
        try:
            return await super().request(request, force=force)
        finally:
            self._open_questions -= 1
            if self._open_questions == 0:
                with suppress(RuntimeError):  # the turn is over, and the end of the subagent is reported anyway
                    await self._way_out.stand(RUNNING)


class Subagent(Turn[StateT]):
    """A running subagent; `turn.subagent(...)` makes it.

    It is a turn: whatever works on a `Turn` works on a `Subagent`. Its text, tool calls and questions belong to its own
    session, whose id is `id`. `session` is the session of the turn that started it. An error in its block ends it, and
    propagates to the code around the block.
    """

    def __init__(self, parent: Turn[StateT], introduction: Introduction) -> None:
        self.id: updates.SessionId = subagent_id(parent.session.id, parent._new_id("s"))
        """The id of its session; a client that shows no subagents does not know it."""
        self.title: str = introduction.title
        """The title that the user reads; `retitle` changes it."""
        way_out: WayOut
        if parent._link.client.capabilities.has("subagents"):
            way_out = OwnSession(parent, self.id)
        else:
            way_out = OneToolCall(parent, self.title)
        super().__init__(
            parent.session,
            parent.context,
            parent._place,
            v1.PromptRequest(self.id, list(introduction.prompt)),
            link=way_out.link,
            updates=way_out.updates,
            requests=SubagentRequests(parent, way_out),
        )
        self._send = way_out.send
        self._plans = SessionPlans(self._updates.client_shows)
        self._parent = parent
        self._way_out = way_out
        self._introduction = introduction
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._is_stopped = False

    def __repr__(self) -> str:
        return f"Subagent({self.title!r}, id={self.id!r})"

    @property
    def was_cancelled(self) -> bool:
        """Whether the user has cancelled this subagent alone, for the code after its block."""
        return self._is_stopped

    async def retitle(self, title: str, *, meta: JsonObject | None = None) -> None:
        """Describe more precisely what it does; `meta` changes its `_meta`."""
        check_text("subagent.retitle()", title)
        await self._way_out.retitle(title, meta)
        self.title = title

    async def instruct(self, content: str | v1.ContentBlock, *, meta: JsonObject | None = None) -> None:
        """Show a message from the session that started it: more for it to do."""
        await self._message("subagent.instruct()", content, meta, to_subagent=True)

    async def report(self, content: str | v1.ContentBlock, *, meta: JsonObject | None = None) -> None:
        """Show a message to the session that started it: its findings."""
        await self._message("subagent.report()", content, meta, to_subagent=False)

    async def _message(
        self, call: str, content: str | v1.ContentBlock, meta: JsonObject | None, *, to_subagent: bool
    ) -> None:
        block = content_block(call, content)
        check_meta(call.replace("()", "(meta=...)"), meta)
        self.end_message()
        self._parent.end_message()
        await self._way_out.message([block], meta, to_subagent=to_subagent)

    def _new_id(self, kind: str) -> str:
        """Return a unique id in the session: without subagents, it is an id of the session that started it."""
        return self._parent._new_id(kind)

    # Its beginning and its end

    async def __aenter__(self) -> Self:
        self._parent.end_message()
        task = asyncio.current_task()
        self._task, self._cancelling = task, 0 if task is None else task.cancelling()
        await self._way_out.begin(self._introduction)
        self._parent._inner.append(self)
        if self._introduction.is_cancellable:
            self.session._subagents[self.id] = self._stop
        await self._tasks.__aenter__()
        return self

    def _stop(self) -> None:
        """Cancel it for the user: its block ends, and the code after the block continues."""
        if self._task is not None and not self._is_stopped:
            self._is_stopped = True
            self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        raised = error
        try:
            await self._tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            raised = meant_by(group)
        except BaseException as other:
            raised = other
        self.session._subagents.pop(self.id, None)
        was_stopped = self._was_stopped(raised)
        await self._ended(updates.IdleStateUpdate("cancelled") if was_stopped else self._idle(raised))
        if was_stopped or raised is None or raised is error:
            return was_stopped
        raise raised from None

    def _was_stopped(self, error: BaseException | None) -> bool:
        """Whether `_stop` caused this cancellation. The task may have been cancelled twice."""
        if not self._is_stopped or self._task is None:
            return False
        others = self._task.uncancel() > self._cancelling
        return isinstance(error, asyncio.CancelledError) and not others

    def _idle(self, error: BaseException | None) -> updates.IdleStateUpdate:
        if error is None:
            return updates.IdleStateUpdate("end_turn", self._spent)
        if isinstance(error, asyncio.CancelledError):
            return updates.IdleStateUpdate("cancelled", self._spent)
        return updates.IdleStateUpdate("error", self._spent, public_error(error))

    async def _ended(self, state: IdleStateUpdate) -> None:
        self._end()
        if self in self._parent._inner:
            self._parent._inner.remove(self)
        with suppress(ConnectionClosed, StoreError, RuntimeError):  # the error of the block is more informative
            await self._way_out.end(state)


class SubagentRecord(Record):
    """A subagent's part of the record of its session."""

    def __init__(self, parent: Record, subagent: updates.SessionId) -> None:
        super().__init__(parent._store, parent._stored, parent.version)
        self.head = update_head(subagent)
        self._parent = parent
        self._subagent = subagent

    async def keep(self, update: Update) -> bytes:
        """Store this update; returns the frame for the client."""
        encoded = encoded_update(update)
        tag = self._apart.get(update.__class__)
        if tag is None or tag == "session_info_update":
            await self._parent.write((self._entry(encoded),))
        return self.frame(encoded)

    def keep_now(self, update: Update) -> bytes | None:
        """`keep`, where the store can do that without waiting; else None, and nothing is stored."""
        append = self._parent._append
        if append is None or update.__class__ in self._apart:
            return None
        encoded = encoded_update(update)
        append(self._entry(encoded))
        return self.frame(encoded)

    def _entry(self, encoded: bytes) -> bytes:
        return self._entry_of(self._subagent, encoded)


def _text_of(content: Sequence[ContentBlock]) -> str:
    return "".join(block.text for block in content if isinstance(block, v1.TextContent))
