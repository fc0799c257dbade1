"""`SessionAccumulator`: the updates of a session, merged."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accord.compat.acp import schema as s
from accord.compat.acp.contrib.tool_calls import FIELDS, TrackedToolCallView, copied, view_of

__all__ = [
    "SessionAccumulator",
    "SessionNotificationMismatchError",
    "SessionSnapshot",
    "SessionSnapshotUnavailableError",
    "ToolCallView",
]


class SessionNotificationMismatchError(ValueError):
    """An update belongs to another session."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(f"the update must belong to the session {expected}, got one of {actual}")


class SessionSnapshotUnavailableError(RuntimeError):
    """No update has arrived yet."""

    def __init__(self) -> None:
        super().__init__("no update has arrived yet: call apply first")


class ToolCallView(TrackedToolCallView):
    """A tool call as it is now; it does not change any more."""


@dataclass(frozen=True, kw_only=True)
class SessionSnapshot:
    """A session as it is now; it does not change any more."""

    session_id: str
    tool_calls: dict[str, ToolCallView]
    plan_entries: tuple[Any, ...]
    current_mode_id: str | None
    available_commands: tuple[Any, ...]
    user_messages: tuple[Any, ...]
    agent_messages: tuple[Any, ...]
    agent_thoughts: tuple[Any, ...]


Subscriber = Callable[[SessionSnapshot, Any], None]


class SessionAccumulator:
    """Merges the updates of one session at a time; subscribers get a snapshot after each."""

    def __init__(self, *, auto_reset_on_session_change: bool = True) -> None:
        self._may_change_session = auto_reset_on_session_change
        self._subscribers: list[Subscriber] = []
        self.reset()

    def reset(self) -> None:
        """Forget all updates."""
        self.session_id: str | None = None
        """The session of the updates; None before the first."""
        self._tool_calls: dict[str, dict[str, Any]] = {}
        self._plan: list[Any] = []
        self._mode: str | None = None
        self._commands: list[Any] = []
        self._chunks: dict[str, list[Any]] = {
            "user_message_chunk": [],
            "agent_message_chunk": [],
            "agent_thought_chunk": [],
        }

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call this function with each new snapshot and its update; the function returned ends that."""
        self._subscribers.append(callback)

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)

        return unsubscribe

    def apply(self, notification: s.SessionNotification) -> SessionSnapshot:
        """Merge an update; the session after it."""
        if self.session_id not in (None, notification.session_id):
            if not self._may_change_session:
                raise SessionNotificationMismatchError(str(self.session_id), notification.session_id)
            self.reset()
        self.session_id = notification.session_id
        update: Any = notification.update
        self._merge(update)
        snapshot = self.snapshot()
        for subscriber in list(self._subscribers):
            subscriber(snapshot, notification)
        return snapshot

    def snapshot(self) -> SessionSnapshot:
        """The session as it is now; raises SessionSnapshotUnavailableError before the first update."""
        if self.session_id is None:
            raise SessionSnapshotUnavailableError
        calls: dict[str, ToolCallView] = {
            call_id: view_of(ToolCallView, call_id, call) for call_id, call in self._tool_calls.items()
        }
        return SessionSnapshot(
            session_id=self.session_id,
            tool_calls=calls,
            plan_entries=tuple(copy.deepcopy(self._plan)),
            current_mode_id=self._mode,
            available_commands=tuple(copy.deepcopy(self._commands)),
            user_messages=tuple(copy.deepcopy(self._chunks["user_message_chunk"])),
            agent_messages=tuple(copy.deepcopy(self._chunks["agent_message_chunk"])),
            agent_thoughts=tuple(copy.deepcopy(self._chunks["agent_thought_chunk"])),
        )

    def _merge(self, update: Any) -> None:
        match update.session_update:
            case "tool_call":
                self._tool_calls[update.tool_call_id] = copied({name: getattr(update, name) for name in FIELDS})
            case "tool_call_update":
                call = self._tool_calls.setdefault(update.tool_call_id, dict.fromkeys(FIELDS))
                changes = {name: getattr(update, name) for name in FIELDS}
                call.update(copied({name: value for name, value in changes.items() if value is not None}))
            case "plan":
                self._plan = copy.deepcopy(update.entries) or []
            case "current_mode_update":
                self._mode = update.current_mode_id
            case "available_commands_update":
                self._commands = copy.deepcopy(update.available_commands) or []
            case kind if kind in self._chunks:
                self._chunks[kind].append(copy.deepcopy(update))
            case _:
                pass
