"""The stored part of a session: its updates, its title, its user's choices, and the author's state.

    Session.send ─▶ Record.keep ─▶ store ── committed ──▶ the frame that tells the client
    session/load ─▶ Record.replay ─▶ what the entries amount to, and what a crash has left open is closed
    Session.history ─▶ the same entries, folded

A conversation is what the client received, so each update is saved once, as the JSON that is sent, with the version of
the protocol (`entries`). A session may be continued, and replayed, in the other version.

Notices are not saved. Neither are the available commands: the agent sends them each time the session is opened. Of the
states of version 2, only the reason why work has ended is saved.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import UNSET

from accord.agent.remote_client import with_absolute_paths
from accord.agent.replay_tree import ReplayedUpdate, SessionReplay, enclosed, opened, tags, update_head
from accord.dialects import Dialect
from accord.engine.peer import Peer
from accord.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NOT_FOUND,
    AccordError,
    ConnectionClosed,
    RequestError,
    StoreError,
    StoreTrouble,
)
from accord.schema import codec, v1
from accord.schema.base import Json
from accord.schema.tolerant import convert_alone
from accord.session import SessionState, ToolCallState, updates
from accord.session.replay_scan import (
    CutPlaces,
    Key,
    Version,
    end_of_turn,
    has_key,
    is_of_user,
    key_in,
    marked,
    marking,
    read,
    stop_reason_in,
    with_key,
)
from accord.session.values import Update
from accord.store import NOTHING, Changes, Store, StoredSession

_NOT_STORED = frozenset(
    ("notice", "available_commands_update", "prompt_suggestions_update", "cursor_update", "replay_complete")
)
"""The tags of updates that are not part of the conversation."""

_APART = _NOT_STORED | {"session_info_update", "state_update"}
"""The tags of updates that are not stored as an entry, or not at all."""

_USAGE = b'"usage_update"'

TITLE_LENGTH = 80


class Record:
    """The stored data of one session, held by the connection that has the session open."""

    def __init__(self, store: Store, stored: StoredSession, version: Version = 1) -> None:
        self.version: Version = version
        """The version that the client speaks, in which updates are stored from now on."""
        self.title = stored.title
        self.settings = stored.settings
        self.info = stored.info
        """The `_meta` of the session in lists."""
        self._store = store
        self._stored = stored
        self._state = stored.state
        self._append = store.appending(stored)
        """Stores an entry without waiting; None if the store cannot, and during a replay."""
        self._writing = 0
        """How many writes the store has not committed yet."""
        self._written: asyncio.Event | None = None
        """Set when the last write is committed; None unless a replay waits for that."""
        self._replayed: asyncio.Event | None = None
        """Set at the end of a replay that holds back the session's updates; None without one."""
        self._mark = marking(version)
        self._apart = classes_apart(version)
        if version == 2:
            from accord.dialects.v2_dialect import message_of_user  # loads the types of version 2

            self._message_of_user = message_of_user
        self._name = os.urandom(4).hex()
        """A name that distinguishes the prompts of this opening from those of earlier ones."""
        self._prompts = 0
        """How many prompts there were since."""
        self._keys: dict[str, str] = {}
        """The ids of the prompts' messages, by the keys under which they were sent."""
        self._knows_keys = stored.hold == 1
        """Whether these are all keys of the record: it is new, or was read since it was opened."""
        self._interrupted: str | None = None
        """The id of the user's last message, if it has a key and the end of its turn is not stored."""
        self.message_id = ""
        """The id of the message of the latest prompt."""
        self.awaits_end = False
        """Whether the present turn has a prompt with a key, so that its end is stored."""
        self.stop_reason: str | None = None
        """Why the last turn of a prompt with a key ended; None if that is not known."""
        identifier = msgspec.json.encode(stored.id).decode()
        self._cursors_sent = 0
        """How many entries have had their cursors sent."""
        self.head = (
            f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":{identifier},"update":'.encode()
        )

    # Recording

    async def keep(self, update: Update) -> bytes:
        """Store this update; returns the frame for the client, which must not see it earlier."""
        encoded = encoded_update(update)
        tag = self._apart.get(update.__class__)
        if tag == "session_info_update":
            await self.write((marked(encoded, self.version),), self._changes(update))
        elif tag is None or getattr(update, "stop_reason", None) is not None:
            await self.write((marked(encoded, self.version),))
        return self.frame(encoded)

    def keep_now(self, update: Update) -> bytes | None:
        """`keep`, where the store can do that without waiting; else None, and nothing is stored."""
        if self._append is None or update.__class__ in self._apart:
            return None
        try:
            encoded = codec.strict_encode(update)
        except codec.ENCODE_REFUSALS:
            encoded = codec.encode(update)
        self._append(encoded if self._mark is None else self._mark(encoded))
        return b"%b%b}}" % (self.head, encoded)

    async def keep_prompt(self, prompt: Sequence[Any], title: str | None = None, key: str | None = None) -> list[bytes]:
        """Store the user's prompt, and the title that it gives the session; returns the stored updates in order.

        These are the `prompt_updates`, with the `key` under which a client of version 2 sends the prompt.
        """
        self._prompts += 1
        self.message_id, self._interrupted = f"{self._name}-{self._prompts}-user", None
        encoded = list(map(encoded_update, self.prompt_updates(prompt)))
        changes = Changes()  # the user's prompt is activity at this very moment
        if title is not None:
            named = updates.SessionInfoUpdate(title)  # the same JSON in both versions
            encoded.append(encoded_update(named))
            changes = self._changes(named)
        entries = encoded if self._mark is None else list(map(self._mark, encoded))
        if key is None:
            await self.write(entries, changes)
            return encoded
        message_id = self.message_id
        entries[0] = with_key(entries[0], self._stored.id, key)
        await self.write(entries, changes)
        self._keys[key] = message_id
        self.awaits_end = True
        return encoded

    async def keep_end(self, stop_reason: str) -> None:
        """Store that the turn of a prompt with a key has ended: another attempt must not run it again."""
        self.awaits_end = False
        entry = end_of_turn(stop_reason)
        if self._append is None:
            await self.write((entry,))
        else:
            self._append(entry)
        self.stop_reason = stop_reason

    def is_interrupted(self, message_id: str) -> bool:
        """Whether the turn of this prompt began before the session was opened here, and has not ended."""
        return message_id == self._interrupted

    async def begin_again(self, message_id: str) -> None:
        """Begin the turn of an interrupted prompt again; raises StoreError if the session was opened elsewhere."""
        self._prompts += 1
        self.message_id, self._interrupted = message_id, None
        try:
            await self.write((), Changes())
        except BaseException:
            self._interrupted = message_id
            raise
        self.awaits_end = True

    async def message_sent_under(self, key: str) -> str | None:
        """Return the id of the message that was sent under this key; None if there is none, or it is no longer
        stored.
        """
        # schema, session/prompt: a retry gets the id of the first message as long as that message is kept.
        if key not in self._keys and not self._knows_keys:
            async for _ in self._pages():  # notes the keys
                pass
        return self._keys.get(key)

    def _changes(self, update: Any) -> Changes:
        """Return the changes that a session info update makes beside the updates."""
        info = update.meta
        if self.version == 2 and isinstance(info, dict):
            # Version 2 patches `_meta` by its keys; null removes one.
            merged = {**(self.info or {}), **cast("dict[str, Json]", info)}
            info = {key: value for key, value in merged.items() if value is not None}
        return Changes(title=update.title, info=info)

    def prompt_updates(self, prompt: Sequence[Any]) -> list[Update]:
        """Return the latest prompt as updates: a chunk for each block, or one message in version 2."""
        # prompt-turn, Message IDs: the chunks of one message share an id.
        message_id = updates.MessageId(self.message_id)
        if self.version == 1:
            return list(map(v1.UserMessageChunk, prompt, itertools.repeat(message_id)))
        return [self._message_of_user(message_id, prompt)]

    def id_for(self, what: str) -> str:
        """Return an id for something in the latest prompt: stable for the same thing, and unique in the session."""
        return f"{self._name}-{self._prompts}-{what}"

    async def forget_prompt(self) -> None:
        """Forget the latest prompt and everything after it; later prompts and loads do not see them."""
        message_id, self.awaits_end = self.message_id, False
        self._keys = {key: other for key, other in self._keys.items() if other != message_id}
        sign = message_id.encode()
        place = 0
        async for page in self._pages():
            for update in page:
                if sign in update:
                    await self._end_of_replay()
                    self._writing += 1
                    try:
                        await self._store.cut(self._stored, place)
                    finally:
                        self._has_written()
                    return
                place += 1

    def release(self) -> None:
        """Release the closed session; nothing is saved until it is opened again."""
        self._store.release(self._stored)

    async def keep_settings(self, settings: dict[str, Json]) -> None:
        """Store the user's choices."""
        if settings != self.settings:
            await self.write((), Changes(settings=dict(settings)))
            self.settings = dict(settings)

    async def keep_state(self, state: Any) -> None:
        """Store the author's value, if it has changed."""
        plain = codec.plain(state)
        if plain != self._state:
            await self.write((), Changes(state=plain))
            self._state = plain

    def state(self, of: Any) -> Any:
        """Return the author's value as this type; None if there is none."""
        return None if self._state is None else convert_alone(self._state, of)

    def frame(self, encoded: bytes) -> bytes:
        """The notification with this update."""
        return b"%b%b}}" % (self.head, encoded)

    async def write(self, entries: Sequence[bytes], changes: Changes = NOTHING) -> None:
        """Store these entries and changes, after the end of a replay."""
        if self._replayed is not None:
            await self._end_of_replay()
        self._writing += 1
        try:
            await self._store.write(self._stored, entries, changes)
        finally:
            self._has_written()
        if changes is not NOTHING:
            if changes.title is not UNSET:
                self.title = changes.title
            if changes.info is not UNSET:
                self.info = changes.info

    # Replay

    async def replay(self, peer: Peer) -> None:
        """Replay everything to the client in order, and close the tool calls that a crash has left open."""
        replay = await self._replay(peer)
        if closed := replay.closing():
            entries = [self._entry_of(subagent, encoded_update(update)) for subagent, update in closed]
            await self._store.write(self._stored, entries)
            await self._tell(peer, closed)
        await self._tell(peer, replay.complete())

    async def replay_work(self, peer: Peer) -> None:
        """Replay everything to the client of a session that is working.

        The client must get each update either in the replay or afterwards. So the replay begins when everything stored
        was sent, and updates that are made meanwhile wait for its end.
        """
        append, self._append = self._append, None
        self._replayed = asyncio.Event()
        try:
            if self._writing:
                self._written = asyncio.Event()
                await self._written.wait()
            replay = await self._replay(peer)
            await self._tell(peer, replay.complete())
        finally:
            self._append, self._written = append, None
            self._replayed.set()
            self._replayed = None

    async def _end_of_replay(self) -> None:
        while self._replayed is not None:
            await self._replayed.wait()

    def _has_written(self) -> None:
        """Note that a write is committed, or has failed."""
        self._writing -= 1
        if self._written is not None and not self._writing:
            self._written.set()

    async def _replay(self, peer: Peer) -> SessionReplay:
        replay = SessionReplay(self._stored.id, self.version, peer.capabilities)
        async for page in self._pages():
            for kept in page:
                replay.look(kept)
        async for page in self._pages():
            for kept in page:
                replay.add(kept)
            await self._tell(peer, replay.now())
        await self._tell(peer, replay.rest())
        return replay

    async def _tell(self, peer: Peer, replayed: Iterable[ReplayedUpdate]) -> None:
        for subagent, update in replayed:
            head = self.head if subagent is None else update_head(subagent)
            if peer.connection.tell(b"".join((head, encoded_update(update), b"}}"))):
                await peer.connection.breathe()

    def _entry_of(self, subagent: str | None, encoded: bytes) -> bytes:
        entry = marked(encoded, self.version)
        return entry if subagent is None else enclosed(subagent, entry)

    async def usage(self) -> bytes | None:
        """Return the frame of the latest usage; None if none was sent."""
        state = SessionState()
        async for page in self._pages():
            for entry in page:
                if _USAGE in entry and getattr(update := read(entry), "used", None) is not None:
                    state.add(update)
        if state.usage is None:
            return None
        # The same JSON in both versions: a missing cost was never sent, or was cleared.
        cost = UNSET if state.usage.cost is None else state.usage.cost
        return self.frame(encoded_update(msgspec.structs.replace(state.usage, cost=cost)))

    async def history(self) -> SessionState:
        """Return the whole conversation, folded."""
        state = SessionState()
        async for subagent, update in self._updates():
            if subagent is None:  # a subagent's text is not part of the conversation
                state.add(update)
        return state

    async def new_cursors(self, *, of_all: bool) -> list[updates.CursorUpdate]:
        """Return the cursors of the messages since the last call, or of all, that the client knows by their ids."""
        after = 0 if of_all else self._cursors_sent
        found, self._cursors_sent = await cut_places(self._store, self._stored, after)
        # A client of version 1 learns the ids of its own messages from replays alone.
        return [cursor_of(key) for key in found if of_all or self.version == 2 or key[0] == "agent"]

    async def _updates(self) -> AsyncIterator[tuple[str | None, Update]]:
        """Each update, and the subagent that it is from; None for the session itself."""
        async for page in self._pages():
            for kept in page:
                subagent, entry = opened(kept)
                yield subagent, read(entry)

    async def _pages(self) -> AsyncGenerator[list[bytes]]:
        interrupted: str | None = None
        async for page in self._store.updates(self._stored.id, owner=self._stored.owner):
            if not self._knows_keys:
                for entry in page:
                    pair = key_in(entry, self._stored.id) if has_key(entry) else None
                    if pair is not None:
                        key, interrupted = pair
                        self._keys[key] = interrupted
                    elif (stop_reason := stop_reason_in(entry)) is not None:
                        interrupted, self.stop_reason = None, stop_reason
                    elif is_of_user(entry):
                        interrupted = None
            yield page
        if not self._knows_keys and not self._prompts:
            self._interrupted = interrupted
        self._knows_keys = True


