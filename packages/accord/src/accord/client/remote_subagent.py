"""`RemoteSubagent`: a subagent of a session, as a client sees it: to read and, if the agent allows it, to cancel.

    subagent_update of a session ──▶ `SessionState.subagents`        the session, or another subagent, names them
    session/update with another id ──▶ `Subagents.find` ──▶ its `_received` ──▶ its own `state`

A subagent is made by the first update in its name, or when the caller looks. Earlier updates wait in
`UnknownSessionUpdates`. Services see a subagent as a `ServedSession`, so its questions reach the same functions as
those of its session. Its folders are those of its session: an agent may report another folder for a subagent, but that
must not open a folder that the user did not grant.

An agent may start subagents without end. A session keeps the updates of the latest `MOST_TRANSCRIPTS` of them, each
within its share of `Limits.state`.
"""

# The private members of a session and a subagent are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Raw

from accord.client.reply import SubagentSaid, UpdateListeners
from accord.dialects.v1_dialect import V1_ONLY
from accord.errors import CapabilityMissing
from accord.mistakes import check_callable, shortened
from accord.project.confined import Roots
from accord.schema import v1
from accord.schema.base import JsonObject, Unknown
from accord.schema.sendable import with_meta
from accord.session import Observer, SessionState, SubagentState, ToolCallState, updates

if TYPE_CHECKING:
    from accord.client.remote_session import RemoteSession


MOST_TRANSCRIPTS = 64
"""Subagents of a session whose updates are kept."""

SHARE = 16
"""The share of `Limits.state` that one subagent may use: this many of them fill it."""


