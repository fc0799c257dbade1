"""`RemoteSubagent`: a subagent of a session, as the caller holds it: to read and, where the agent allows it, to cancel.

It is the face of a `LiveSubagent`.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

from accord.arguments import check_callable, shortened
from accord.client.markdown import markdown
from accord.client.safe_markdown import safe
from accord.client.subagents import LiveSubagent
from accord.schema import v1
from accord.schema.base import Unknown
from accord.session import Observer, SessionState


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

    def updates(self) -> AsyncIterator[v1.SessionUpdate]:
        """Iterate over its updates from now on, until its session is closed or the connection ends."""
        return self._live.updates()

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change of `state`, with the update or None; call the result to stop it."""
        check_callable("subagent.on_change()", observer)
        return self._live.on_change(observer)

    def markdown(self) -> str:
        """What it has said and done as Markdown."""
        return markdown(self.state)

    def _repr_markdown_(self) -> str:
        """What a notebook shows: `markdown()` without raw HTML and images, which the agent could abuse there."""
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