# Cursors. A cursor is named after its message, so it means the same after a restart, on another host and in a fork, and
# nothing has to be kept for it. The store can cut a record anywhere; these are the places that the client can name.


async def cut_places(store: Store, stored: StoredSession, after: int = 0) -> tuple[dict[Key, int], int]:
    """Yield how much a fork keeps at each message after this entry; and how many entries there are."""
    places, number = CutPlaces(), after
    async for page in store.updates(stored.id, owner=stored.owner, after=after):
        for kept in page:
            subagent, entry = opened(kept)
            if subagent is None:
                places.add(entry, number)
            number += 1
    return places.lengths, number


def cursor_id(message: Key) -> updates.CursorId:
    """Return the id of the cursor at a message, given its speaker and its id."""
    return updates.CursorId("-".join(message))


def cursor_of(message: Key) -> updates.CursorUpdate:
    """Return the update that announces the cursor at a message: before one of the user, after one of the agent."""
    speaker, message_id = message
    anchor = (
        updates.UserMessageAnchor(updates.MessageId(message_id), "before")
        if speaker == "user"
        else updates.AgentMessageAnchor(updates.MessageId(message_id), "after")
    )
    return updates.CursorUpdate(
        cursor_id(message), anchor, updates.CursorCapabilities(updates.CursorForkCapabilities())
    )


