"""The replay of a session and of its subagents: the fewest updates that amount to its record. PURE.

    entries ──▶ Survey                     until which entry each thing changes
    entries ──▶ Replay.add ──▶ Replay.now  what is final by now, in the order in which it began
                Replay.rest                at the end: the rest, plans and settings

Each message is sent once and whole, so a replay is as long as the conversation, however small the chunks were. A long
message is sent in parts: clients limit the length of a line. Everything keeps its id. What was sent is dropped, so a
replay holds little more than what has begun and is not final.

A subagent's session has no record of its own: it begins, is loaded and is deleted with the session that started it. So
each of its updates is kept among those of that session, in an *envelope* that names the subagent:

    {"sessionUpdate":"_accord/of_subagent","sessionId":"<subagent>","update":{...}}

A replay opens the envelopes: a subagent's messages go to the client under its id, after the update that announces it.
The ids begin with the id of the session, so a fork, which has a copy of the record, does not replay the subagents of
its source: they belong to another session.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from accord.dialects import v1_dialect
from accord.errors import INTERNAL_ERROR
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.capabilities import Capabilities, updates_that_need
from accord.schema.type_tree import Tagged, node_of
from accord.session import Message, SessionState, ToolCallState, updates
from accord.session.replay_scan import FoldedRecord, Key, Survey, Version, read
from accord.session.values import Update

OF_SUBAGENT = "_accord/of_subagent"
_BEGINNING = f'{{"sessionUpdate":"{OF_SUBAGENT}","sessionId":'.encode()
_MIDDLE = b',"update":'


def subagent_id(session_id: str, own: str) -> updates.SessionId:
    """Return the id of a subagent's session; `own` is unique in the session."""
    return updates.SessionId(f"{session_id}/{own}")


def belongs_to(subagent: str, session_id: str) -> bool:
    """Whether the session with this id, or a subagent of it, has started the subagent."""
    return subagent.startswith(f"{session_id}/")


def session_of(subagent: str) -> str:
    """Return the id of the session that a subagent belongs to; a session's own id as it is."""
    return subagent.partition("/")[0]


def update_head(session_id: str) -> bytes:
    """Return the beginning of the notification of an update of this session; two closing braces end it."""
    identifier = msgspec.json.encode(session_id)
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":' % identifier


def enclosed(subagent: str, entry: bytes) -> bytes:
    """Return an entry of this subagent, as the record stores it."""
    return b"%b%b%b%b}" % (_BEGINNING, msgspec.json.encode(subagent), _MIDDLE, entry)


def opened(kept: bytes) -> tuple[str | None, bytes]:
    """Return the subagent that a stored entry is from, None for the session itself, and the entry."""
    if not kept.startswith(_BEGINNING):
        return None, kept
    subagent, _, entry = kept[len(_BEGINNING) : -1].partition(_MIDDLE)
    return msgspec.json.decode(subagent, type=str), entry


def ended_by_a_crash(state: SessionState) -> Iterator[updates.SubagentUpdate]:
    """Return the updates that end the subagents that were working when their agent ended."""
    problem = updates.Error(INTERNAL_ERROR, "The agent ended while the subagent worked")
    for subagent in state.subagents.values():
        if isinstance(subagent.state, updates.RunningStateUpdate | updates.RequiresActionStateUpdate):
            yield updates.SubagentUpdate(subagent.session_id, state=updates.IdleStateUpdate("error", None, problem))


# The replay of one session


PART = 256 * 1024
"""Characters above which a message is sent in parts."""


class ReplayWriter(Protocol):
    """The common part of `v1_dialect` and `v2_dialect`: the updates of one version."""

    def message(self, whole: Message, content: Sequence[v1.ContentBlock], *, first: bool) -> Iterator[Any]: ...
    def whole_message(self, whole: Message) -> Iterator[Any]: ...
    def tool_call(self, call: ToolCallState, state: SessionState) -> Any: ...
    def thing(self, key: Key, state: SessionState) -> list[Any]: ...
    def ending(self, record: FoldedRecord) -> Iterator[Any]: ...
    def closing(self, calls: Sequence[updates.ToolCallId], terminals: Sequence[v1.TerminalId]) -> list[Any]: ...


