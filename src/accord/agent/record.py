"""What a session leaves in the store: its updates, its title, what its user chose, and the author's state.

    Session.send ─▶ Record.keep ─▶ store ── committed ──▶ the frame that tells the client
    session/load ─▶ Record.replay ─▶ every update again, and what a crash has left open is closed
    Session.history ─▶ the same updates, folded

A conversation is what the client was told, so each update is saved once, as the JSON that is sent. Notices are not
saved. Neither are the available commands: the agent sends them each time the session is opened.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from accord.agent.subagent_updates import UnfinishedSubagents, enclosed, is_enclosed, opened, update_head
from accord.capabilities import Capabilities, updates_that_need
from accord.errors import DecodeError, StoreError
from accord.schema import codec, v1
from accord.schema.base import Json, tag_of
from accord.schema.tolerant import convert_alone
from accord.schema.v1.content import ContentBlock
from accord.schema.v1.updates import SessionUpdate
from accord.state import SessionState
from accord.store.base import NOTHING, Changes, Store, StoredSession

if TYPE_CHECKING:
    from accord.engine.peer import Peer

NO_HISTORY = (v1.Notice, v1.AvailableCommandsUpdate)
APART = frozenset((*NO_HISTORY, v1.SessionInfoUpdate))
"""What is kept in another way than as an update, or not at all."""

_USAGE = b'"usage_update"'

TITLE_LENGTH = 80


class Record:
    """One session's place in the store, held by the connection that has the session open."""

    def __init__(self, store: Store, stored: StoredSession) -> None:
        self.title = stored.title
        self.settings = stored.settings
        self._store = store
        self._stored = stored
        self._state = stored.state
        self._append = store.appending(stored)
        self._name = secrets.token_hex(4)
        """What tells the prompts of this opening from those of earlier ones."""
        self._prompts = 0
        """How many there were since."""
        identifier = msgspec.json.encode(stored.id).decode()
        self._head = (
            f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":{identifier},"update":'.encode()
        )

    # What happens

    async def keep(self, update: SessionUpdate) -> bytes:
        """Keep this update; the frame that tells the client of it, which must not know of it before."""
        encoded = encoded_update(update)
        if update.__class__ is v1.SessionInfoUpdate:
            await self._write([encoded], _changes(update))
        elif update.__class__ not in NO_HISTORY:
            await self._store.write(self._stored, (encoded,))
        return self.frame(encoded)

    def keep_now(self, update: SessionUpdate) -> bytes | None:
        """`keep`, where the store can do that without waiting; else None, and nothing is kept."""
        if self._append is None or update.__class__ in APART:
            return None
        try:
            encoded = codec.strict_encode(update)
        except codec.ENCODE_REFUSALS:
            encoded = codec.encode(update)
        self._append(encoded)
        return b"%b%b}}" % (self._head, encoded)

    async def keep_prompt(self, prompt: Sequence[ContentBlock], title: str | None = None) -> bytes | None:
        """Keep what the user says, and the title that it gives the session; the frame that tells of the title."""
        # prompt-turn, Message IDs: the chunks of one message share an id.
        self._prompts += 1
        message_id = v1.MessageId(self.id_for("user"))
        updates = [encoded_update(v1.UserMessageChunk(block, message_id)) for block in prompt]
        if title is None:
            await self._write(updates, Changes())  # the user's words are activity at this very moment
            return None
        named = v1.SessionInfoUpdate(title)
        updates.append(encoded_update(named))
        await self._write(updates, _changes(named))
        return self.frame(updates[-1])

    def id_for(self, what: str) -> str:
        """The id of something of the latest prompt: the same for the same, and no other's in the session."""
        return f"{self._name}-{self._prompts}-{what}"

    async def forget_prompt(self) -> None:
        """Forget the latest prompt and what followed it; later prompts and loads do not see them."""
        sign = self.id_for("user").encode()
        place = 0
        async for page in self._pages():
            for update in page:
                if sign in update:
                    await self._store.cut(self._stored, place)
                    return
                place += 1

    def release(self) -> None:
        """Release the closed session; nothing is saved until it is opened again."""
        self._store.release(self._stored)

    async def keep_settings(self, settings: dict[str, Json]) -> None:
        """Keep what the user chose."""
        if settings != self.settings:
            await self._write((), Changes(settings=dict(settings)))
            self.settings = dict(settings)

    async def keep_state(self, state: Any) -> None:
        """Keep the author's value, if it is another one by now."""
        plain = codec.plain(state)
        if plain != self._state:
            await self._write((), Changes(state=plain))
            self._state = plain

    def state(self, of: Any) -> Any:
        """The author's value, as this type; None if there is none."""
        return None if self._state is None else convert_alone(self._state, of)

    def frame(self, encoded: bytes) -> bytes:
        """The notification with this update."""
        return b"".join((self._head, encoded, b"}}"))

    async def _write(self, updates: Sequence[bytes], changes: Changes) -> None:
        await self._store.write(self._stored, updates, changes)
        if changes.title is not UNSET:
            self.title = changes.title

    # What has happened

    async def replay(self, peer: Peer) -> None:
        """Tell the client everything again, in order, and close the tool calls that a crash has left open."""
        unfinished: dict[str | None, dict[str, None]] = {}
        subagents = UnfinishedSubagents(self._stored.id)
        async for page in self._pages():
            for kept in page:
                subagent, update = opened(kept)
                what = seen(update)
                if subagents.are_of_another_session(subagent, what.session_update, update):
                    continue
                what.note(unfinished.setdefault(subagent, {}))
                is_shown = what.is_for(peer.capabilities) and (subagent is None or peer.capabilities.has("subagents"))
                if is_shown and peer.connection.tell(self._frame_of(subagent, update)):
                    await peer.connection.breathe()
        closing: list[tuple[str | None, SessionUpdate]] = [
            (subagent, v1.ToolCallProgress(v1.ToolCallId(tool_call_id), status="failed"))
            for subagent, calls in unfinished.items()
            for tool_call_id in calls
        ]
        await self._close([*closing, *subagents.endings()], peer)

    async def _close(self, closing: Sequence[tuple[str | None, SessionUpdate]], peer: Peer) -> None:
        """Keep and tell what ends the work that a crash has left open."""
        if not closing:
            return
        encoded = [(subagent, encoded_update(update), update) for subagent, update in closing]
        await self._write([it if of is None else enclosed(of, it) for of, it, _ in encoded], NOTHING)
        for subagent, update, value in encoded:
            if (subagent is None or peer.capabilities.has("subagents")) and peer.capabilities.allow(value):
                peer.connection.tell(self._frame_of(subagent, update))

    def _frame_of(self, subagent: str | None, update: bytes) -> bytes:
        return self.frame(update) if subagent is None else b"".join((update_head(subagent), update, b"}}"))

    async def usage(self) -> bytes | None:
        """The frame that tells of the usage which was told last; None if none was."""
        latest: bytes | None = None
        async for page in self._pages():
            for update in reversed(page):
                if _USAGE in update and seen(update).session_update == "usage_update":
                    latest = update
                    break
        return None if latest is None else self.frame(latest)

    async def history(self) -> SessionState:
        """Everything that was said and done, folded."""
        state = SessionState()
        async for page in self._pages():
            for update in page:
                if is_enclosed(update):
                    continue  # what a subagent said is not part of its parent's conversation
                try:
                    state.add(codec.decode(update, SessionUpdate))
                except DecodeError as error:
                    raise _damaged(error) from error
        return state

    def _pages(self) -> AsyncIterator[list[bytes]]:
        return self._store.updates(self._stored.id, owner=self._stored.owner)


