"""Session cursors: the agent's places for them, and the client's forks at them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accord_check.conversation import Exchange, Frame, Update, object_of
from accord_check.passive.observer import Observer
from accord_check.passive.sessions import replays_past

_ID_OF_ANCHOR = {
    **dict.fromkeys(("user_message", "agent_message", "agent_thought", "session_message"), "messageId"),
    "tool_call": "toolCallId",
    "compaction": "compactionId",
}
"""The member that names the anchor of a cursor, by the type of its anchor."""


@dataclass(slots=True)
class _CursorSeen:
    """A cursor, after its updates."""

    anchor: dict[str, Any] = field(default_factory=dict[str, Any])
    can_fork: bool = False


class Cursors(Observer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._cursors: dict[tuple[str, str], _CursorSeen] = {}
        self._entities: dict[str, set[tuple[str, Any]]] = {}
        """The things that each session's updates have shown, as the type of an anchor and an id."""
        self._whole: set[str] = set()
        """The sessions of which all was shown. The past of a session that is resumed without it is known only to its
        client.
        """

    def request(self, exchange: Exchange) -> None:
        session_id, at = exchange.session_id, exchange.params.get("cursorId")
        if session_id is not None and replays_past(exchange):
            self._whole.add(session_id)
        elif session_id is not None and exchange.method == "session/resume":
            self._whole.discard(session_id)
        if exchange.method != "session/fork" or session_id not in self.conversation.sessions or not isinstance(at, str):
            return
        cursor = self._cursors.get((session_id, at))
        wrong = None if cursor is not None else f"the agent announced no cursor {at[:60]!r} for the session"
        if cursor is not None and not cursor.can_fork:
            wrong = f"the capabilities of the cursor {at[:60]!r} have no fork"
        self.judge("lint.fork.announced-cursor", wrong, exchange)

    def answer(self, exchange: Exchange, frame: Frame) -> None:  # noqa: ARG002 - as in the base
        if exchange.method == "session/new" and isinstance(made := exchange.fields.get("sessionId"), str):
            self._whole.add(made)

    def update(self, update: Update) -> None:
        session_id = update.session_id
        kind = update.kind.removesuffix("_chunk").removesuffix("_summary").removesuffix("_update")
        if kind == "cursor":
            self._cursor(update, session_id)
        elif kind in _ID_OF_ANCHOR:
            self._entities.setdefault(session_id, set()).add((kind, update.fields.get(_ID_OF_ANCHOR[kind])))

    def _cursor(self, update: Update, session_id: str) -> None:
        given, anchor, frame = (
            update.fields.get("cursorId"),
            object_of(update.fields.get("anchor")),
            update.frame,
        )
        if not isinstance(given, str):
            return
        cursor = self._cursors.get((session_id, given))
        if cursor is None:
            wrong = None if anchor else f"the first update of the cursor {given[:60]!r} has no anchor"
            self.judge("lint.cursor.anchor-first", wrong, frame)
            cursor = self._cursors[session_id, given] = _CursorSeen(anchor)
        elif anchor:
            moves = f"the cursor {given[:60]!r} has moved"
            self.judge("lint.cursor.anchor-fixed", anchor == cursor.anchor or moves, frame)
        if "capabilities" in update.fields:
            cursor.can_fork = object_of(update.fields["capabilities"]).get("fork") is not None
        if anchor and session_id in self._whole:
            self._anchored(update, session_id, anchor)

    def _anchored(self, update: Update, session_id: str, anchor: dict[str, Any]) -> None:
        kind = str(anchor.get("type"))
        if (member := _ID_OF_ANCHOR.get(kind)) is not None:
            seen = (kind, anchor.get(member)) in self._entities.get(session_id, set())
            wrong = (
                None
                if seen
                else f"a cursor is anchored to the {kind} {anchor.get(member)!r}, which no update has shown"
            )
            self.judge("lint.cursor.anchor-known", wrong, update)
