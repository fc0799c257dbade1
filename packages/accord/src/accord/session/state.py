"""`SessionState`: a session's updates folded into messages, tool calls, plans and settings.

    session/update ──▶ SessionState.add ──▶ one fold for its class ──▶ an entry of the timeline, or a setting
                                                                   └──▶ observers (`on_change`)

Updates of both versions of the protocol are handled the same way: the class selects its fold. An update creates the
thing it names or changes the fields that it contains: an omitted field stays, `null` clears it, a value replaces it.

The *timeline* has messages and tool calls in the order in which they began:

- A *message* is the chunks with one message id; if agents send none, consecutive chunks of one speaker with no other
  message or tool call between. An emoji that was split in two, as by JavaScript agents, is joined again, even across
  chunks; a half without its other half stays as it is.
- A *tool call* and its updates become one `ToolCallState`: an omitted field stays, a list replaces the previous one.
- Version 2 gives every message an id that stays valid, sends messages whole as well as in chunks, and appends to the
  content of tool calls.

Each entry has a *place*: its number in the order of the timeline, which counts dropped entries too. A chunk changes one
entry.

An update costs constant work, however long the session is: text is collected in a buffer and becomes one string only
when it is read. The results (`timeline`, `snapshot()`) consist of immutable values, and only values that have changed
since the last read are made again. The same fold serves the client (`RemoteSession.state`), its services and the agent
(`session.history`).

An agent may send updates without end, so the state has a `limit` in bytes. Past it the oldest half is dropped: the
timeline's first entries, then notices and the like. A message that alone is larger is dropped as a whole, and its next
chunk begins a new one. `forgotten` counts the dropped entries. Sizes are checked only when as many bytes have arrived
as the limit allows, so that the limit costs an update nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from accord.errors import DecodeError
from accord.schema import codec, shared_updates as updates
from accord.schema.base import JsonObject, Unknown
from accord.schema.content import ContentBlock, TextContent
from accord.schema.shared_updates import MessageId, ToolCallContent, ToolCallContentChunk, ToolCallId, ToolCallUpdate
from accord.session.values import (
    WEIGHT,
    Compaction,
    ConfigOption,
    Entry,
    GrowingContent,
    Message,
    Observer,
    ReplacementObserver,
    SessionCursor,
    SessionMessageState,
    Snapshot,
    Speaker,
    SubagentState,
    ToolCallState,
    Update,
    choices_of,
    meta_after,
    oldest_beyond,
    patched_meta,
    size_of,
)

if TYPE_CHECKING:
    from accord.session.terminal_state import TerminalState

KeyT = TypeVar("KeyT")
ObserverT = TypeVar("ObserverT")
ThingT = TypeVar("ThingT")


class GrowingMessage(GrowingContent):
    """A message that may still grow."""

    __slots__ = ("id", "is_ours", "is_refused", "meta", "place", "speaker")

    def __init__(self, speaker: Speaker, message_id: MessageId | None, *, is_ours: bool) -> None:
        super().__init__()
        self.speaker: Speaker = speaker
        self.id = message_id
        self.place = 0
        self.is_ours = is_ours
        """Whether it is a prompt as it was sent, not yet repeated by the agent."""
        self.is_refused = False
        self.meta: JsonObject | None = None

    def message(self) -> Message:
        return Message(self.speaker, self.read(), self.id, self.is_refused, self.meta)


class SessionState:
    """A session's updates folded into messages, tool calls, plans and settings.

    >>> state = SessionState()
    >>> state.add(updates.AgentMessageChunk.of("Hel"))
    >>> state.add(updates.AgentMessageChunk.of("lo"))
    >>> [message.text for message in state.messages]
    ['Hello']
    """

    # More than 30 attributes would make each of them slower without slots.
    __slots__ = (  # noqa: SIM905 - as a list, each name would take a line
        "__weakref__ _appended _by_id _calls _changed _dropped _entries _growing _last _limit _not_echoed "
        "_observers _places _read _replacement_observers _room _turn_begins _unfinished activity background "
        "commands compactions config cursors history_length last_end meta mode model models modes notices "
        "plan plan_id plans session_messages subagents suggestions terminals title unknown unknown_config "
        "updated_at usage"
    ).split()

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        """The most bytes that are kept; None if the input is limited already, as from a store."""
        self._observers: list[Observer] = []
        self._replacement_observers: list[ReplacementObserver] = []
        self.clear()

    def clear(self) -> None:
        """Forget everything, before a replay from the start; observers stay."""
        self._dropped = 0
        """How many of the oldest entries were dropped because of the limit."""
        self._calls: dict[ToolCallId, ToolCallState] = {}
        self._growing: list[GrowingMessage | ToolCallId] = []
        self._read: list[Entry] = []
        self._changed: set[int] = set()
        self._entries: tuple[Entry, ...] = ()
        self._turn_begins = 0
        """The place of the latest prompt."""
        self._last: GrowingMessage | None = None
        """The message that the next chunk without an id may continue."""
        self._by_id: dict[tuple[Speaker, MessageId], GrowingMessage] = {}
        self._places: dict[ToolCallId, int] = {}
        self._unfinished: dict[ToolCallId, None] = {}
        self._appended: dict[ToolCallId, list[ToolCallContent]] = {}
        """Content that was appended to tool calls since they were last read: it is joined on reading."""
        self._not_echoed: list[GrowingMessage] = []
        """Prompts as they were sent, whose ids are not known yet, in version 2."""
        self.plan: list[updates.PlanEntry] = []
        """The steps of the plan with steps that was updated last."""
        self.plan_id: updates.PlanId | None = None
        """The id of the plan whose steps `plan` shows; `main` for the plan of version 1, which has no id there."""
        self.plans: dict[updates.PlanId, updates.PlanUpdateContent] = {}
        """The plans in their present state; the one that was updated last is the last."""
        self.commands: list[updates.AvailableCommand | updates.Skill] = []
        """The slash commands that the agent offers, and in version 2 its skills."""
        self.modes: list[updates.SessionMode] = []
        """The modes in which the agent can work, whether it offers them as a config option or as modes."""
        self.mode: updates.SessionModeId | None = None
        """The id of the current mode."""
        self.models: list[updates.ModelInfo] = []
        """The models that the agent offers, whether as a config option or, as older agents do, as `models`."""
        self.model: updates.ModelId | None = None
        """The id of the current model."""
        self.config: list[ConfigOption] = []
        """The config options of known types, in the agent's order."""
        self.unknown_config: list[Unknown] = []
        """Config options of types that this version of Accord does not know, unchanged."""
        self.usage: updates.UsageUpdate | None = None
        """How much of the context is used, as last reported."""
        self.title: str | None = None
        """The session's title."""
        self.meta: JsonObject | None = None
        """The `_meta` of the session's information, as last reported."""
        self.updated_at: str | None = None
        """When the session last changed, as the agent reports it."""
        self.notices: list[updates.Notice] = []
        """Notices to the user."""
        self.compactions: dict[updates.CompactionId, Compaction] = {}
        """Compactions of the context, by their ids."""
        self.subagents: dict[updates.SessionId, SubagentState] = {}
        """The session's subagents, by the ids of their sessions."""
        self.session_messages: dict[updates.MessageId, SessionMessageState] = {}
        """Messages between this session and others, by their ids in this session."""
        self.cursors: dict[updates.CursorId, SessionCursor] = {}
        """Places at which the session can be forked, by their ids, in the order in which the agent announced them."""
        self.suggestions: list[updates.PromptSuggestion] = []
        """Prompts that the agent expects next, the likeliest first."""
        self.history_length: int | None = None
        """How many messages and tool calls there were at the end of a replay; None if no replay has ended."""
        self.activity: str | None = None
        """The session's activity, such as `idle` or `running`; None if the agent has not reported it, as in
        version 1.
        """
        self.background: list[updates.BackgroundWork] | None = None
        """The background work; None if the agent does not report it, as in version 1."""
        self.last_end: updates.SessionStateUpdate | None = None
        """The update that ended the latest work, with its stop reason, usage and error; None in version 1."""
        self.terminals: dict[updates.TerminalId, TerminalState] = {}
        """The terminals in which the agent runs commands, by their ids; empty in version 1."""
        self.unknown: list[Unknown] = []
        """Updates of kinds that this version of Accord does not know, unchanged."""
        self._room = self._limit or 0
        """Bytes that may still arrive before the sizes are checked."""

    def add(self, update: Update, size: int = 0) -> Sequence[updates.Update] | None:
        """Fold in the next update of either version; `size` is its length in bytes, which counts towards the limit.

        Returns the updates that readers and observers get instead of a message that was sent whole; else None.
        """
        fold = self._folds.get(update.__class__)
        shown = self._add_other(update) if fold is None else fold(self, update)
        if self._limit is not None:
            self._room -= size + WEIGHT
            if self._room < 0:
                self._forget(self._limit)
        if self._observers:
            for each in (update,) if shown is None else shown or (None,):
                self._tell(each)
        return shown

    def add_all(self, updates: Iterable[Update]) -> None:
        """Fold in several updates."""
        for update in updates:
            self.add(update)

    def _add_other(self, update: Any) -> Sequence[updates.Update] | None:
        """Fold an update of a class that only one version has, or of an unknown kind."""
        if isinstance(update, Unknown):
            meant = self._meant_by(update)
            if meant is None:
                self.unknown.append(update)
            else:
                self.add(meant)
            return None
        return self._fold(self.as_read(update) if getattr(update, "as_update", None) is not None else update)

    def _meant_by(self, update: Unknown) -> Any:
        """Return the update that an agent meant which mistook the version; None if it makes no sense there either.

        An unknown state of the session is kept, and means only that it is not idle.
        """
        if update.tag == "state_update" and isinstance(word := update.raw.get("state"), str):
            self.activity, self.background = (
                word,
                _read_or_none(update.raw.get("background"), list[updates.BackgroundWork]),
            )
            return None
        if update.tag not in ("tool_call", "plan", "current_mode_update"):
            return None
        from accord.schema import v1

        meant = _read_or_none(update.raw, v1.SessionUpdate)
        return None if isinstance(meant, Unknown) else meant

    def as_read(self, update: Any) -> Any:
        """Return the public form of an update that only version 1 has.

        A call that was unfinished when its turn was cancelled stays `cancelled` unless it completes: an agent of
        version 1 has no such word, and says `failed`.
        """
        known = self.tool_calls.get(getattr(update, "tool_call_id", updates.ToolCallId("")))
        read = update.as_update(is_known=known is not None)
        if known is None or known.status != "cancelled" or update.__struct_config__.tag == "tool_call":
            return read
        return read if read.status in (UNSET, "completed") else replace(read, status="cancelled")

    def _fold(self, update: Any) -> Sequence[updates.Update] | None:
        """Fold an update. A class of one version is folded like its public form."""
        kind = update.__class__
        if (fold := self._folds.get(kind)) is None:
            public = next(it for it in kind.__mro__ if it in self._folds)
            fold = self._folds[kind] = self._folds[public]
            if public in _SPEAKERS:
                _SPEAKERS[kind] = _SPEAKERS[public]
        return fold(self, update)

    def add_prompt(self, content: Sequence[ContentBlock]) -> int:
        """Add a prompt of the user, and return its place. If the agent repeats it as updates, they replace it.

        A message id that was used before is a new message from now on: some agents start counting again in each turn.
        """
        self._by_id.clear()
        return self._begin_prompt(content).place

    def add_prompt_copy(self, content: Sequence[ContentBlock]) -> int:
        """Add a prompt of the user before the agent has inserted it, in version 2; returns its place.

        The agent's echo replaces it: the message with the id that `name_prompt` has given to it, else the next message
        of the user. Message ids stay valid.
        """
        copy = self._begin_prompt(content)
        self._not_echoed.append(copy)
        return copy.place

    def _begin_prompt(self, content: Sequence[ContentBlock]) -> GrowingMessage:
        prompt = self._begin_message("user", None, is_ours=True)
        for block in content:
            prompt.add(block)
        self._turn_begins = prompt.place
        if self._observers:
            self._tell(None)
        return prompt

    def name_prompt(self, place: int, message_id: updates.MessageId) -> None:
        """Assign the id in the agent's answer to the prompt at this place, unless an echo has done that."""
        copy = self._copy_at(place)
        if copy is not None and ("user", message_id) not in self._by_id:
            self._not_echoed.remove(copy)
            copy.id = message_id
            self._by_id["user", message_id] = copy
            self._changed.add(place)
        if self._observers:
            self._tell(None)

    def _copy_at(self, place: int) -> GrowingMessage | None:
        """The prompt at this place, if it was sent and its echo has not come."""
        for copy in self._not_echoed:
            if copy.place == place:
                return copy
        return None

    def drop_prompt(self, place: int) -> None:
        """Mark the prompt at this place as refused: the agent's answer was that it will not insert it."""
        copy = self._copy_at(place)
        if copy is not None:
            self._not_echoed.remove(copy)
            self.refuse(place, place + 1)
        else:
            self._tell(None)

    def refuse(self, start: int, end: int | None = None) -> None:
        """Mark the entries from position `start` up to `end` as refused: the agent continues without them."""
        # schema, StopReason: the next prompt does not include a refused one and its turn; clients show that.
        for place in range(max(start, self._dropped), len(self) if end is None else end):
            entry = self._growing[place - self._dropped]
            if isinstance(entry, GrowingMessage):
                entry.is_refused = True
            else:
                self._calls[entry] = replace(self._calls[entry], refused=True)
            self._changed.add(place)
        self._tell(None)

    def end_turn(self, *, refused: bool = False) -> None:
        """End the turn: the next chunk begins a new message. A refused turn is marked from its prompt on."""
        self._last = None
        if refused:
            self.refuse(self._turn_begins)

    def cancel_unfinished(self) -> None:
        """Mark unfinished tool calls as `cancelled` after their turn was. An agent may still complete them.

        Tool calls in the background stay as they are: they outlive their turn.
        """
        if self._appended:
            self._join_appended()
        spared = {getattr(work, "tool_call_id", None) for work in self.background or ()}
        for tool_call_id in [it for it in self._unfinished if it not in spared]:
            self._put_tool_call(replace(self._calls[tool_call_id], status="cancelled"))
        self._tell(None)

    def set_modes(self, modes: Any) -> None:
        """Set the modes that the session was opened with."""
        if modes is not None:
            self.modes, self.mode = modes.available_modes, modes.current_mode_id
            self._tell(None)

    def set_models(self, models: Any) -> None:
        """Set the models that the session was opened with; those of a config option take precedence."""
        if models is not None and self.model_option is None:
            self.models, self.model = models.available_models, models.current_model_id
            self._tell(None)

    def set_config(self, options: Sequence[updates.SessionConfigOption] | None) -> None:
        """Set the config options that the session was opened with, or that the agent returned after a change."""
        if options is not None:
            self._take_config(options)
            self._tell(None)

    def set_mode(self, mode: updates.SessionModeId) -> None:
        """Set the current mode."""
        self.mode = mode
        self._tell(None)

    def set_model(self, model: updates.ModelId) -> None:
        """Set the current model."""
        self.model = model
        self._tell(None)

    def option(self, config_id: str) -> ConfigOption | None:
        """Return the config option with this id; None if the id or the option's type is unknown."""
        return next((option for option in self.config if option.config_id == config_id), None)

    @property
    def mode_option(self) -> updates.SessionConfigSelect | None:
        """The config option for the mode; None if the agent has none, as older agents have only modes."""
        return self._option_of("mode")

    @property
    def model_option(self) -> updates.SessionConfigSelect | None:
        """The config option for the model; None if the agent has none, as older agents have only `models`."""
        return self._option_of("model")

    def _option_of(self, category: str) -> updates.SessionConfigSelect | None:
        options = (it for it in self.config if isinstance(it, updates.SessionConfigSelect))
        return next((it for it in options if it.category == category), None)

    # Reading

    def __len__(self) -> int:
        """The number of entries in the timeline, dropped ones included."""
        return self._dropped + len(self._growing)

    @property
    def timeline(self) -> tuple[Entry, ...]:
        """Messages and tool calls in the order in which they began."""
        if self._appended:
            self._join_appended()
        if self._changed:
            for place in self._changed:
                self._read[place - self._dropped] = self._entry(place)
            self._changed.clear()
            self._entries = tuple(self._read)
        return self._entries

    @property
    def tool_calls(self) -> dict[updates.ToolCallId, ToolCallState]:
        """Every tool call of the session, by its id."""
        if self._appended:
            self._join_appended()
        return self._calls

    @property
    def forgotten(self) -> int:
        """How many of the oldest entries were dropped from the timeline because of the limit."""
        return self._dropped

    def between(self, start: int, end: int | None = None) -> list[Entry]:
        """Return the entries from position `start` up to `end`, without those that were dropped."""
        if self._appended:
            self._join_appended()
        return [self._entry(place) for place in range(max(start, self._dropped), len(self) if end is None else end)]

    def _entry(self, place: int) -> Entry:
        growing = self._growing[place - self._dropped]
        return growing.message() if isinstance(growing, GrowingMessage) else self._calls[growing]

    @property
    def messages(self) -> list[Message]:
        """The messages of the timeline, prompts and thoughts included."""
        return [entry for entry in self.timeline if isinstance(entry, Message)]

    def snapshot(self) -> Snapshot:
        """Return the present state, as a value that never changes."""
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
            self._dropped,
            self.activity,
            None if self.background is None else tuple(self.background),
        )

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change, with the update that made it, or None for a change that we made.

        Call the result to stop it. The observer runs where updates arrive, so it must be fast.
        """
        return _observing(self._observers, observer)

    def _tell(self, update: Update | None) -> None:
        for observer in list(self._observers):
            observer(update)

    def on_replacement(self, observer: ReplacementObserver) -> Callable[[], None]:
        """Call `observer` with a message before and after an update has replaced or cleared its content.

        Only agents that speak version 2 replace messages. Text that is added at its end does not count. Call the result
        to stop it. The observer runs where updates arrive, before those of `on_change`, so it must be fast.
        """
        return _observing(self._replacement_observers, observer)

    def forget(self, count: int) -> None:
        """Drop this many of the oldest entries of the timeline."""
        for entry in self._growing[:count]:
            if not isinstance(entry, GrowingMessage):
                del self._calls[entry], self._places[entry]
                self._unfinished.pop(entry, None)
        del self._growing[:count], self._read[:count]
        self._dropped += count
        self._changed = {place for place in self._changed if place >= self._dropped}
        self._by_id = {key: it for key, it in self._by_id.items() if it.place >= self._dropped}
        self._not_echoed = [it for it in self._not_echoed if it.place >= self._dropped]
        if self._last is not None and self._last.place < self._dropped:
            self._last = None
        self._entries = tuple(self._read)

    def drain(self, place: int, least: int) -> tuple[ContentBlock, ...]:
        """Remove and return the content of the message at position `place`, if it is at least this many bytes."""
        message = self._growing[place - self._dropped]
        if not isinstance(message, GrowingMessage) or message.size < least:
            return ()
        content = message.read()
        message.replace(())
        return content

    # The timeline

    def _begin(self, entry: GrowingMessage | ToolCallId) -> int:
        """Add an entry at the end, and return its place."""
        place = self._dropped + len(self._growing)
        self._changed.add(place)
        self._growing.append(entry)
        self._read.append(_NOTHING_YET)
        return place

    def _begin_message(
        self, speaker: Speaker, message_id: MessageId | None, *, is_ours: bool = False
    ) -> GrowingMessage:
        self._last = message = GrowingMessage(speaker, message_id, is_ours=is_ours)
        message.place = self._begin(message)
        return message

    def _message(self, speaker: Speaker, chunk: updates.ContentChunk) -> GrowingMessage:
        """The message that a chunk belongs to; the content of a sent prompt is removed."""
        last, message_id = self._last, chunk.message_id
        if chunk.__class__ not in _PUBLIC_CHUNKS and message_id is not None:  # version 2, where ids stay valid
            message = self._message_with_id(speaker, message_id)
            if message.is_ours:
                self._replace(message, ())
            return message
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

    def _add_chunk(self, chunk: updates.ContentChunk) -> None:
        """Add a chunk of a message."""
        message, speaker = self._last, _SPEAKERS[chunk.__class__]
        if message is None or message.id != chunk.message_id or message.speaker != speaker or message.is_ours:
            message = self._message(speaker, chunk)
        content, run = chunk.content, message.run
        if run is None or not isinstance(content, TextContent) or content.annotations or content.meta:
            message.add(content)
        else:
            run.add(content.text)
        self._changed.add(message.place)

    def _update_tool_call(self, update: ToolCallUpdate) -> None:
        """Change a tool call; one that is unknown begins now."""
        known = self.tool_calls.get(update.tool_call_id) or ToolCallState(update.tool_call_id)
        self._put_tool_call(known.updated(update))

    def _put_tool_call(self, call: ToolCallState) -> None:
        """Put a tool call at the place of the one with its id, or at the end."""
        place = self._places.get(call.id)
        if place is None:
            self._places[call.id] = self._begin(call.id)
            self._last = None
        else:
            self._changed.add(place)
        self._calls[call.id] = call
        if call.is_finished:
            self._unfinished.pop(call.id, None)
        else:
            self._unfinished[call.id] = None

    def _message_with_id(self, speaker: Speaker, message_id: MessageId) -> GrowingMessage:
        """The message with this id, which begins now if it is unknown; a prompt that was sent, if this is its echo."""
        known = self._by_id.get((speaker, message_id))
        if known is None:
            if speaker == "user" and self._not_echoed:
                known = self._not_echoed.pop(0)
                known.id = message_id
            else:
                known = self._begin_message(speaker, message_id)
            self._by_id[speaker, message_id] = known
        self._last = known
        self._changed.add(known.place)
        return known

    def _put_message(
        self, update: updates.UserMessage | updates.AgentMessage | updates.AgentThought
    ) -> Sequence[updates.Update] | None:
        """Change a message as a whole; returns it for those who read updates one by one, in chunks as in version 1.

        | the whole message | a reader gets |
        |---|---|
        | is new | a chunk for each of its blocks |
        | continues what was there | a chunk with the rest; nothing if there is none |
        | replaces what was there, or clears it | the update itself: what was read no longer holds |
        """
        speaker, message_id = _SPEAKERS[update.__class__], update.message_id
        message = self._message_with_id(speaker, message_id)
        message.meta = patched_meta(message.meta, update.meta)
        if update.content is UNSET:
            return None
        before, content = () if message.is_ours else message.read(), update.content or ()
        self._replace(message, content)
        if not content:
            return None
        if before:
            if before == tuple(content):
                return ()
            if any(not isinstance(block, TextContent) for block in (*before, *content)):
                return None
            old, new = _text_of(before), _text_of(content)
            if not new.startswith(old):
                return None
            content = [TextContent(new[len(old) :])] if new != old else ()
        return [_CHUNKS[speaker](block, message_id, meta=update.meta or None) for block in content]

    def _replace(self, message: GrowingMessage, content: Sequence[ContentBlock]) -> None:
        """Replace a message's content."""
        before = message.read() if self._replacement_observers else None
        message.is_ours = False
        message.replace(content)
        if before and before != tuple(content):
            after = message.message()
            for observer in list(self._replacement_observers):
                observer(replace(after, content=before), after)

    def _append_content(self, chunk: ToolCallContentChunk) -> None:
        """Append an item to the content of a tool call; one that is unknown begins now."""
        tool_call_id = chunk.tool_call_id
        if tool_call_id not in self._calls:
            self._put_tool_call(ToolCallState(tool_call_id))
        self._appended.setdefault(tool_call_id, []).append(chunk.content)
        self._changed.add(self._places[tool_call_id])

    def _join_appended(self) -> None:
        for tool_call_id, items in self._appended.items():
            call = self._calls[tool_call_id]
            self._calls[tool_call_id] = replace(call, content=[*call.content, *items])
        self._appended.clear()

    # The limit

    def _forget(self, limit: int) -> None:
        """Keep only the newest entries, at most half of the limit; also of notices and other growing lists."""
        for some in self.notices, self.unknown:
            del some[: oldest_beyond([size_of(it) for it in some], limit // 8)]
        for terminal in self.terminals.values():
            terminal.shrink(limit // 16)
        tables: Any = (self.plans, self.subagents, self.compactions, self.session_messages, self.terminals)
        for named in tables:
            weights = [getattr(it, "weight", None) or size_of(it) for it in named.values()]
            for key in list(named)[: oldest_beyond(weights, limit // 8)]:
                del named[key]
        if self._appended:
            self._join_appended()
        entries = (it if isinstance(it, GrowingMessage) else self._calls[it] for it in self._growing)
        sizes = [WEIGHT + it.size if isinstance(it, GrowingMessage) else size_of(it) for it in entries]
        if sum(sizes) > limit // 2:
            self.forget(oldest_beyond(sizes, limit // 4))
        self._room = limit // 4

    # Settings and the rest

    def _add_plan(self, update: updates.PlanUpdate) -> None:
        plan = update.plan
        plan_id = plan_id_of(plan)
        self.plans.pop(plan_id, None)
        self.plans[plan_id] = plan
        self.show_latest_plan()

    def _remove_plan(self, update: updates.PlanRemoved) -> None:
        self.plans.pop(update.plan_id, None)
        self.show_latest_plan()

    def show_latest_plan(self) -> None:
        """Let `plan` be the steps of the plan that was updated last."""
        latest = next((plan for plan in reversed(self.plans.values()) if isinstance(plan, updates.PlanItems)), None)
        self.plan, self.plan_id = ([], None) if latest is None else (latest.entries, latest.plan_id)

    def _add_commands(self, update: updates.AvailableCommandsUpdate) -> None:
        self.commands = [it for it in update.available_commands if not isinstance(it, Unknown)]

    def _add_mode(self, update: updates.CurrentModeUpdate) -> None:
        if self.mode_option is None:
            self.mode = update.current_mode_id

    def _add_config(self, update: updates.ConfigOptionUpdate) -> None:
        self._take_config(update.config_options)

    def _take_config(self, options: Sequence[updates.SessionConfigOption]) -> None:
        self.config = [option for option in options if not isinstance(option, Unknown)]
        self.unknown_config = [option for option in options if isinstance(option, Unknown)]
        if (option := self.mode_option) is not None:
            # session-config-options, Relationship to Session Modes: the option counts, and modes are its older form.
            self.mode = updates.SessionModeId(option.current_value)
            self.modes = [
                updates.SessionMode(updates.SessionModeId(it.value), it.name, it.description)
                for it in choices_of(option)
            ]
        if (option := self.model_option) is not None:
            self.model = updates.ModelId(option.current_value)
            self.models = [
                updates.ModelInfo(updates.ModelId(it.value), it.name, it.description) for it in choices_of(option)
            ]

    def _add_info(self, update: updates.SessionInfoUpdate) -> None:
        if update.title is not UNSET:
            self.title = update.title
        if update.updated_at is not UNSET:
            self.updated_at = update.updated_at
        self.meta = meta_after(self.meta, update)

    def _add_usage(self, update: updates.UsageUpdate) -> None:
        if update.cost is UNSET:
            update = replace(update, cost=None if self.usage is None else self.usage.cost)
        self.usage = update

    def _add_state(self, update: updates.SessionStateUpdate) -> None:
        self.activity, self.background = update.state, update.background
        if update.state == "idle" and update.stop_reason is not None:
            self.last_end = update

    def _end_replay(self, _: updates.ReplayComplete) -> None:
        self.history_length = len(self)

    def _add_notice(self, update: updates.Notice) -> None:
        self.notices.append(update)

    def _add_compaction(self, update: updates.CompactionUpdate) -> None:
        known = self._compaction(update.compaction_id)
        if update.status is not UNSET:
            known.status = update.status or "in_progress"
        if update.error is not UNSET:
            known.error = update.error
        if update.summary is not UNSET:
            known.replace(update.summary or ())
        known.meta = meta_after(known.meta, update)

    def _add_compaction_chunk(self, update: updates.CompactionSummaryChunk) -> None:
        self._compaction(update.compaction_id).add(update.content)

    def _compaction(self, compaction_id: updates.CompactionId) -> Compaction:
        return _known(self.compactions, compaction_id, Compaction)

    def _add_subagent(self, update: updates.SubagentUpdate) -> None:
        known = self.subagents.get(update.session_id) or SubagentState(update.session_id)
        self.subagents[update.session_id] = known.updated(update)

    def _add_session_message(self, update: updates.SessionMessage) -> None:
        self._session_message(update.message_id).update(update)

    def _add_session_message_chunk(self, update: updates.SessionMessageChunk) -> None:
        self._session_message(update.message_id).add(update.content)

    def _session_message(self, message_id: updates.MessageId) -> SessionMessageState:
        return _known(self.session_messages, message_id, SessionMessageState)

    # Terminals

    def _add_terminal(self, update: updates.TerminalUpdate) -> None:
        if not self._terminal(update.terminal_id).update(update):
            self._keep_as_it_came(update)

    def _add_terminal_output(self, chunk: updates.TerminalOutputChunk) -> None:
        if not self._terminal(chunk.terminal_id).add(chunk.data):
            self._keep_as_it_came(chunk)

    def _terminal(self, terminal_id: updates.TerminalId) -> TerminalState:
        from accord.session.terminal_state import TerminalState  # only agents that speak version 2 have terminals

        return _known(self.terminals, terminal_id, TerminalState)

    def _keep_as_it_came(self, update: updates.TerminalUpdate | updates.TerminalOutputChunk) -> None:
        """Keep an update unchanged whose output is not base64."""
        plain = codec.plain(update)
        self.unknown.append(Unknown(plain["sessionUpdate"], plain))

    def cursor_at(self, place: str) -> SessionCursor:
        """Return the cursor with this id, or beside the thing with this id; raises ValueError."""
        usable = [it for it in self.cursors.values() if it.can_fork]
        found = next((it for it in usable if it.id == place), None)
        if found is None:
            found = next((it for it in usable if it.anchor_id == place), None)
        if found is None:
            known = ", ".join(repr(it.anchor_id or it.id) for it in usable)
            raise ValueError(f"the session cannot be forked at {place!r}; it can be at {known or 'no place'}")
        return found

    def _add_cursor(self, update: updates.CursorUpdate) -> None:
        known = self.cursors.get(update.cursor_id) or SessionCursor(update.cursor_id, None)
        self.cursors[update.cursor_id] = known.updated(update)

    def _add_suggestions(self, update: updates.PromptSuggestionsUpdate) -> None:
        self.suggestions = update.suggestions

    _folds: ClassVar[dict[type, Callable[[SessionState, Any], Sequence[updates.Update] | None]]] = {
        updates.AgentMessageChunk: _add_chunk,
        updates.AgentThoughtChunk: _add_chunk,
        updates.UserMessageChunk: _add_chunk,
        updates.UserMessage: _put_message,
        updates.AgentMessage: _put_message,
        updates.AgentThought: _put_message,
        updates.ToolCallProgress: _update_tool_call,
        updates.ToolCallUpdate: _update_tool_call,
        updates.ToolCallContentChunk: _append_content,
        updates.PlanUpdate: _add_plan,
        updates.PlanRemoved: _remove_plan,
        updates.AvailableCommandsUpdate: _add_commands,
        updates.CurrentModeUpdate: _add_mode,
        updates.ConfigOptionUpdate: _add_config,
        updates.SessionInfoUpdate: _add_info,
        updates.SessionStateUpdate: _add_state,
        updates.UsageUpdate: _add_usage,
        updates.Notice: _add_notice,
        updates.CompactionUpdate: _add_compaction,
        updates.CompactionSummaryChunk: _add_compaction_chunk,
        updates.SubagentUpdate: _add_subagent,
        updates.SessionMessage: _add_session_message,
        updates.SessionMessageChunk: _add_session_message_chunk,
        updates.TerminalUpdate: _add_terminal,
        updates.TerminalOutputChunk: _add_terminal_output,
        updates.CursorUpdate: _add_cursor,
        updates.PromptSuggestionsUpdate: _add_suggestions,
        updates.ReplayComplete: _end_replay,
    }
    """The fold of each class. `_fold` adds the classes that only one version has."""


def _observing(observers: list[ObserverT], observer: ObserverT) -> Callable[[], None]:
    """Add an observer; calling the result removes it."""
    observers.append(observer)

    def end() -> None:
        if observer in observers:
            observers.remove(observer)

    return end


def _known(table: dict[KeyT, ThingT], key: KeyT, make: Callable[[KeyT], ThingT]) -> ThingT:
    """Return the table's value for this key, made if there is none."""
    if (known := table.get(key)) is None:
        known = table[key] = make(key)
    return known


def plan_id_of(plan: updates.PlanUpdateContent) -> updates.PlanId:
    """The id of a plan, also for a plan of an unknown kind."""
    return updates.PlanId(str(plan.raw.get("planId", ""))) if isinstance(plan, Unknown) else plan.plan_id


def _read_or_none(raw: Any, kind: Any) -> Any:
    try:
        return codec.convert(raw, kind)
    except DecodeError:
        return None


_SPEAKERS: dict[type, Speaker] = {
    updates.AgentMessageChunk: "agent",
    updates.AgentThoughtChunk: "thought",
    updates.UserMessageChunk: "user",
    updates.AgentMessage: "agent",
    updates.AgentThought: "thought",
    updates.UserMessage: "user",
}
"""By the classes of messages and chunks. `_fold` adds the classes that only one version has."""
_CHUNKS: dict[Speaker, Any] = {
    "agent": updates.AgentMessageChunk,
    "thought": updates.AgentThoughtChunk,
    "user": updates.UserMessageChunk,
}
_PUBLIC_CHUNKS = frozenset(_CHUNKS.values())


def _text_of(blocks: Iterable[Any]) -> str:
    return "".join(block.text for block in blocks)


_NOTHING_YET = Message("user", ())