class Seen(msgspec.Struct, rename="camel"):
    """As much of a kept update as a replay needs to know."""

    session_update: str
    tool_call_id: str | None = None
    status: str | None = None

    def note(self, unfinished: dict[str, None]) -> None:
        """Keep the account of tool calls that are not finished."""
        if self.tool_call_id is None:
            return
        if self.status in ("completed", "failed"):
            unfinished.pop(self.tool_call_id, None)
        elif self.session_update == "tool_call" or self.status is not None:
            unfinished[self.tool_call_id] = None

    def is_for(self, capabilities: Capabilities) -> bool:
        """Whether this client has said that it knows such updates."""
        needed = _needed_by_tag().get(self.session_update)
        return needed is None or capabilities.has(needed)


_see = msgspec.json.Decoder(Seen).decode


@functools.cache
def _needed_by_tag() -> dict[str | None, str]:
    return {tag_of(cls): path for cls, path in updates_that_need(v1.SessionNotification).items()}


def seen(update: bytes) -> Seen:
    try:
        return _see(update)
    except codec.REFUSALS:
        pass
    try:
        return _odd(codec.loads(update))
    except DecodeError as error:
        raise _damaged(error) from error


def _odd(plain: Json) -> Seen:
    """An update with half an emoji in it, or of an unknown kind."""
    if not isinstance(plain, dict):
        raise DecodeError("$", "not an object")
    fields = cast("dict[str, Json]", plain)
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    return Seen(texts.get("sessionUpdate", ""), texts.get("toolCallId"), texts.get("status"))


def _damaged(error: DecodeError) -> StoreError:
    return StoreError("damaged", f"the store contains a malformed update: {error}")


def encoded_update(update: SessionUpdate) -> bytes:
    try:
        return codec.strict_encode(update)
    except codec.ENCODE_REFUSALS:
        return codec.encode(update)


def _changes(update: Any) -> Changes:
    """What a session info update changes beside the updates."""
    return Changes(title=update.title)


def title_of(text: str) -> str | None:
    """What a session may be called that begins with these words."""
    lines = (
        "".join(character for character in line if character.isspace() or character >= " ")
        for line in text.splitlines()
    )
    line = next((words for line in lines if (words := " ".join(line.split()))), "")
    return None if not line else line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1].rstrip()}…"
