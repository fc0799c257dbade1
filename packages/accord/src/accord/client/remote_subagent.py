"""`RemoteSubagent`: a subagent of a session, as the caller holds it: to read and, where the agent allows it, to cancel.

It is the face of a `LiveSubagent`, which stands in the table of its session's `Subagents`.

    subagent_update of a session ──▶ `SessionState.subagents`        the session, or another subagent, names them
    session/update with another id ──▶ `Subagents.find` ──▶ LiveSubagent.received ──▶ its own `state`

A subagent is made when something is first said in its name, or when the caller looks. What came before it was
announced waits in `UnknownSessionUpdates`. Services know a subagent as a `ServedSession`, so its questions reach the
same functions as those of its session. Its folders are those of its session: an agent may say that a subagent works
elsewhere, but that must not open a folder that the user did not give.

An agent may start subagents without end. A session keeps what the latest `KEPT` of them said, each within its share of
`Limits.state`.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Raw

from accord.client.update_buffer import UpdateBuffer
from accord.dialects.v1_dialect import V1_ONLY
from accord.errors import CapabilityMissing, Overflow
from accord.mistakes import check_callable, shortened
from accord.schema import v1
from accord.schema.base import Unknown
from accord.session import Observer, SessionState, SubagentState, ToolCallState, updates

if TYPE_CHECKING:
    from accord.client.live_agent import LiveAgent
    from accord.client.remote_session import LiveSession


class RemoteSubagent:
    """A subagent: work that a session's agent has delegated, in a session of its own that can only be read.

    for subagent in session.subagents.values():
        print(subagent.title, subagent.status, subagent.text)
    """

    def __init__(self, live: LiveSubagent, owner: object = None) -> None:
        self._live = live
        self._owner = owner  # the RemoteAgent, which ends when nothing refers to it (see `ownership`)
        self.id: v1.SessionId = live.id
        """The id of the subagent's session."""
        self.parent_id: v1.SessionId = live.parent.id
        """The id of the session, or of the subagent, that has started it."""
        self.state: SessionState = live.state
        """What it has said and done so far: messages, tool calls, plan."""

    def __repr__(self) -> str:
        return f"RemoteSubagent({shortened(self.title or self.id)!r}, {self.status or 'unknown'})"

    # What its agent says of it

    @property
    def title(self) -> str | None:
        """What it works on; None if its agent does not say."""
        return self._live.told.title

    @property
    def description(self) -> str | None:
        """What else its agent says of it; None if nothing."""
        return self._live.told.description

    @property
    def cwd(self) -> str | None:
        """The folder that it works in, as its agent says; None for the folder of its session."""
        return self._live.told.cwd

    @property
    def status(self) -> str | None:
        """How it stands: `running`, `idle`, `requires_action`, `unknown` or another word; None if it is not known."""
        state: Any = self._live.told.state
        if state is None:
            return None
        return str(state.tag if isinstance(state, Unknown) else state.__struct_config__.tag)

    @property
    def stop_reason(self) -> str | None:
        """Why its last work ended, such as `end_turn`, `cancelled` or `error`; None while it works."""
        state = self._live.told.state
        return state.stop_reason if isinstance(state, v1.IdleStateUpdate) else None

    @property
    def error(self) -> v1.Error | None:
        """The error that its last work ended with; None without one."""
        state = self._live.told.state
        return state.error if isinstance(state, v1.IdleStateUpdate) else None

    @property
    def usage(self) -> v1.Usage | None:
        """The tokens that its last work used; None if its agent does not report them."""
        state = self._live.told.state
        return state.usage if isinstance(state, v1.IdleStateUpdate) else None

    # What it has come to

    @property
    def text(self) -> str:
        """All that it has said so far."""
        return "".join(message.text for message in self.state.messages if message.speaker == "agent")

    @property
    def subagents(self) -> dict[v1.SessionId, RemoteSubagent]:
        """The subagents that it has started itself, by the ids of their sessions."""
        return {it.id: face_of(it, self._owner) for it in self._live.table.of(self._live)}

    def updates(self) -> AsyncIterator[updates.Update]:
        """Iterate over its updates from now on, until its session is closed or the connection ends."""
        return self._live.updates()

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change of `state`, with the update or None; call the result to stop it."""
        check_callable("subagent.on_change()", observer)
        return self._live.on_change(observer)

    def markdown(self) -> str:
        """What it has said and done as Markdown."""
        from accord.client.markdown import markdown

        return markdown(self.state)

    def _repr_markdown_(self) -> str:
        """What a notebook shows: `markdown()` without raw HTML and images, which the agent could abuse there."""
        from accord.client.markdown import safe

        return safe(self.markdown())

    # Cancelling

    @property
    def can_cancel(self) -> bool:
        """Whether it may be cancelled alone; its agent may say something else later."""
        return self._live.can_cancel

    async def cancel(self) -> None:
        """Ask the agent to stop it; raises `CapabilityMissing` if it may not be cancelled alone."""
        await self._live.cancel()


def face_of(live: LiveSubagent, owner: object) -> RemoteSubagent:
    """What the caller holds of a subagent, the same object as long as they do."""
    face = None if live.face is None else live.face()
    if face is None:
        face = RemoteSubagent(live, owner)
        live.face = weakref.ref(face)
    return face


KEPT = 64
"""Subagents of a session whose words are kept."""

SHARE = 16
"""What part of `Limits.state` one subagent may take: this many of them fill it."""


class SubagentSaid(NamedTuple):
    """An update of a subagent, for those who read the updates of a turn and its subagents."""

    subagent: LiveSubagent
    update: updates.Update


class LiveSubagent:
    """A subagent while its session is open here; services know it as a `ServedSession`."""

    def __init__(self, table: Subagents, parent: LiveSession | LiveSubagent, subagent_id: v1.SessionId) -> None:
        main, remote = table.main, table.remote
        self.id = subagent_id
        self.main_id = main.id
        """The id of the session that it belongs to."""
        self.parent = parent
        """What has started it: the session, or another subagent."""
        self.table = table
        self.state = SessionState(remote.limits.state // SHARE)
        """What its updates amount to so far."""
        self.agent, self.program = main.agent, main.program
        self.cwd, self.roots = main.cwd, main.roots
        self.is_open = True
        self.face: weakref.ref[Any] | None = None
        """What the caller holds, the same object as long as they do."""
        self._listeners: list[UpdateBuffer] = []

    @property
    def told(self) -> SubagentState:
        """What its parent says of it."""
        return self.parent.state.subagents.get(self.id) or SubagentState(self.id)

    @property
    def is_known(self) -> bool:
        """Whether its parent still names it, and its session is open."""
        return self.is_open and self.id in self.parent.state.subagents

    # Updates

    def received(self, update: Any, params: bytes | Raw) -> None:
        """Take an update of the subagent, with the JSON of its notification's params."""
        size = len(memoryview(params))
        for each in self._take(update, size):
            for listener in list(self._listeners):
                try:
                    listener.put(each, size)
                except Overflow:
                    self._listeners.remove(listener)  # its own queue raises the error to its reader
            self.table.main.subagent_said(SubagentSaid(self, each), size)

    def _take(self, update: Any, size: int) -> list[Any]:
        """Fold an update into the state; returns what readers get for it."""
        if update.__class__ in V1_ONLY:
            update = self.state.as_read(update)
        self.state.add(update, size)
        return [update]

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change of the state, with the update as readers get it; the result stops that."""
        return self.state.on_change(observer)

    async def updates(self) -> AsyncIterator[updates.Update]:
        """The updates from now on, until the session is closed or its connection ends."""
        listener = UpdateBuffer(None, self.table.remote.limits.reply)
        if not self.is_open:
            listener.finish()
        self._listeners.append(listener)
        try:
            while (update := await listener.get()) is not None:
                yield update
        finally:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Add what a permission request says of a tool call to `state`."""
        update = self.state.as_read(said)
        known = self.state.tool_calls.get(update.tool_call_id) or ToolCallState(update.tool_call_id)
        self.state.add(update)
        return known.updated(update)

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """The tool call with this id, as it stands."""
        return self.state.tool_calls.get(tool_call_id)

    # Its end

    @property
    def can_cancel(self) -> bool:
        """Whether it may be cancelled alone, as its parent says now."""
        told = self.told.capabilities
        return self.is_known and told is not None and told.cancel is not None

    async def cancel(self) -> None:
        """Ask the agent to stop it; raises CapabilityMissing if it may not be cancelled alone."""
        if not self.can_cancel:
            raise CapabilityMissing("capabilities.cancel of the subagent", "cancelling it alone")
        await self.table.remote.notify(v1.CancelNotification(self.id))
        if self.table.remote.version == 1:
            self.close_questions()
            self.state.cancel_unfinished()

    def close_questions(self) -> None:
        """Answer the open questions of this subagent with `cancelled`."""
        for service in self.table.remote.services:
            service.turn_cancelled(self)

    async def ended(self) -> None:
        """End here: its session has ended, or nothing more is kept of it."""
        self.is_open = False
        for listener in list(self._listeners):
            listener.finish()
        for service in self.table.remote.services:
            await service.release(self)