class Replay:
    """One replay of a record, while its entries are read for the second time."""

    def __init__(self, survey: Survey, version: Version, capabilities: Capabilities) -> None:
        self._survey = survey
        self._version: Version = version
        self._capabilities = capabilities
        self._writer = _writer(version)
        self._record = FoldedRecord()
        self._read = 0
        """How many entries were read."""
        self._next = 0
        """The index in the record's order of the next thing to send."""
        self._sent_count = 0
        """How many entries of the timeline were sent and not yet dropped."""
        self._is_in_part = False
        """Whether the first part of the next message was sent."""
        self._open: list[updates.ToolCallId] = []
        """The tool calls that were sent and are not finished."""

    @property
    def state(self) -> SessionState:
        """The state after the entries that were read and not dropped."""
        return self._record.state

    def add(self, update: Update) -> None:
        """Read the next entry."""
        self._record.add(update)
        self._read += 1

    def now(self) -> Iterator[Any]:
        """Return the updates that are final."""
        yield from self._fitting(self._final())

    def rest(self) -> Iterator[Any]:
        """Return the remaining updates, after the last entry."""
        yield from self._fitting(self._final())
        yield from self._fitting(self._writer.ending(self._record))
        if self._version == 1 and not self._capabilities.has(needs()[v1.PlanUpdate]):
            plan = v1_dialect.plan_without_ids(self._record)
            yield from () if plan is None else (plan,)

    def closing(self) -> list[Any]:
        """Return the updates that close what a crash has left open, after the rest."""
        terminals = self._record.state.terminals.values()
        return self._writer.closing(self._open, [it.id for it in terminals if it.exit_status is None])

    def _final(self) -> Iterator[Any]:
        order = self._record.order
        while self._next < len(order):
            place = order[self._next]
            if isinstance(place, int):
                if (updates := self._entry(place)) is None:
                    yield from self._part(place)
                    break
                yield from updates
                self._sent_count += 1
                self._is_in_part = False
            elif isinstance(place, Unknown):
                yield place
            elif self._is_final(place):
                yield from self._writer.thing(place, self._record.state)
            else:
                break
            self._next += 1
        if self._sent_count:
            self._record.state.forget(self._sent_count)
            self._sent_count = 0

    def _is_final(self, key: Key) -> bool:
        return self._survey.last.get(key, -1) < self._read

    # The timeline

    def _entry(self, place: int) -> Iterator[Any] | None:
        """Return the updates for an entry of the timeline; None if it is not final."""
        [entry] = self._record.state.between(place, place + 1)
        if isinstance(entry, Message):
            return self._message(self._named(entry, place)) if self._is_final_message(entry, place) else None
        return self._tool_call(entry) if self._is_final(("call", entry.id)) else None

    def _is_final_message(self, message: Message, place: int) -> bool:
        if message.id is not None:
            return self._is_final((message.speaker, message.id))
        # A chunk without an id continues the message that began last.
        return place + 1 < len(self._record.state) or self._read == self._survey.count

    def _message(self, message: Message) -> Iterator[Any]:
        if self._is_in_part or len(message.text) >= PART:
            return self._writer.message(message, _in_parts(message.content), first=not self._is_in_part)
        return self._writer.whole_message(message)

    def _part(self, place: int) -> Iterator[Any]:
        """Return the available part of a long message that is not final, but will only grow."""
        [entry] = self._record.state.between(place, place + 1)
        if not isinstance(entry, Message):
            return
        if entry.id is not None and self._survey.replaced.get((entry.speaker, entry.id), -1) >= self._read:
            return
        if content := self._record.state.drain(place, PART):
            first, self._is_in_part = not self._is_in_part, True
            yield from self._writer.message(self._named(entry, place), _in_parts(content), first=first)

    def _named(self, message: Message, place: int) -> Message:
        """Return this message with an id in version 2, which is the same in each replay."""
        if self._version == 1 or message.id is not None:
            return message
        return msgspec.structs.replace(message, id=updates.MessageId(f"message-{place}"))

    def _tool_call(self, call: ToolCallState) -> Iterator[Any] | None:
        shown = [("terminal", it.terminal_id) for it in call.content if isinstance(it, v1.Terminal)]
        if not all(map(self._is_final, shown)):
            return None
        if not call.is_finished:
            self._open.append(call.id)
        return iter([self._writer.tool_call(call, self._record.state)])

    # Updates that the client accepts

    def _fitting(self, updates: Iterator[Any]) -> Iterator[Any]:
        for update in updates:
            if isinstance(update, Unknown):
                # An unknown update may mean something else in the other version.
                fits = update.tag not in tags(self._version)
            else:
                needed = needs().get(update.__class__) if self._version == 1 else None
                fits = needed is None or self._capabilities.has(needed)
            if fits:
                yield update


