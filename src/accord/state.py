"""`SessionState`: a session's updates folded into messages, tool calls, plans and settings.

    session/update ──▶ SessionState.add ──▶ one fold for its class ──▶ an entry of the timeline, or a setting
                                                                   └──▶ observers (`on_change`)

An update costs constant work, however long the session is: text is gathered in a buffer and becomes one string only
when it is read. What is read (`timeline`, `snapshot()`) consists of immutable values, and only values that have changed
since the last time are made again.

A *message* is the chunks with one message id; where agents send none, the chunks of one speaker that follow each other
with no other message or tool call between. An emoji that was split in two, as JavaScript agents do, is joined again,
also across chunks; a half whose other half never comes stays as it is.

A *tool call* and its updates become one `ToolCallState`: a field left out stays as it was, a list replaces the one
before. The same fold serves the client (`RemoteSession.state`), its services and the agent (`session.history`).

An agent may send updates without end, so the state has a `limit` in bytes. Past it the oldest half is dropped: the
timeline's first entries, then notices and the like. A message that alone is larger is dropped as a whole, and its next
chunk begins a new one. `forgotten` counts the dropped entries. Sizes are checked only when as many bytes have come as
may be kept, so that the limit costs an update nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET

from accord.schema import v1
from accord.schema.base import Json, Unknown
from accord.sizes import WEIGHT, oldest_beyond, size_of
from accord.subagents import SessionMessageState, Subagent
from accord.text import GrowingContent

Speaker = Literal["user", "agent", "thought"]
"""Who a message is from; a thought is what the agent thinks aloud."""

Status = Literal["pending", "in_progress", "completed", "failed", "cancelled"]
"""The status of a tool call; `cancelled` is ours, for a call that was unfinished when its turn was cancelled."""


class Message(msgspec.Struct, frozen=True):
    """A message as far as it has come."""

    speaker: Speaker
    """Who it is from."""
    content: tuple[v1.ContentBlock, ...]
    """Its blocks; adjacent chunks of plain text are one block."""
    id: v1.MessageId | None = None
    """Its id, from agents that send one."""
    refused: bool = False
    """Whether its turn was refused; the agent then continues the conversation without it."""

    @property
    def text(self) -> str:
        """Its text; images and other blocks are left out."""
        return "".join(block.text for block in self.content if isinstance(block, v1.TextContent))


class ToolCallState(msgspec.Struct, frozen=True):
    """A tool call after all of its updates so far."""

    id: v1.ToolCallId
    title: str = ""
    kind: v1.ToolKind = "other"
    status: Status = "pending"
    content: Sequence[v1.ToolCallContent] = ()
    locations: Sequence[v1.ToolCallLocation] = ()
    raw_input: Json = None
    raw_output: Json = None
    name: str | None = None
    meta: dict[str, Json] | None = None
    refused: bool = False
    """Whether its turn was refused, like a message's."""

    @property
    def is_finished(self) -> bool:
        """Whether the call is completed, failed or cancelled."""
        return self.status in ("completed", "failed", "cancelled")

    @property
    def diffs(self) -> list[v1.Diff]:
        """The changes of files in its content."""
        return [part for part in self.content if isinstance(part, v1.Diff)]

    @property
    def text(self) -> str:
        """The text in its content, joined by newlines; diffs, terminals, images and the like are left out."""
        blocks = [part.content for part in self.content if isinstance(part, v1.Content)]
        return "\n".join(block.text for block in blocks if isinstance(block, v1.TextContent))

    def updated(self, update: v1.ToolCallUpdate | v1.ToolCall) -> ToolCallState:
        """This tool call after an update; fields that the update leaves out stay as they were."""
        return ToolCallState(
            self.id,
            self.title if update.title is None else update.title,
            update.kind or self.kind,
            update.status or self.status,
            self.content if update.content is None else update.content,
            self.locations if update.locations is None else update.locations,
            self.raw_input if update.raw_input is None else update.raw_input,
            self.raw_output if update.raw_output is None else update.raw_output,
            update.name or self.name,
            _merged(self.meta, update.meta) if update.meta else self.meta,
            self.refused,
        )


