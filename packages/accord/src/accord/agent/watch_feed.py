"""Watching and joining: a client follows a session by reading the store. The session stays with its holder.

    session/load, _meta {"accord.dev/watch": true} ──▶ SessionWatch.open      the past, as any replay tells it
    WatchedSessions ── four times a second: Store.lengths ──▶ SessionWatch.look      who has grown?
    SessionWatch ── Store.updates(after=position) ──▶ session/update          each entry once, in order

An update is stored before it is sent to its own client, so a watcher of another connection, process or host sees a turn
while it runs. A watcher changes nothing: it does not hold the session, call the author's functions or write.

A position alone does not show that a session was cut and has grown again between two reads. So a read begins with the
entry that was sent last. If that entry has changed, the client has seen a past that no longer exists, and the watch
ends: with a message for the user, and with `_meta: {"accord.dev/watch": false}` for the client.

A client that opens a session while it works on another connection of the agent joins it (`SessionJoin`): it watches
until the work is over, and then its connection takes the session.

An entry was made in the version of the protocol that its writer's client speaks. A watcher of the same version gets it
unchanged, byte for byte. For one of the other version the entry is converted. Entries without a counterpart are left
out:

| entry | watcher | is told |
|---|---|---|
| a tool call of version 1 | version 2 | what was added to it, as the dialect of version 2 tells it |
| an update of a tool call of version 2 | version 1 | the whole tool call, because version 1 replaces lists |
| output of a terminal | version 1 | nothing; the tool call that shows the terminal has its text |
| a message that replaces an earlier one | version 1 | nothing: version 1 cannot replace one |
| what the client did not declare (plans with ids, subagents, compaction) | version 1 | nothing |
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

from accord._internal.tasks import Tasks
from accord.agent.record import encoded_update, public_error
from accord.agent.remote_client import ConnectedClient
from accord.agent.replay_tree import ReplayedUpdate, SessionReplay, belongs_to, needs, opened, tags, update_head
from accord.agent.session import Session
from accord.agent.session_config import offered
from accord.dialects import ActivityEnd, v1_dialect
from accord.engine.peer import Context
from accord.errors import ConnectionClosed, ConversionError, RequestError, StoreError
from accord.schema import codec, v1
from accord.schema.base import Unknown
from accord.schema.capabilities import WATCH, Capabilities
from accord.session import SessionState, updates
from accord.session.replay_scan import Version, read, update_in
from accord.store import Store, StoredSession

ROOM = 4 * 1024 * 1024
"""Bytes of a session's state that are kept to convert updates of version 2 for a watcher of version 1."""


class Translation(Protocol):
    """Turns updates of one version into those of the other, in order."""

    def seen(self, update: Any) -> None:
        """The watcher knows of this update already."""
        ...

    def converted(self, update: Any) -> Sequence[Any]:
        """Return the updates to send for this one."""
        ...


class WatchFeed:
    """The updates that one watcher gets of one session."""

    def __init__(self, session_id: str, version: Version, capabilities: Capabilities) -> None:
        self._session_id = session_id
        self._version: Version = version
        self._capabilities = capabilities
        self._translations: dict[str | None, Translation] = {}

    def seen(self, kept: bytes) -> None:
        """Take note of an entry that the watcher knows already."""
        subagent, entry = opened(kept)
        if update_in(entry)[0] != self._version and not isinstance(update := read(entry), Unknown):
            self._translation(subagent).seen(update)

    def updates_for(self, kept: bytes) -> Iterator[tuple[str, bytes]]:
        """The updates for the next entry, as JSON, each with the id of its session."""
        subagent, entry = opened(kept)
        if subagent is not None and not self._tells_of(subagent):
            return
        session_id = self._session_id if subagent is None else subagent
        version, encoded = update_in(entry)
        update = read(entry)
        if version == self._version:
            if self._fits(update):
                yield session_id, encoded
        elif isinstance(update, Unknown):
            # An unknown update may mean something else in the other version.
            if update.tag not in tags(self._version):
                yield session_id, encoded
        else:
            for converted in self._converted(subagent, update):
                if self._fits(converted):
                    yield session_id, encoded_update(converted)

    def _tells_of(self, subagent: str) -> bool:
        if not belongs_to(subagent, self._session_id):
            return False  # the session is a fork, and the subagent its source's
        return self._version != 1 or self._capabilities.has(needs()[v1.SubagentUpdate])

    def _fits(self, update: Any) -> bool:
        if update.__class__.__struct_config__.tag == "state_update":
            return False  # the end of a turn, which is stored for attempts to send its prompt again
        needed = needs().get(update.__class__) if self._version == 1 else None
        return needed is None or self._capabilities.has(needed)

    def _converted(self, subagent: str | None, update: Any) -> Sequence[Any]:
        try:
            return self._translation(subagent).converted(update)
        except ConversionError:
            return ()

    def _translation(self, subagent: str | None) -> Translation:
        if subagent not in self._translations:
            self._translations[subagent] = _ToFirst() if self._version == 1 else _ToSecond()
        return self._translations[subagent]


