"""`RewindPoint`: a message of the user to which a conversation can go back, and the files that were changed since.

A place is named by a cursor of the agent: before the message, or after the entry before it. The rest is not cut: the
session is copied up to the cursor, and the conversation continues in the copy. The previous session stays in the
agent's list.

Files have two writers. The agent's writes through the chat are in the journal of `Files`, which restores them. The
files that an agent wrote itself are named in its tool calls; only the agent can restore them, and agents written with
Accord do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from accord import AccordError, RemoteSession, Unknown, updates
from accord.extensions import RewindFiles
from accord.services import AgentWrite
from accord.session import Entry, Message, SessionCursor, SessionState, ToolCallState
from accord_tools.presentation.diffs import FileDiff

if TYPE_CHECKING:
    from accord_tools.tui.chat_conversation import Conversation


class RewindPoint(NamedTuple):
    """A message of the user, and the effects of going back to it."""

    text: str
    """The message's text."""
    sent_at: float
    """When it was sent; 0 for a message from before the session was opened here."""
    cursor: SessionCursor | None
    """Where the session is copied; None for its first message, before which a new session begins."""
    changes: Sequence[AgentWrite]
    """The agent's writes through the chat since."""
    others: Sequence[Path]
    """The files that the agent has changed itself since."""

    @property
    def files(self) -> list[Path]:
        """Return all files that were changed since."""
        return list(dict.fromkeys([*(it.path for it in self.changes), *self.others]))


def rewind_points(conversation: Conversation) -> list[RewindPoint]:
    """Return the messages to which a conversation can go back, the newest first; raises ValueError with the reason for
    none.
    """
    state, name = conversation.state, conversation.connection.name
    timeline = state.timeline
    users = [place - state.forgotten for place in conversation.prompt_places()]
    if not users:
        raise ValueError("there is no message to go back to yet")
    if not any(it.can_fork for it in state.cursors.values()):
        raise ValueError(
            f"{name} cannot go back to a message: it announces no session cursors (cursor_update) at which "
            "session/fork could copy the session"
        )
    points: list[RewindPoint] = []
    for place in reversed(users):
        is_first = place == 0 and conversation.is_whole and not state.forgotten
        cursor = _cursor_before(state, timeline, place)
        if cursor is None and not is_first:
            continue
        sent_at = conversation.sent_at(state.forgotten + place)
        changes = [it for it in conversation.changes() if it.at >= sent_at]
        known = {it.path for it in changes}
        others = [it for it in dict.fromkeys(_changed_by_agent(timeline[place:])) if it not in known]
        message = timeline[place]
        assert isinstance(message, Message)
        points.append(RewindPoint(message.text, sent_at, None if is_first else cursor, changes, others))
    return points


def _cursor_before(state: SessionState, timeline: Sequence[Entry], place: int) -> SessionCursor | None:
    """Return a cursor before the message at this place, or after the agent's message before it."""
    beside = {(it.anchor_id, getattr(it.anchor, "position", "")): it for it in state.cursors.values() if it.can_fork}
    if (found := beside.get((timeline[place].id, "before"))) is not None:
        return found
    for entry in reversed(timeline[:place]):
        if (found := beside.get((entry.id, "after"))) is not None:
            return found
        if isinstance(entry, Message) and entry.speaker != "thought":
            return None  # a copy up to an earlier place would lack this message
    return None


def _changed_by_agent(entries: Sequence[Entry]) -> Iterator[Path]:
    """Return the files that tool calls report as changed."""
    for entry in entries:
        if not isinstance(entry, ToolCallState) or entry.status != "completed":
            continue
        for part in entry.content:
            if isinstance(part, updates.TextDiff):
                yield Path(part.path)
            elif isinstance(part, updates.Diff):
                yield from (Path(it.path) for it in part.changes if not isinstance(it, Unknown))
        if entry.kind in ("edit", "delete", "move"):
            yield from (Path(it.path) for it in entry.locations)


def changed_files(conversation: Conversation) -> dict[str, tuple[int, int]]:
    """The files that were changed in this conversation, and how many lines were added and removed."""
    found: dict[str, tuple[int, int]] = {}
    whole: dict[str, tuple[bytes | None, bytes]] = {}
    for change in conversation.changes():
        before, _ = whole.get(str(change.path), (change.before, b""))
        whole[str(change.path)] = before, change.after
    for path, (before, after) in whole.items():
        found[path] = _line_numbers(before or b"", after)
    for call in conversation.state.tool_calls.values():
        for changed in _changed_by_agent([call]):
            found.setdefault(str(changed), (0, 0))
    return found


@lru_cache(maxsize=256)
def _line_numbers(before: bytes, after: bytes) -> tuple[int, int]:
    change = FileDiff(before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
    return change.added, change.removed


async def rewound_session(conversation: Conversation, point: RewindPoint, setup: dict[str, Any]) -> RemoteSession:
    """The session that ends before this message: with its past, if the agent can load one."""
    remote = await conversation.connection.ready()
    session = conversation.session
    assert session is not None
    if point.cursor is None:
        return await remote.new_session(conversation.folder, **setup)
    copy = await session.fork(at=point.cursor.id)
    offers = remote.capabilities.sessions
    if not (offers.load and offers.close):
        return copy
    try:
        await copy.close()
        return await remote.load(copy.id, conversation.folder, **setup)  # a copy comes without its past
    except AccordError:
        return await session.fork(at=point.cursor.id)


class RestoredFiles(NamedTuple):
    """The outcome of restoring the files."""

    restored: Sequence[Path]
    left: Sequence[Path]
    """Those that others have changed since."""
    unknown: Sequence[Path]
    """Those that the agent wrote itself and cannot restore."""


async def restore_files(conversation: Conversation, point: RewindPoint, *, overwrite: bool = False) -> RestoredFiles:
    """Restore the files to their contents before this message."""
    connection, session = conversation.connection, conversation.session
    left = await connection.files.rewind(point.changes, overwrite=overwrite)
    restored = [it for it in dict.fromkeys(change.path for change in point.changes) if it not in left]
    if not point.others or session is None:
        return RestoredFiles(restored, left, [])
    await connection.ready()
    cursor = None if point.cursor is None else point.cursor.id
    done = await session.extension(RewindFiles).rewind(cursor, overwrite=overwrite)
    if done is not None:
        restored += map(Path, done.restored)
        left += map(Path, done.left)
    missing = [it for it in point.others if it not in restored and it not in left]
    return RestoredFiles(restored, left, missing)