def _in_parts(content: Sequence[v1.ContentBlock]) -> list[v1.ContentBlock]:
    """Return these blocks, with long plain text split."""
    parts: list[v1.ContentBlock] = []
    for block in content:
        if isinstance(block, v1.TextContent) and block.annotations is None and block.meta is None:
            parts += [v1.TextContent(block.text[at : at + PART]) for at in range(0, len(block.text), PART)]
        else:
            parts.append(block)
    return parts


def _writer(version: Version) -> ReplayWriter:
    if version == 1:
        return v1_dialect
    from accord.dialects import v2_dialect

    return v2_dialect


@functools.cache
def needs() -> dict[type, str]:
    """Return the updates of version 1 that need a capability of the client, each with that capability."""
    return updates_that_need(v1.SessionNotification)


@functools.cache
def tags(version: Version) -> dict[str, type[Any]]:
    """The tags of the updates that this version knows, with their classes."""
    union: Any = v1.SessionUpdate
    if version == 2:
        from accord.schema import v2

        union = v2.SessionUpdate
    node = node_of(union)
    assert isinstance(node, Tagged)
    return dict(node.variants)


# All replays of a record: a subagent's updates follow its announcement. A fork does not have the subagents of its
# source: their updates are left out.


ReplayedUpdate: TypeAlias = "tuple[str | None, Any]"
"""An update of a replay, behind the subagent that it is of; None for the session itself."""


class SessionReplay:
    """One replay of a session's record: `look` at each entry first, then `add` each, and send what it yields."""

    def __init__(self, session_id: str, version: Version, capabilities: Capabilities) -> None:
        self._session_id = session_id
        self._version: Version = version
        self._capabilities = capabilities
        self._surveys: dict[str | None, Survey] = {}
        self._replays: dict[str | None, Replay] = {}
        self._announced: list[str | None] = [None]
        """The session, and the subagents that were announced: their updates may be sent."""

    def look(self, kept: bytes) -> None:
        """Look at the next entry for the first time."""
        subagent, entry = opened(kept)
        self._surveys.setdefault(subagent, Survey()).add(entry)

    def add(self, kept: bytes) -> None:
        """Read the next entry."""
        subagent, entry = opened(kept)
        if (replay := self._replays.get(subagent)) is None:
            replay = self._replays[subagent] = Replay(self._surveys[subagent], self._version, self._capabilities)
        replay.add(read(entry))

    def now(self) -> Iterator[ReplayedUpdate]:
        """Return the updates that can no longer change."""
        yield from self._each(Replay.now)

    def rest(self) -> Iterator[ReplayedUpdate]:
        """Return the rest, after the last entry."""
        yield from self._each(Replay.rest)

    def closing(self) -> list[ReplayedUpdate]:
        """Return the updates that close what a crash has left open, after the rest."""
        return [
            (teller, update)
            for teller in self._announced
            if (replay := self._replays.get(teller)) is not None
            for update in (*replay.closing(), *ended_by_a_crash(replay.state))
            if self._is_ours(update)
        ]

    def complete(self) -> Iterator[ReplayedUpdate]:
        """Return the update that marks the end of a replay; in version 1, the answer to `session/load` does that."""
        if self._version == 2:
            from accord.schema import v2

            yield None, v2.ReplayComplete()

    def _each(self, tell: Callable[[Replay], Iterator[Any]]) -> Iterator[ReplayedUpdate]:
        for teller in tuple(self._announced):
            yield from self._of(teller, tell)

    def _of(self, teller: str | None, tell: Callable[[Replay], Iterator[Any]]) -> Iterator[ReplayedUpdate]:
        if (replay := self._replays.get(teller)) is None:
            return
        for update in filter(self._is_ours, tell(replay)):
            yield teller, update
            subagent = getattr(update, "session_id", None)
            if subagent is not None and subagent not in self._announced:
                self._announced.append(subagent)
                yield from self._of(subagent, tell)

    def _is_ours(self, update: Any) -> bool:
        subject = getattr(update, "session_id", None)
        return subject is None or belongs_to(subject, self._session_id)