class RemoteSubagent:
    """A subagent: work that a session's agent has delegated, in a session of its own that can only be read.

    for subagent in session.subagents.values():
        print(subagent.title, subagent.status, subagent.text)
    """

    def __init__(self, table: Subagents, parent: RemoteSession | RemoteSubagent, subagent_id: v1.SessionId) -> None:
        main, remote = table.main, table.main._remote
        self.id: v1.SessionId = subagent_id
        """The id of the subagent's session."""
        self.parent_id: v1.SessionId = parent.id
        """The id of the session, or of the subagent, that has started it."""
        self.state: SessionState = SessionState(remote._limits.state // SHARE)
        """Its conversation so far: messages, tool calls, plan."""
        self.agent: str = main.agent
        """The name of its session's agent."""
        self.program: str = main.program
        """The identity of its session's agent, whatever name it reports."""
        self.cwd: Path = main.cwd
        """The folder of its session, in which its files are; `reported_cwd` is the agent's own report."""
        self.roots: Roots = main.roots
        """The folders of its session: its files should be in them."""
        self._parent = parent
        self._table = table
        self._remote = remote
        self._is_open = True
        self._listeners = UpdateListeners(remote._limits.reply)

    def __repr__(self) -> str:
        return f"RemoteSubagent({shortened(self.title or self.id)!r}, {self.status or 'unknown'})"

    # The agent's description

    @property
    def title(self) -> str | None:
        """The title of its work; None if its agent sends none."""
        return self._announced.title

    @property
    def description(self) -> str | None:
        """A further description by its agent; None if there is none."""
        return self._announced.description

    @property
    def reported_cwd(self) -> str | None:
        """The folder that it works in, as its agent reports; None for the folder of its session."""
        return self._announced.cwd

    @property
    def status(self) -> str | None:
        """Its status: `running`, `idle`, `requires_action`, `unknown` or another word; None if it is not known."""
        state: Any = self._announced.state
        if state is None:
            return None
        return str(state.tag if isinstance(state, Unknown) else state.__struct_config__.tag)

    @property
    def stop_reason(self) -> str | None:
        """Why its last work ended, such as `end_turn`, `cancelled` or `error`; None while it works."""
        state = self._announced.state
        return state.stop_reason if isinstance(state, v1.IdleStateUpdate) else None

    @property
    def error(self) -> v1.Error | None:
        """The error that its last work ended with; None without one."""
        state = self._announced.state
        return state.error if isinstance(state, v1.IdleStateUpdate) else None

    @property
    def usage(self) -> v1.Usage | None:
        """The tokens that its last work used; None if its agent does not report them."""
        state = self._announced.state
        return state.usage if isinstance(state, v1.IdleStateUpdate) else None

    # Results

    @property
    def text(self) -> str:
        """Its text so far."""
        return "".join(message.text for message in self.state.messages if message.speaker == "agent")

    @property
    def subagents(self) -> dict[v1.SessionId, RemoteSubagent]:
        """The subagents that it has started itself, by the ids of their sessions."""
        return {it.id: it for it in self._table.of(self)}

    async def updates(self) -> AsyncIterator[updates.Update]:
        """Iterate over its updates from now on, until its session is closed or the connection ends."""
        with self._remote._used_by(self):
            async for update in self._listeners.read(is_open=self._is_open):
                yield update

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change of `state`, with the update or None; call the result to stop it."""
        check_callable("subagent.on_change()", observer)
        return self.state.on_change(observer)

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """Return the tool call with this id; None if the id is unknown."""
        return self.state.tool_calls.get(tool_call_id)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Apply a permission request's changes to a tool call, and return the tool call; for services."""
        self.state.add(cast("Any", said))  # the class of a request, which the state reads
        return self.state.tool_calls.get(said.tool_call_id) or ToolCallState(said.tool_call_id)

    def markdown(self) -> str:
        """Return its conversation as Markdown."""
        from accord.client.markdown import markdown

        return markdown(self.state)

    def _repr_markdown_(self) -> str:
        """Return `markdown()` without raw HTML and images, which the agent could abuse in a notebook."""
        from accord.client.markdown import safe

        return safe(self.markdown())

    # Cancelling

    @property
    def can_cancel(self) -> bool:
        """Whether it may be cancelled alone; its agent may say something else later."""
        capabilities = self._announced.capabilities
        return self._is_known and capabilities is not None and capabilities.cancel is not None

    async def cancel(self, *, meta: JsonObject | None = None) -> None:
        """Ask the agent to stop it, with this `_meta`; raises `CapabilityMissing` if it may not be cancelled alone."""
        if not self.can_cancel:
            raise CapabilityMissing("capabilities.cancel of the subagent", "cancelling it alone")
        await self._remote.notify(with_meta("subagent.cancel", v1.CancelNotification(self.id), meta))
        if self._remote.version == 1:
            self._close_questions()
            self.state.cancel_unfinished()

    def _close_questions(self) -> None:
        """Answer the open questions of this subagent with `cancelled`."""
        for service in self._remote._services:
            service.turn_cancelled(self)

    # Reports of the connection

    @property
    def _announced(self) -> SubagentState:
        """The state of this subagent in its parent's session."""
        return self._parent.state.subagents.get(self.id) or SubagentState(self.id)

    @property
    def _is_known(self) -> bool:
        """Whether its parent still names it, and its session is open."""
        return self._is_open and self.id in self._parent.state.subagents

    def _received(self, update: Any, params: bytes | Raw) -> None:
        """Take an update of the subagent, with the JSON of its notification's params."""
        size = len(memoryview(params))
        if update.__class__ in V1_ONLY:
            update = self.state.as_read(update)
        shown = self.state.add(update, size)
        for each in (update,) if shown is None else shown:
            self._listeners.put(each, size)
            self._table.main._subagent_said(SubagentSaid(self, each), size)

    async def _ended(self) -> None:
        """End it here: its session has ended, or its updates are no longer kept."""
        self._is_open = False
        self._listeners.finish()
        for service in self._remote._services:
            await service.release(self)


class Subagents:
    """The subagents of one session, and those that its subagents have started."""

    def __init__(self, main: RemoteSession) -> None:
        self.main = main
        self._live: dict[v1.SessionId, RemoteSubagent] = {}
        """The subagents, the one that was looked for last at the end."""

    def find(self, subagent_id: v1.SessionId) -> RemoteSubagent | None:
        """The subagent with this id, if the session or one of its subagents names it."""
        live = self._live.pop(subagent_id, None)
        if live is not None and live._is_known:
            self._live[subagent_id] = live
            return live
        if live is not None:
            self._drop(live)
        parents: list[RemoteSession | RemoteSubagent] = [self.main, *self._live.values()]
        parent = next((it for it in parents if subagent_id in it.state.subagents), None)
        return None if parent is None else self._begin(parent, subagent_id)

    def of(self, parent: RemoteSession | RemoteSubagent) -> list[RemoteSubagent]:
        """The subagents that this session or subagent has started, the latest `MOST_TRANSCRIPTS` of them."""
        found = [self.find(subagent_id) for subagent_id in list(parent.state.subagents)[-MOST_TRANSCRIPTS:]]
        return [it for it in found if it is not None and it._parent is parent]

    def _begin(self, parent: RemoteSession | RemoteSubagent, subagent_id: v1.SessionId) -> RemoteSubagent:
        live = self._live[subagent_id] = RemoteSubagent(self, parent, subagent_id)
        sessions = self.main._remote._sessions
        sessions.tables[subagent_id] = self
        if len(self._live) > MOST_TRANSCRIPTS:
            self._drop(self._live.pop(next(iter(self._live))))
        for update, params in sessions.early.take(subagent_id):
            live._received(update, params)
        return live

    def _drop(self, live: RemoteSubagent) -> None:
        live._is_open = False
        self.main._remote._sessions.tables.pop(live.id, None)
        self.main._remote._tasks.call(live._ended, f"ending the subagent {live.id}")

    def close_questions(self) -> None:
        """Answer the open questions of all subagents with `cancelled`."""
        for live in self._live.values():
            live._close_questions()

    async def ended(self) -> None:
        """End all subagents: their session has ended."""
        while self._live:
            subagent_id, live = self._live.popitem()
            self.main._remote._sessions.tables.pop(subagent_id, None)
            await live._ended()