MOST_META = 1_000
"""Members that the `_meta` of a tool call keeps, the newest of all its updates. Each update costs a copy of them."""


def _merged(kept: dict[str, Json] | None, new: dict[str, Json]) -> dict[str, Json]:
    if not kept:
        return new
    merged = {**kept, **new}
    if len(merged) > MOST_META:
        for name in list(merged)[:-MOST_META]:
            del merged[name]
    return merged


Entry: TypeAlias = Message | ToolCallState
"""What stands in a session's timeline."""

ConfigOption: TypeAlias = v1.SessionConfigSelect | v1.SessionConfigBoolean
"""A config option of a known type."""

Observer: TypeAlias = Callable[[v1.SessionUpdate | v1.ToolCallUpdate | None], object]
"""Called after a change, with the update that made it; None for a change that the client itself made."""


class Snapshot(msgspec.Struct, frozen=True):
    """A session's state at one moment; it never changes."""

    timeline: tuple[Entry, ...]
    plan: tuple[v1.PlanEntry, ...]
    plans: dict[v1.PlanId, v1.PlanUpdateContent]
    commands: tuple[v1.AvailableCommand, ...]
    modes: tuple[v1.SessionMode, ...]
    mode: v1.SessionModeId | None
    models: tuple[v1.ModelInfo, ...]
    model: v1.ModelId | None
    config: tuple[ConfigOption, ...]
    usage: v1.UsageUpdate | None
    title: str | None
    updated_at: str | None
    notices: tuple[v1.Notice, ...]
    unknown: tuple[Unknown, ...]
    forgotten: int = 0
    """How many older entries were dropped from the timeline because of the limit."""


class Compaction(GrowingContent):
    """A compaction of the agent's context."""

    __slots__ = ("error", "id", "status")

    def __init__(self, compaction_id: v1.CompactionId) -> None:
        super().__init__()
        self.id = compaction_id
        self.status: v1.CompactionStatus = "in_progress"
        self.error: str | None = None

    @property
    def summary(self) -> tuple[v1.ContentBlock, ...]:
        """The summary that replaces the compacted part, as far as it has come."""
        return self.read()


class _Growing(GrowingContent):
    """A message that may still grow."""

    __slots__ = ("id", "is_ours", "is_refused", "place", "speaker")

    def __init__(self, speaker: Speaker, message_id: v1.MessageId | None, place: int, *, is_ours: bool) -> None:
        super().__init__()
        self.speaker: Speaker = speaker
        self.id = message_id
        self.place = place
        self.is_ours = is_ours
        """Whether it is a prompt as it was sent, not yet repeated by the agent."""
        self.is_refused = False

    def message(self) -> Message:
        return Message(self.speaker, self.read(), self.id, self.is_refused)


def choices_of(option: v1.SessionConfigSelect) -> list[v1.SessionConfigSelectOption]:
    """The values of a config option, those of all groups together."""
    groups = ([it] if isinstance(it, v1.SessionConfigSelectOption) else it.options for it in option.options)
    return [value for group in groups for value in group]