class _ToFirst:
    """Updates of version 2 for a watcher of version 1."""

    def __init__(self) -> None:
        self._state = SessionState(ROOM)
        self._messages: set[str] = set()
        """The ids of the messages that the watcher has."""

    def seen(self, update: Any) -> None:
        self._state.add(update)
        if (message_id := getattr(update, "message_id", None)) is not None:
            self._messages.add(message_id)

    def converted(self, update: Any) -> Sequence[Any]:
        from accord.schema.conversion import all_to_v1

        tag: str = update.__struct_config__.tag
        tool_call_id = getattr(update, "tool_call_id", None)
        was_known = tool_call_id in self._state.tool_calls
        is_repeated = tag in _WHOLE and update.message_id in self._messages
        self.seen(update)
        if tool_call_id is not None:
            return self._tool_call(tool_call_id, was_known=was_known)
        return () if is_repeated or tag in _OF_TERMINALS else all_to_v1(update)

    def _tool_call(self, tool_call_id: updates.ToolCallId, *, was_known: bool) -> Sequence[Any]:
        call = self._state.tool_calls.get(tool_call_id)
        if call is None:
            return ()
        whole = v1_dialect.tool_call(call, self._state)
        if not was_known:
            return (whole,)
        return (v1.ToolCallProgress(**{name: getattr(whole, name) for name in whole.__struct_fields__}),)


_WHOLE = frozenset(("user_message", "agent_message", "agent_thought"))
_OF_TERMINALS = frozenset(("terminal_update", "terminal_output_chunk"))


class _ToSecond:
    """Updates of version 1 for a watcher of version 2."""

    def __init__(self) -> None:
        from accord.dialects.v2_dialect import V2Dialect  # loads the types of version 2

        self._dialect = V2Dialect()

    def seen(self, update: Any) -> None:
        if hasattr(update, "tool_call_id"):  # the only updates that need a memory
            self.converted(update)

    def converted(self, update: Any) -> Sequence[Any]:
        as_update = getattr(update, "as_update", None)
        return self._dialect.fitted(update if as_update is None else as_update())


log = logging.getLogger("accord")

EVERY = 0.25
"""Seconds between two checks of the store."""

MOST = 1_000
"""Sessions that the clients of one agent may watch at a time."""

GRACE = 5.0
"""Seconds that a watch has to end."""

CUT = "The session was changed, and what is shown here is out of date. Open it again to go on."
DELETED = "The session was deleted."
LOGGED_OUT = "You have logged out. Log in and open the session again to go on."
UNREADABLE = "The session cannot be read any more. The agent's log says why."

_CONFIG = b'"config_option_update"'