class Subagents:
    """The subagents of one session, and those that its subagents have started."""

    def __init__(self, main: LiveSession, remote: LiveAgent, subagent_type: type[LiveSubagent]) -> None:
        self.main = main
        self.remote = remote
        self._type = subagent_type
        self._early: TakeEarly = _nothing
        self._homes: Homes = {}
        self._live: dict[v1.SessionId, LiveSubagent] = {}
        """The subagents, the one that was looked for last at the end."""

    def belong_to(self, homes: Homes, early: TakeEarly) -> None:
        """Stand in the table of all sessions. `early` takes what was said before a subagent was announced."""
        self._homes, self._early = homes, early

    def find(self, subagent_id: v1.SessionId) -> LiveSubagent | None:
        """The subagent with this id, if the session or one of its subagents names it."""
        live = self._live.pop(subagent_id, None)
        if live is not None and live.is_known:
            self._live[subagent_id] = live
            return live
        if live is not None:
            self._drop(live)
        parents: list[LiveSession | LiveSubagent] = [self.main, *self._live.values()]
        parent = next((it for it in parents if subagent_id in it.state.subagents), None)
        return None if parent is None else self._begin(parent, subagent_id)

    def of(self, parent: LiveSession | LiveSubagent) -> list[LiveSubagent]:
        """The subagents that this session or subagent has started, the latest `KEPT` of them."""
        found = [self.find(subagent_id) for subagent_id in list(parent.state.subagents)[-KEPT:]]
        return [it for it in found if it is not None and it.parent is parent]

    def _begin(self, parent: LiveSession | LiveSubagent, subagent_id: v1.SessionId) -> LiveSubagent:
        live = self._live[subagent_id] = self._type(self, parent, subagent_id)
        self._homes[subagent_id] = self
        if len(self._live) > KEPT:
            self._drop(self._live.pop(next(iter(self._live))))
        for update, params in self._early(subagent_id):
            live.received(update, params)
        return live

    def _drop(self, live: LiveSubagent) -> None:
        live.is_open = False
        self._homes.pop(live.id, None)
        self.remote.tasks.call(live.ended, f"ending the subagent {live.id}")

    def close_questions(self) -> None:
        """Answer the open questions of all subagents with `cancelled`."""
        for live in self._live.values():
            live.close_questions()

    async def ended(self) -> None:
        """End all subagents: their session has ended."""
        while self._live:
            subagent_id, live = self._live.popitem()
            self._homes.pop(subagent_id, None)
            await live.ended()


Homes: TypeAlias = "dict[v1.SessionId, Subagents]"
"""The table that has each subagent, for all sessions of an agent, so that an update finds its subagent at once."""

TakeEarly: TypeAlias = "Callable[[v1.SessionId], Iterable[tuple[Any, bytes | Raw]]]"
"""Takes the updates that came before their session was known."""


def _nothing(_: v1.SessionId) -> Iterable[tuple[Any, bytes | Raw]]:
    return ()