class SessionState:
    """A session's updates folded into messages, tool calls, plans and settings.

    >>> state = SessionState()
    >>> state.add(v1.AgentMessageChunk.of("Hel"))
    >>> state.add(v1.AgentMessageChunk.of("lo"))
    >>> [message.text for message in state.messages]
    ['Hello']
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        """The most bytes that are kept; None if the input is bounded already, as from a store."""
        self._observers: list[Observer] = []
        self.clear()

    def clear(self) -> None:
        """Forget everything, before a replay from the start; observers stay."""
        self.tool_calls: dict[v1.ToolCallId, ToolCallState] = {}
        """Every tool call of the session, by its id."""
        self.plan: list[v1.PlanEntry] = []
        """The steps of the current plan."""
        self.plans: dict[v1.PlanId, v1.PlanUpdateContent] = {}
        """The plans that have an id, as they are now."""
        self.commands: list[v1.AvailableCommand] = []
        """The slash commands that the agent offers."""
        self.modes: list[v1.SessionMode] = []
        """The modes in which the agent can work, whether it offers them as a config option or as modes."""
        self.mode: v1.SessionModeId | None = None
        """The id of the current mode."""
        self.models: list[v1.ModelInfo] = []
        """The models that the agent offers, whether as a config option or, as older agents do, as `models`."""
        self.model: v1.ModelId | None = None
        """The id of the current model."""
        self.config: list[ConfigOption] = []
        """The config options of known types, in the agent's order."""
        self.unknown_config: list[Unknown] = []
        """Config options of types that this version of Accord does not know, as they came."""
        self.usage: v1.UsageUpdate | None = None
        """How much of the context is used, as last reported."""
        self.title: str | None = None
        """The session's title."""
        self.meta: dict[str, Json] | None = None
        """The `_meta` of the session's information, as last reported."""
        self.updated_at: str | None = None
        """When the session last changed, as the agent reports it."""
        self.notices: list[v1.Notice] = []
        """Notices to the user."""
        self.compactions: dict[v1.CompactionId, Compaction] = {}
        """Compactions of the context, by their ids."""
        self.subagents: dict[v1.SessionId, Subagent] = {}
        """The session's subagents, by the ids of their sessions."""
        self.session_messages: dict[v1.MessageId, SessionMessageState] = {}
        """Messages between this session and others, by their ids in this session."""
        self.unknown: list[Unknown] = []
        """Updates of kinds that this version of Accord does not know, as they came."""
        self.forgotten = 0
        """How many of the oldest entries were dropped from the timeline because of the limit."""
        self._room = self._limit or 0
        """Bytes that may still come before the sizes are checked."""
        self._growing: list[_Growing | v1.ToolCallId] = []
        self._read: list[Entry] = []
        self._changed: set[int] = set()
        self._timeline: tuple[Entry, ...] = ()
        self._turn_begins = 0
        """The place of the latest prompt."""
        self._last: _Growing | None = None
        """The message that the next chunk without an id may continue."""
        self._by_id: dict[tuple[Speaker, v1.MessageId], _Growing] = {}
        self._places: dict[v1.ToolCallId, int] = {}
        self._unfinished: dict[v1.ToolCallId, None] = {}

    def add(self, update: v1.SessionUpdate | v1.ToolCallUpdate, size: int = 0) -> None:
        """Fold in the next update; `size` is its length in bytes, which counts towards the limit."""
        fold = self._folds.get(update.__class__)
        if fold is not None:
            fold(self, update)
        else:
            self.unknown.append(cast("Unknown", update))
        if self._limit is not None:
            self._room -= size + WEIGHT
            if self._room < 0:
                self._forget(self._limit)
        if self._observers:
            self._tell(update)

    def add_all(self, updates: Iterable[v1.SessionUpdate]) -> None:
        """Fold in several updates."""
        for update in updates:
            self.add(update)

    def add_prompt(self, content: Sequence[v1.ContentBlock]) -> None:
        """Add a prompt of the user. If the agent repeats it as updates, they replace it.

        A message id that was used before is a new message from now on: some agents start counting again in each turn.
        """
        self._by_id.clear()
        self._turn_begins = len(self)
        message = self._begin_message("user", None, is_ours=True)
        for block in content:
            message.add(block)
        self._tell(None)

    def end_turn(self, *, refused: bool = False) -> None:
        """End the turn: the next chunk begins a new message. A refused turn is marked from its prompt on."""
        self._last = None
        if not refused:
            return
        # schema, StopReason: the next prompt does not include a refused one and what followed; clients show that.
        for place in range(max(self._turn_begins, self.forgotten), len(self)):
            entry = self._growing[place - self.forgotten]
            if isinstance(entry, _Growing):
                entry.is_refused = True
            else:
                self.tool_calls[entry] = msgspec.structs.replace(self.tool_calls[entry], refused=True)
            self._changed.add(place)
        self._tell(None)

    def cancel_unfinished(self) -> None:
        """Mark unfinished tool calls as `cancelled`, because the turn was; later updates may still change them."""
        for tool_call_id in list(self._unfinished):
            cancelled = msgspec.structs.replace(self.tool_calls[tool_call_id], status="cancelled")
            self._put_tool_call(cancelled)
        self._tell(None)

    def set_modes(self, modes: v1.SessionModeState | None) -> None:
        """Set the modes that the session was opened with."""
        if modes is not None:
            self.modes, self.mode = modes.available_modes, modes.current_mode_id
            self._tell(None)

    def set_models(self, models: v1.SessionModelState | None) -> None:
        """Set the models that the session was opened with; those of a config option count more."""
        if models is not None and self.model_option is None:
            self.models, self.model = models.available_models, models.current_model_id
            self._tell(None)

    def set_config(self, options: Sequence[v1.SessionConfigOption] | None) -> None:
        """Set the config options that the session was opened with, or that the agent returned after a change."""
        if options is not None:
            self._take_config(options)
            self._tell(None)

    def set_mode(self, mode: v1.SessionModeId) -> None:
        """Set the current mode."""
        self.mode = mode
        self._tell(None)

    def set_model(self, model: v1.ModelId) -> None:
        """Set the current model."""
        self.model = model
        self._tell(None)

    def option(self, config_id: str) -> ConfigOption | None:
        """The config option with this id, as it is now; None if there is none of a known type."""
        return next((option for option in self.config if option.id == config_id), None)

    @property
    def mode_option(self) -> v1.SessionConfigSelect | None:
        """The config option for the mode; None if the agent has none, as older agents have only modes."""
        return self._option_of("mode")

    @property
    def model_option(self) -> v1.SessionConfigSelect | None:
        """The config option for the model; None if the agent has none, as older agents have only `models`."""
        return self._option_of("model")

    def _option_of(self, category: str) -> v1.SessionConfigSelect | None:
        options = (it for it in self.config if isinstance(it, v1.SessionConfigSelect))
        return next((it for it in options if it.category == category), None)

    # Reading

    def __len__(self) -> int:
        """The number of entries in the timeline, dropped ones included."""
        return self.forgotten + len(self._growing)

    @property
    def timeline(self) -> tuple[Entry, ...]:
        """Messages and tool calls in the order in which they began."""
        if self._changed:
            for place in self._changed:
                self._read[place - self.forgotten] = self._entry(place)
            self._changed.clear()
            self._timeline = tuple(self._read)
        return self._timeline

    def between(self, start: int, end: int | None = None) -> list[Entry]:
        """The entries from position `start` up to `end`, without those that were dropped."""
        return [self._entry(place) for place in range(max(start, self.forgotten), len(self) if end is None else end)]

    @property
    def messages(self) -> list[Message]:
        """The messages of the timeline, prompts and thoughts included."""
        return [entry for entry in self.timeline if isinstance(entry, Message)]

    def snapshot(self) -> Snapshot:
        """The state as it is now, in a value that never changes."""
        return Snapshot(
            self.timeline,
            tuple(self.plan),
            dict(self.plans),
            tuple(self.commands),
            tuple(self.modes),
            self.mode,
            tuple(self.models),
            self.model,
            tuple(self.config),
            self.usage,
            self.title,
            self.updated_at,
            tuple(self.notices),
            tuple(self.unknown),
            self.forgotten,
        )

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change, with the update that made it, or None for a change that we made.

        Call the result to stop it. The observer runs where updates arrive, so it must be quick.
        """
        self._observers.append(observer)

        def end() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return end

    def _tell(self, update: v1.SessionUpdate | v1.ToolCallUpdate | None) -> None:
        for observer in list(self._observers):
            observer(update)

    # The limit

    def _forget(self, limit: int) -> None:
        """Keep only the newest entries, at most half of the limit; also of notices and other lists that may grow."""
        for some in self.notices, self.unknown:
            del some[: oldest_beyond([size_of(it) for it in some], limit // 8)]
        for named in self.plans, self.subagents:
            for key in list(named)[: oldest_beyond([size_of(it) for it in named.values()], limit // 8)]:
                del named[key]  # type: ignore[arg-type]
        compactions = list(self.compactions)
        for key in compactions[: oldest_beyond([WEIGHT + it.size for it in self.compactions.values()], limit // 8)]:
            del self.compactions[key]
        weights = [it.weight for it in self.session_messages.values()]
        for message_id in list(self.session_messages)[: oldest_beyond(weights, limit // 8)]:
            del self.session_messages[message_id]
        sizes = [self._size(entry) for entry in self._growing]
        if sum(sizes) > limit // 2:
            self._forget_entries(oldest_beyond(sizes, limit // 4))
        self._room = limit // 4

    def _size(self, entry: _Growing | v1.ToolCallId) -> int:
        return WEIGHT + entry.size if isinstance(entry, _Growing) else size_of(self.tool_calls[entry])

    def _forget_entries(self, count: int) -> None:
        for entry in self._growing[:count]:
            if not isinstance(entry, _Growing):
                del self.tool_calls[entry], self._places[entry]
                self._unfinished.pop(entry, None)
        del self._growing[:count], self._read[:count]
        self.forgotten += count
        self._changed = {place for place in self._changed if place >= self.forgotten}
        self._by_id = {key: it for key, it in self._by_id.items() if it.place >= self.forgotten}
        if self._last is not None and self._last.place < self.forgotten:
            self._last = None
        for place in self._changed:
            self._read[place - self.forgotten] = self._entry(place)
        self._changed.clear()
        self._timeline = tuple(self._read)

    # The timeline

    def _entry(self, place: int) -> Entry:
        growing = self._growing[place - self.forgotten]
        return growing.message() if isinstance(growing, _Growing) else self.tool_calls[growing]

    def _begin(self, entry: _Growing | v1.ToolCallId) -> None:
        self._changed.add(len(self))
        self._growing.append(entry)
        self._read.append(_NOTHING_YET)

    def _begin_message(self, speaker: Speaker, message_id: v1.MessageId | None, *, is_ours: bool = False) -> _Growing:
        message = _Growing(speaker, message_id, len(self), is_ours=is_ours)
        self._begin(message)
        self._last = message
        return message

    def _message(self, speaker: Speaker, message_id: v1.MessageId | None) -> _Growing:
        """The message that a chunk belongs to."""
        last = self._last
        if last is not None and last.speaker == speaker and last.is_ours:
            last.replace(())
            last.id, last.is_ours = message_id, False
            if message_id is not None:
                self._by_id[speaker, message_id] = last
            return last
        if message_id is None:
            return last if last is not None and last.speaker == speaker else self._begin_message(speaker, None)
        known = self._by_id.get((speaker, message_id))
        if known is None:
            known = self._by_id[speaker, message_id] = self._begin_message(speaker, message_id)
        return known

    def _add_chunk(self, chunk: v1.ContentChunk) -> None:
        message, speaker = self._last, _SPEAKERS[chunk.__class__]
        if message is None or message.id != chunk.message_id or message.speaker != speaker or message.is_ours:
            message = self._message(speaker, chunk.message_id)
        content, run = chunk.content, message.run
        if run is None or not isinstance(content, v1.TextContent) or content.annotations or content.meta:
            message.add(content)
        else:
            run.add(content.text)
        self._changed.add(message.place)

    def _add_tool_call(self, call: v1.ToolCall) -> None:
        self._put_tool_call(ToolCallState(call.tool_call_id).updated(call))

    def _add_tool_call_update(self, update: v1.ToolCallUpdate) -> None:
        known = self.tool_calls.get(update.tool_call_id) or ToolCallState(update.tool_call_id)
        self._put_tool_call(known.updated(update))

    def _put_tool_call(self, call: ToolCallState) -> None:
        place = self._places.get(call.id)
        if place is None:
            self._places[call.id] = len(self)
            self._begin(call.id)
            self._last = None
        else:
            self._changed.add(place)
        self.tool_calls[call.id] = call
        if call.is_finished:
            self._unfinished.pop(call.id, None)
        else:
            self._unfinished[call.id] = None

    # Settings and the rest

    def _add_plan(self, update: v1.Plan) -> None:
        self.plan = update.entries

    def _add_plan_update(self, update: v1.PlanUpdate) -> None:
        if isinstance(update.plan, Unknown):
            plan_id = v1.PlanId(str(update.plan.raw.get("planId", "")))
        else:
            plan_id = update.plan.plan_id
        self.plans[plan_id] = update.plan

    def _remove_plan(self, update: v1.PlanRemoved) -> None:
        self.plans.pop(update.plan_id, None)

    def _add_commands(self, update: v1.AvailableCommandsUpdate) -> None:
        self.commands = update.available_commands

    def _add_mode(self, update: v1.CurrentModeUpdate) -> None:
        if self.mode_option is None:
            self.mode = update.current_mode_id

    def _add_config(self, update: v1.ConfigOptionUpdate) -> None:
        self._take_config(update.config_options)

    def _take_config(self, options: Sequence[v1.SessionConfigOption]) -> None:
        self.config = [option for option in options if not isinstance(option, Unknown)]
        self.unknown_config = [option for option in options if isinstance(option, Unknown)]
        if (option := self.mode_option) is not None:
            # session-config-options, Relationship to Session Modes: the option counts, and modes are its older form.
            self.mode = v1.SessionModeId(option.current_value)
            self.modes = [
                v1.SessionMode(v1.SessionModeId(it.value), it.name, it.description) for it in choices_of(option)
            ]
        if (option := self.model_option) is not None:
            self.model = v1.ModelId(option.current_value)
            self.models = [v1.ModelInfo(v1.ModelId(it.value), it.name, it.description) for it in choices_of(option)]

    def _add_info(self, update: v1.SessionInfoUpdate) -> None:
        if update.title is not UNSET:
            self.title = update.title
        if update.updated_at is not UNSET:
            self.updated_at = update.updated_at
        if update.meta is not UNSET:
            self.meta = update.meta

    def _add_usage(self, update: v1.UsageUpdate) -> None:
        self.usage = update

    def _add_notice(self, update: v1.Notice) -> None:
        self.notices.append(update)

    def _add_compaction(self, update: v1.CompactionUpdate) -> None:
        known = self._compaction(update.compaction_id)
        known.status = update.status
        if update.error is not UNSET:
            known.error = update.error
        if update.summary is not UNSET:
            known.replace(update.summary or ())

    def _add_compaction_chunk(self, update: v1.CompactionSummaryChunk) -> None:
        self._compaction(update.compaction_id).add(update.content)

    def _compaction(self, compaction_id: v1.CompactionId) -> Compaction:
        known = self.compactions.get(compaction_id)
        if known is None:
            known = self.compactions[compaction_id] = Compaction(compaction_id)
        return known

    def _add_subagent(self, update: v1.SubagentUpdate) -> None:
        known = self.subagents.get(update.session_id) or Subagent(update.session_id)
        self.subagents[update.session_id] = known.updated(update)

    def _add_session_message(self, update: v1.SessionMessage) -> None:
        self._session_message(update.message_id).update(update)

    def _add_session_message_chunk(self, update: v1.SessionMessageChunk) -> None:
        self._session_message(update.message_id).add(update.content)

    def _session_message(self, message_id: v1.MessageId) -> SessionMessageState:
        known = self.session_messages.get(message_id)
        if known is None:
            known = self.session_messages[message_id] = SessionMessageState(message_id)
        return known

    _folds: ClassVar[dict[type, Callable[[SessionState, Any], None]]] = {
        v1.AgentMessageChunk: _add_chunk,
        v1.AgentThoughtChunk: _add_chunk,
        v1.UserMessageChunk: _add_chunk,
        v1.ToolCall: _add_tool_call,
        v1.ToolCallProgress: _add_tool_call_update,
        v1.ToolCallUpdate: _add_tool_call_update,
        v1.Plan: _add_plan,
        v1.PlanUpdate: _add_plan_update,
        v1.PlanRemoved: _remove_plan,
        v1.AvailableCommandsUpdate: _add_commands,
        v1.CurrentModeUpdate: _add_mode,
        v1.ConfigOptionUpdate: _add_config,
        v1.SessionInfoUpdate: _add_info,
        v1.UsageUpdate: _add_usage,
        v1.Notice: _add_notice,
        v1.CompactionUpdate: _add_compaction,
        v1.CompactionSummaryChunk: _add_compaction_chunk,
        v1.SubagentUpdate: _add_subagent,
        v1.SessionMessage: _add_session_message,
        v1.SessionMessageChunk: _add_session_message_chunk,
    }


_SPEAKERS: dict[type, Speaker] = {
    v1.AgentMessageChunk: "agent",
    v1.AgentThoughtChunk: "thought",
    v1.UserMessageChunk: "user",
}
_NOTHING_YET = Message("user", ())