@functools.cache
def classes_apart(version: Version) -> dict[type[Any], str]:
    """Return the classes of updates that are not stored as an entry, or not at all, with their tags."""
    return {cls: tag for tag, cls in tags(version).items() if tag in _APART}


def encoded_update(update: Update) -> bytes:
    try:
        return codec.strict_encode(update)
    except codec.ENCODE_REFUSALS:
        return codec.encode(update)


def title_of(text: str, longest: int = TITLE_LENGTH) -> str | None:
    """Return the title of a session that begins with these words."""
    lines = (
        "".join(character for character in line if character.isspace() or character >= " ")
        for line in text.splitlines()
    )
    line = next((words for line in lines if (words := " ".join(line.split()))), "")
    return None if not line else line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


# Every update goes through `SessionUpdates.send`, whichever part of the session made it. It is stored first and sent
# afterwards, so the client never sees an update that is not stored. Updates made before the client knows the session
# wait for the answer that opens it. The session's dialect decides what is sent for an update.


class SessionUpdates:
    """One session's updates, on their way to the store and the client."""

    def __init__(self, record: Record, peer: Peer, cwd: Path, dialect: Dialect) -> None:
        self.dialect = dialect
        """How the session speaks in the version of its connection."""
        self.is_open = False
        """Whether changes are sent: the client knows the session, or the answer that opens it is being made."""
        self._record = record
        self.peer = self._peer = peer
        """The client's peer."""
        self._cwd = cwd
        self._sendable = dialect.sendable
        self._early: list[bytes] | None = []
        """Frames from before the client knew the session; None once it does."""
        self._tool_calls: dict[updates.ToolCallId, ToolCallState] = {}
        """The tool calls that are not finished."""

    async def send(self, update: updates.Update) -> None:
        """Store this update, and send it to the client."""
        if update.__class__ not in self._sendable:
            await self._send_fitted(update)
            return
        frame = self._record.keep_now(update) or await self._record.keep(update)
        if self._early is not None:
            self._early.append(frame)
        elif self._peer.connection.tell(frame):
            await self._peer.breathe()

    async def _send_fitted(self, update: Any) -> None:
        for fitted in self.dialect.fitted(self._folded(update)):
            if fitted.__needs__ is not None:
                self._peer.capabilities.require(fitted.__needs__, fitted.__class__.__name__)
            if self.tell(self._record.keep_now(fitted) or await self._record.keep(fitted)):
                await self._peer.breathe()

    def report(self, update: Any) -> None:
        """Report the session's activity or settings to the client; this is not part of the conversation, and not
        stored.
        """
        self.report_encoded(encoded_update(update))

    def report_encoded(self, update: bytes) -> None:
        """`report` for an update that is JSON already."""
        try:  # noqa: SIM105 - `suppress` costs more than what it surrounds
            self.tell(b"%b%b}}" % (self._record.head, update))
        except ConnectionClosed:
            pass  # work that ends with the link has no client to notify

    def tell(self, frame: bytes) -> bool:
        """Send an update that is already stored; returns True if the sender should `breathe`."""
        if self._early is None:
            return self._peer.connection.tell(frame)
        self._early.append(frame)
        return False

    async def breathe(self) -> None:
        """Wait until there is room for more output."""
        await self._peer.breathe()

    def known(self) -> None:
        """Send the waiting updates, and from now on each at once: the client knows the session."""
        early, self._early = self._early or [], None
        for frame in early:
            self._peer.connection.tell(frame)

    def client_shows(self, capability: str) -> bool:
        """Whether the client declared this capability."""
        return self._peer.capabilities.has(capability)

    async def keep_settings(self, values: Mapping[str, str | bool]) -> None:
        """Store the user's choices."""
        await self._record.keep_settings(dict(values))

    # Tool calls

    def tool_call(self, tool_call_id: updates.ToolCallId) -> ToolCallState | None:
        """Return the current state of a tool call that is not finished."""
        return self._tool_calls.get(tool_call_id)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Return the state of a tool call after this update, which is not sent."""
        return (self.tool_call(said.tool_call_id) or ToolCallState(said.tool_call_id)).updated(said.as_update())

    def forget_tool_calls(self) -> None:
        """Forget the tool calls of a turn that was refused."""
        self._tool_calls.clear()

    def _folded(self, update: Any) -> Any:
        """Return this update in its public form, with its changes of a tool call folded."""
        if (as_update := getattr(update, "as_update", None)) is not None:  # only version 1 has it
            update = as_update(is_known=getattr(update, "tool_call_id", None) in self._tool_calls)
        if update.__class__ is not updates.ToolCallProgress:
            return update
        update = with_absolute_paths(update, self._cwd)
        known = self._tool_calls.pop(update.tool_call_id, None) or ToolCallState(update.tool_call_id)
        if not (call := known.updated(update)).is_finished:
            self._tool_calls[call.id] = call
        return update


# The errors that a client may read: of an author's code, and of the session store.


log = logging.getLogger("accord")


def not_found(session_id: str) -> RequestError:
    return RequestError(NOT_FOUND, "Session not found", {"sessionId": session_id})


def taken(session_id: str, code: int = INVALID_REQUEST) -> RequestError:
    return RequestError(code, "Session was opened elsewhere", {"sessionId": session_id, "reason": "taken"})


_IN_WORDS: dict[StoreTrouble, str] = {
    "newer_format": "The agent's store of sessions was written by a newer version; update the agent",
    "not_a_store": "The file that the agent keeps sessions in is not a store of sessions; give the agent another one",
    "damaged": "The agent's store of sessions is damaged; restore it, or give the agent another one",
    "busy": "The agent's store of sessions is locked by another program; try again",
    "full": "The disk of the agent's store of sessions is full; free some space, then try again",
    "replaced": "The agent's store of sessions was deleted or replaced while it was open; restart the agent",
}
"""Messages for the client by the reason of the error: the problem and the remedy, without paths and system errors."""


def public_store_error(error: StoreError, session_id: str) -> RequestError:
    """Return the answer for the client. Details that only the agent's operator can use are logged."""
    if error.reason == "gone":
        return not_found(session_id)
    if error.reason == "cursor":
        return RequestError.invalid_params(str(error), path="$.cursor")
    if error.reason == "taken":
        return taken(session_id)
    log.error("%s", error)
    message = _IN_WORDS.get(error.reason, "The agent's store of sessions cannot be used; its log says why")
    return RequestError.internal(message, reason=error.reason)


@contextmanager
def public_store_errors(session_id: str) -> Generator[None]:
    """Turn a StoreError into the client's answer."""
    try:
        yield
    except StoreError as error:
        raise public_store_error(error, session_id) from error


def public_error(error: BaseException) -> updates.Error:
    """Return the protocol error for this exception: with its text if that is meant for the client, else without."""
    if isinstance(error, RequestError):
        return updates.Error(error.code, error.message, error.data)
    is_safe = isinstance(error, AccordError) and error.may_be_told(None)
    return updates.Error(INTERNAL_ERROR, str(error) if is_safe else "Internal error")