class WatchedSessions:
    """The watched sessions of one agent, on all of its connections. It looks at the store for all of them at once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.loop = asyncio.get_running_loop()
        self._watches: set[SessionWatch] = set()
        self._looking: asyncio.Task[None] | None = None
        self._fails = False
        """Whether the last look has failed."""

    def add(self, watch: SessionWatch) -> None:
        """Follow one more session; raises RequestError if that is one too many."""
        if len(self._watches) >= MOST:
            problem = f"clients of this agent watch {MOST:,} sessions, which is the most: close one of them first"
            raise RequestError.invalid_request(problem)
        self._watches.add(watch)
        if self._looking is None:
            self._looking = self.loop.create_task(self._look_often(), name="accord watching: look at the store")

    async def remove(self, watch: SessionWatch) -> None:
        """Stop following a session; the last one stops the reading."""
        self._watches.discard(watch)
        if not self._watches and (looking := self._looking) is not None:
            self._looking = None
            looking.cancel()
            await asyncio.wait([looking])

    async def _look_often(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self._look()
            except Exception as error:
                if not self._fails:
                    log.warning("sessions cannot be watched now: %s", error)
                self._fails = True
            else:
                self._fails = False

    async def _look(self) -> None:
        for owner in {watch.owner for watch in self._watches}:
            watches = [watch for watch in self._watches if watch.owner == owner]
            known = {watch.id: watch.position for watch in watches}
            lengths = await self.store.lengths(known, owner=owner)
            for watch in watches:
                watch.look(lengths.get(watch.id))


class SessionWatch:
    """One session that a connection watches. `ended` is called when the watch ends for another reason than
    `dismiss`.
    """

    def __init__(
        self,
        sessions: WatchedSessions,
        stored: StoredSession,
        client: ConnectedClient,
        ended: Callable[[SessionWatch], None],
    ) -> None:
        self.id = stored.id
        self.owner = stored.owner
        self.position = 0
        """How many entries of the session were sent to the client."""
        self._sessions = sessions
        self._peer = client.peer
        self._version: Version = client.version
        self._feed = WatchFeed(stored.id, client.version, client.peer.capabilities)
        self._ended = ended
        self._last: bytes = b""
        """The entry that was sent last."""
        self._config = b""
        """The last entry with the config options."""
        self._length: int | None = 0
        """How many entries the session had at the last read; None if it did not exist."""
        self._changed = asyncio.Event()
        self._tasks = Tasks(sessions.loop)

    # The past

    async def open(self, *, replays: bool) -> None:
        """Follow the session from now on, after a replay if the client wants one."""
        self._sessions.add(self)
        try:
            replay = await self._read(SessionReplay(self.id, self._version, self._peer.capabilities))
            if replays:
                await self._replay(replay)
        except BaseException:
            await self._sessions.remove(self)
            raise

    async def _read(self, replay: SessionReplay) -> SessionReplay:
        async for page in self._pages():
            for kept in page:
                replay.look(kept)
                self._feed.seen(kept)
                if _CONFIG in kept:
                    self._config = kept
            self.position += len(page)
            self._last = page[-1]
        self._length = self.position
        return replay

    async def _replay(self, replay: SessionReplay) -> None:
        count, last = 0, b""
        async for page in self._pages():
            # Entries stored since the first reading are sent later.
            for kept in page[: self.position - count]:
                replay.add(kept)
                count, last = count + 1, kept
            await self._tell_past(replay.now())
        if count < self.position or last != self._last:
            raise RequestError.invalid_request("the session was changed during its replay: load it again")
        await self._tell_past(replay.rest())
        await self._tell_past(replay.complete())

    async def _tell_past(self, updates: Iterable[ReplayedUpdate]) -> None:
        for subagent, update in updates:
            await self._tell([_frame(subagent or self.id, encoded_update(update))])

    def options(self) -> tuple[list[updates.SessionConfigOption], v1.SessionModeState | None]:
        """Return the config options in the record, and the modes among them."""
        state = SessionState()
        if self._config:
            subagent, entry = opened(self._config)
            if subagent is None:
                state.add(read(entry))
        modes = None if state.mode is None else v1.SessionModeState(state.mode, list(state.modes))
        return [*state.config, *state.unknown_config], modes

    # The present

    def follow(self) -> None:
        """Send what is stored from now on: the client has the answer to its request."""
        self._tasks.start(self._follow(), f"accord watching: session {self.id}")

    def look(self, length: int | None) -> None:
        """Note the session's present length; None if it does not exist."""
        if length != self._length or length != self.position:
            self._length = length
            self._changed.set()

    async def _follow(self) -> None:
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                if (problem := await self._problem()) is not None:
                    await self._over(problem)
                    return
        except ConnectionClosed:
            pass  # the connection ends its watches

    async def _problem(self) -> str | None:
        """Send the new entries; returns why the watch is over, or None."""
        try:
            return await self.catch_up()
        except StoreError as error:
            if error.reason in ("busy", "failed"):  # it may work again at the next look
                log.warning("session %s cannot be watched now: %s", self.id, error)
                return None
            log.error("session %s cannot be watched any longer: %s", self.id, error)  # noqa: TRY400
            return UNREADABLE
        except ConnectionClosed:
            raise
        except Exception:
            log.exception("session %s cannot be watched any longer", self.id)
            return UNREADABLE

    async def catch_up(self) -> str | None:
        """Send the stored entries that the client does not have; returns why the watch is over, or None."""
        if self._length is None:
            return DELETED
        is_first = self.position > 0
        async for page in self._pages(after=max(0, self.position - 1)):
            if is_first and page[0] != self._last:
                return CUT
            for kept in page[1:] if is_first else page:
                frames = [_frame(*update) for update in self._feed.updates_for(kept)]
                self.position, self._last = self.position + 1, kept
                await self._tell(frames)
            is_first = False
        return CUT if is_first else None

    async def _tell(self, frames: Sequence[bytes]) -> None:
        wait = False
        for frame in frames:
            wait = self._peer.connection.tell(frame) or wait
        if wait:
            await self._peer.connection.breathe()

    def _pages(self, after: int = 0) -> AsyncIterator[list[bytes]]:
        return self._sessions.store.updates(self.id, owner=self.owner, after=after)

    # The end

    async def _over(self, words: str) -> None:
        """End the watch, with a message for the client's user."""
        notice = updates.Notice("warning", words)
        shows = self._version != 1 or self._peer.capabilities.has("session.notices")
        update = notice if shows else updates.AgentMessageChunk.of(words)
        await self._sessions.remove(self)
        self._ended(self)
        self._peer.connection.tell(watch_over(self.id, encoded_update(update)))

    async def close(self) -> None:
        """End the watch for its client, which knows."""
        await self._tasks.end(GRACE)
        await self._sessions.remove(self)

    async def dismiss(self, words: str) -> None:
        """End the watch, and give the client the reason."""
        await self._tasks.end(GRACE)
        await self._over(words)

    async def hand_over(self) -> None:
        """End the watch because the client opens the session itself, which this process holds by now.

        Everything up to the present is sent first. Then an empty update says that the replay begins.
        """
        await self._tasks.end(GRACE)
        await self._sessions.remove(self)
        await self.catch_up()
        self._peer.connection.tell(watch_over(self.id, codec.encode(updates.SessionInfoUpdate())))


