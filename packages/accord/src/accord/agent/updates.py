"""What a session tells its client.

Every update goes through `SessionUpdates.send`, whichever part of the session made it. It is kept in the store first
and sent afterwards, so the client never sees an update that is not kept. Updates that come before the client knows the
session wait for the answer that opens it.

What is sent for an update, the session's dialect says: it speaks the version of the connection (see `dialects`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord.agent.paths import with_absolute_paths
from accord.agent.record import Record, encoded_update
from accord.dialects.dialect import Dialect
from accord.engine.peer import Peer
from accord.errors import ConnectionClosed
from accord.schema import v1
from accord.session import ToolCallState


class SessionUpdates:
    """One session's updates, on their way to the store and the client."""

    def __init__(self, record: Record, peer: Peer, cwd: Path, dialect: Dialect) -> None:
        self.dialect = dialect
        """How the session speaks in the version of its connection."""
        self.is_open = False
        """Whether changes are told: the client knows the session, or the answer that opens it is being made."""
        self._record = record
        self.peer = self._peer = peer
        """The client's peer."""
        self._cwd = cwd
        self._looked_at = dialect.looked_at
        self._early: list[bytes] | None = []
        """Frames from before the client knew the session; None once it does."""
        self._tool_calls: dict[v1.ToolCallId, ToolCallState] = {}
        """The tool calls that are not finished."""

    async def send(self, update: v1.SessionUpdate) -> None:
        """Keep this update, and tell the client."""
        if update.__class__ in self._looked_at:
            await self._send_looked_at(update)
            return
        frame = self._record.keep_now(update) or await self._record.keep(update)
        if self._early is not None:
            self._early.append(frame)
        elif self._peer.connection.tell(frame):
            await self._peer.breathe()

    async def send_given(self, update: v1.SessionUpdate) -> None:
        """`send` for an update that an author made, in whichever version of the protocol."""
        if update.__class__.__module__.startswith("accord.schema.v2"):
            for fitted in self.dialect.newer(update):
                await self.send(fitted)
        else:
            await self.send(update)

    async def _send_looked_at(self, update: Any) -> None:
        for fitted in self.dialect.fitted(self._checked(update)):
            if self.tell(self._record.keep_now(fitted) or await self._record.keep(fitted)):
                await self._peer.breathe()

    def report(self, update: Any) -> None:
        """Tell the client what the session does or has; this is not part of the conversation, and not kept."""
        self.report_encoded(encoded_update(update))

    def report_encoded(self, update: bytes) -> None:
        """`report` for an update that is JSON already."""
        frame = self._record.frame(update)
        if self._early is not None:
            self._early.append(frame)
            return
        try:  # noqa: SIM105 - `suppress` costs more than what it surrounds
            self._peer.connection.tell(frame)
        except ConnectionClosed:
            pass  # work that ends with the link has no client to tell

    def collect(self) -> None:
        """Send what this turn of the loop has to send in one piece, at its end."""
        self._peer.connection.collect()

    def flush(self) -> None:
        """Send what was collected now: nothing more is likely to come in this turn of the loop."""
        self._peer.connection.flush()

    def tell(self, frame: bytes) -> bool:
        """Tell the client of an update that is kept already; True if the sender should `breathe`."""
        if self._early is None:
            return self._peer.connection.tell(frame)
        self._early.append(frame)
        return False

    async def breathe(self) -> None:
        """Wait until there is room for more output."""
        await self._peer.breathe()

    def known(self) -> None:
        """The client knows the session now: what waited is sent, and what follows is sent at once."""
        early, self._early = self._early or [], None
        for frame in early:
            self._peer.connection.tell(frame)

    def client_shows(self, capability: str) -> bool:
        """Whether the client declared this capability."""
        return self._peer.capabilities.has(capability)

    async def keep_settings(self, values: Mapping[str, str | bool]) -> None:
        """Keep the values that the user chose."""
        await self._record.keep_settings(dict(values))

    # Tool calls

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """The current state of a tool call that is not finished."""
        return self._tool_calls.get(tool_call_id)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """The state of a tool call after this update, which is not sent."""
        return (self.tool_call(said.tool_call_id) or ToolCallState(said.tool_call_id)).updated(said)

    def forget_tool_calls(self) -> None:
        """Forget the tool calls of a turn that was refused."""
        self._tool_calls.clear()

    def _checked(self, update: Any) -> Any:
        """This update as it may be sent, in the version in which it was made."""
        needed = update.__needs__
        if needed is not None:
            self._peer.capabilities.require(needed, update.__class__.__name__)
            return update
        if not isinstance(update, v1.ToolCall | v1.ToolCallProgress):
            return update
        update = with_absolute_paths(update, self._cwd)
        known = self._tool_calls.pop(update.tool_call_id, None) or ToolCallState(update.tool_call_id)
        if not (call := known.updated(update)).is_finished:
            self._tool_calls[call.id] = call
        return update