class SessionJoin(SessionWatch):
    """A session that works on another connection, for a client that has opened it: it moves here after the work.

    The work continues where it is. Until it is over, the client follows it like an observer. It also gets the states,
    can cancel the work and change settings, and its prompts wait. The session then leaves the connection that worked:
    `take` opens it on this client's connection. `holder` is the session where it worked when it was found; `working` is
    the session wherever it works by now, None once its work is over.

    Background work may last long. It is not waited for if the client sends a prompt.
    """

    def __init__(
        self,
        sessions: WatchedSessions,
        stored: StoredSession,
        client: ConnectedClient,
        ended: Callable[[SessionWatch], None],
        holder: Session,
        working: Callable[[], Session | None],
        take: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(sessions, stored, client, ended)
        self._dialect = client.dialect()
        self._working = working
        self._take = take
        self._states: list[bytes] = []
        """The states that were not sent to the client."""
        self._prompts: list[asyncio.Future[bool]] = []
        """The prompts that wait for the session; each learns whether it arrived, or the prompt was cancelled."""
        self._changed_work = asyncio.Event()
        """Set when there may be no more reason to wait for background work."""
        self._arrival: asyncio.Task[None] | None = None
        self._join(holder)

    def _join(self, holder: Session) -> None:
        self.holder = holder
        """The session on the connection that works."""
        self._leave = holder._activity.follow(self._state_changed)

    def _state_changed(self, end: ActivityEnd | None) -> None:
        update = self.holder._activity.state_in(self._dialect, end)
        if update is not None:
            self._states.append(encoded_update(update))
            self._changed.set()
        self._changed_work.set()

    def skip_to_present(self) -> None:
        """Send no state from before now: the client gets the present one."""
        self._states.clear()

    def follow(self) -> None:
        super().follow()
        commands = self.holder.commands
        if self._version == 1 and (commands or commands.skills):
            self._peer.connection.tell(_frame(self.id, encoded_update(offered(commands, shows_skills=False))))
        self._arrival = self._sessions.loop.create_task(self._arrive(), name=f"accord joining: session {self.id}")

    async def catch_up(self) -> str | None:
        count = len(self._states)  # the activity before these states is stored by now
        problem = await super().catch_up()
        states, self._states = self._states[:count], self._states[count:]
        await self._tell([_frame(self.id, state) for state in states])
        return problem

    # The end of the work

    async def _arrive(self) -> None:
        try:
            await self._take_when_free()
        except ConnectionClosed:
            pass  # the connection ends its watches
        except Exception as error:
            log.info("session %s could not be opened where it was joined", self.id, exc_info=error)
            await self._over(f"The session could not be opened here. {public_error(error).message}")
        finally:
            self._settle(came=True)  # otherwise, they learn that it is not open

    async def _take_when_free(self) -> None:
        while True:
            self._changed_work.clear()
            async with self.holder._turns.paused():
                working = self._working()
                if working is None or (working is self.holder and (self._prompts or not working.background)):
                    await self._tasks.end(GRACE)
                    if (problem := await self.catch_up()) is None:
                        await self._take()
                        self._leave()
                        await self._sessions.remove(self)
                    else:
                        await self._over(problem)
                    return
            if working is not self.holder:  # another client has joined it, too, and got it before
                self._leave()
                self._join(working)
            else:
                await self._changed_work.wait()

    async def arrived(self, context: Context) -> bool:
        """Wait until the session is open on this connection; False if that was cancelled."""
        prompt: asyncio.Future[bool] = self._sessions.loop.create_future()
        self._prompts.append(prompt)
        self._changed_work.set()
        context.on_cancel(lambda: None if prompt.done() else prompt.set_result(False))
        return await prompt

    def cancel(self, session_id: str) -> None:
        """Cancel the work and the prompts that wait, or the subagent with this id."""
        self.holder._cancel(session_id)
        if session_id == self.id:
            self._settle(came=False)

    def _settle(self, *, came: bool) -> None:
        for prompt in self._prompts:
            if not prompt.done():
                prompt.set_result(came)

    async def _over(self, words: str) -> None:
        await self._end()
        with suppress(ConnectionClosed):
            await super()._over(words)

    async def close(self) -> None:
        self._settle(came=False)
        await self._end()
        await super().close()

    async def dismiss(self, words: str) -> None:
        await self._end()
        await super().dismiss(words)

    async def hand_over(self) -> None:
        """End the join because the client, which knows the session, opens it again."""
        await self._end()
        await self._tasks.end(GRACE)
        await self._sessions.remove(self)

    async def _end(self) -> None:
        self._leave()
        arrival = self._arrival
        if arrival is not None and arrival is not asyncio.current_task() and not arrival.done():
            arrival.cancel()
            await asyncio.wait([arrival])


def _frame(session_id: str, encoded: bytes) -> bytes:
    return b"".join((update_head(session_id), encoded, b"}}"))


def watch_over(session_id: str, encoded: bytes) -> bytes:
    """Return the notification of this update, which also ends the client's watch."""
    return b'%b%b,"_meta":{"%b":false}}}' % (update_head(session_id), encoded, WATCH.encode())
