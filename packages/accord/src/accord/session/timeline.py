"""The timeline of a session: messages and tool calls, in the order in which they began.

A *message* is the chunks with one message id; if agents send none, consecutive chunks of one speaker with no other
message or tool call between. An emoji that was split in two, as by JavaScript agents, is joined again, even across
chunks; a half without its other half stays as it is.

A *tool call* and its updates become one `ToolCallState`: an omitted field stays, a list replaces the previous one.

Version 2 gives every message an id that stays valid, sends messages whole as well as in chunks, and appends to the
content of tool calls. The state folds its updates with the methods under "Version 2" below.

Each entry has a *place*: its number in the order of the timeline, which counts dropped entries too. A chunk changes one
entry, and only the entries that have changed since the last time become values again when the timeline is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from accord.schema import shared_updates as updates
from accord.schema.base import Json
from accord.schema.content import ContentBlock, TextContent
from accord.schema.shared_updates import MessageId, ToolCallContent, ToolCallContentChunk, ToolCallId, ToolCallUpdate
from accord.session.values import (
    WEIGHT,
    Entry,
    GrowingContent,
    Message,
    Speaker,
    ToolCallState,
    oldest_beyond,
    patched_meta,
    size_of,
)


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
        self.meta: dict[str, Json] | None = None

    def message(self) -> Message:
        return Message(self.speaker, self.read(), self.id, self.is_refused, self.meta)


class Timeline:
    """Messages and tool calls in the order in which they began."""

    def __init__(self) -> None:
        self.forgotten = 0
        """How many of the oldest entries were dropped because of the limit."""
        self.on_replacement: Callable[[Message, Message], object] | None = None
        """Called with a message before and after its content was replaced."""
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

    # Reading

    @property
    def tool_calls(self) -> dict[ToolCallId, ToolCallState]:
        """Every tool call of the session, by its id."""
        if self._appended:
            self._join_appended()
        return self._calls

    def __len__(self) -> int:
        """The number of entries, dropped ones included."""
        return self.forgotten + len(self._growing)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return the messages and tool calls in their present state."""
        if self._appended:
            self._join_appended()
        if self._changed:
            for place in self._changed:
                self._read[place - self.forgotten] = self._entry(place)
            self._changed.clear()
            self._entries = tuple(self._read)
        return self._entries

    def between(self, start: int, end: int | None = None) -> list[Entry]:
        """Return the entries from place `start` up to `end`, without those that were dropped."""
        if self._appended:
            self._join_appended()
        return [self._entry(place) for place in range(max(start, self.forgotten), len(self) if end is None else end)]

    def _entry(self, place: int) -> Entry:
        growing = self._growing[place - self.forgotten]
        return growing.message() if isinstance(growing, GrowingMessage) else self._calls[growing]

    # Turns

    def begin_turn(self, content: Sequence[ContentBlock]) -> int:
        """Add a prompt of the user, and return its place. If the agent repeats it as updates, they replace it.

        A message id that was used before is a new message from now on: some agents start counting again in each turn.
        """
        self._by_id.clear()
        message = self._begin_message("user", None, is_ours=True)
        for block in content:
            message.add(block)
        self._turn_begins = message.place
        return message.place

    def end_turn(self) -> None:
        """End the turn: the next chunk begins a new message."""
        self._last = None

    def refuse_turn(self) -> None:
        """Mark the latest turn as refused, from its prompt on."""
        # schema, StopReason: the next prompt does not include a refused one and its turn; clients show that.
        self.refuse(self._turn_begins, len(self))

    def refuse(self, start: int, end: int) -> None:
        """Mark the entries from place `start` up to `end` as refused."""
        for place in range(max(start, self.forgotten), end):
            entry = self._growing[place - self.forgotten]
            if isinstance(entry, GrowingMessage):
                entry.is_refused = True
            else:
                self._calls[entry] = msgspec.structs.replace(self._calls[entry], refused=True)
            self._changed.add(place)

    def cancel_unfinished(self, spared: Collection[str | None] = ()) -> None:
        """Mark unfinished tool calls as `cancelled`, except those that are spared."""
        if self._appended:
            self._join_appended()
        for tool_call_id in [it for it in self._unfinished if it not in spared]:
            self.put_tool_call(msgspec.structs.replace(self._calls[tool_call_id], status="cancelled"))

    # Messages

    def _begin(self, entry: GrowingMessage | ToolCallId) -> int:
        """Add an entry at the end, and return its place."""
        place = self.forgotten + len(self._growing)
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

    def _message(self, speaker: Speaker, message_id: MessageId | None) -> GrowingMessage:
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

    def add_chunk(self, chunk: updates.ContentChunk) -> None:
        """Add a chunk of a message."""
        message, speaker = self._last, _SPEAKERS[chunk.__class__]
        if message is None or message.id != chunk.message_id or message.speaker != speaker or message.is_ours:
            message = self._message(speaker, chunk.message_id)
        content, run = chunk.content, message.run
        if run is None or not isinstance(content, TextContent) or content.annotations or content.meta:
            message.add(content)
        else:
            run.add(content.text)
        self._changed.add(message.place)

    # Tool calls

    def update_tool_call(self, update: ToolCallUpdate) -> None:
        """Change a tool call; one that is unknown begins now."""
        known = self.tool_calls.get(update.tool_call_id) or ToolCallState(update.tool_call_id)
        self.put_tool_call(known.updated(update))

    def put_tool_call(self, call: ToolCallState) -> None:
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

    # Version 2

    def add_copy(self, content: Sequence[ContentBlock]) -> int:
        """Add a prompt as it was sent; the agent's echo replaces its content. Returns its place."""
        copy = self._begin_message("user", None, is_ours=True)
        self._turn_begins = copy.place
        for block in content:
            copy.add(block)
        self._not_echoed.append(copy)
        return copy.place

    def name_copy(self, place: int, message_id: MessageId) -> None:
        """Assign the agent's id to a prompt: the echo with this id replaces it."""
        if not self._not_echoed:  # the usual case: the echo came first
            return
        copy = next((it for it in self._not_echoed if it.place == place), None)
        if copy is not None and ("user", message_id) not in self._by_id:
            self._not_echoed.remove(copy)
            copy.id = message_id
            self._by_id["user", message_id] = copy
            self._changed.add(place)

    def drop_copy(self, place: int) -> None:
        """Mark a prompt as refused: the agent has not inserted it into the conversation."""
        copy = next((it for it in self._not_echoed if it.place == place), None)
        if copy is not None:
            self._not_echoed.remove(copy)
            self.refuse(place, place + 1)

    def message(self, speaker: Speaker, message_id: MessageId) -> GrowingMessage:
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

    def append(self, chunk: updates.ContentChunk) -> None:
        """Append a chunk to the message with its id."""
        content, speaker, message_id = chunk.content, _speaker(chunk), chunk.message_id
        assert message_id is not None, "in version 2 every chunk has the id of its message"
        if isinstance(content, TextContent) and content.annotations is None and content.meta is None:
            self.append_text(speaker, message_id, content.text)
        else:
            self.growing(speaker, message_id).add(content)

    def put_message(self, update: updates.UserMessage | updates.AgentMessage | updates.AgentThought) -> None:
        """Change a message as a whole."""
        message = self.message(_speaker(update), update.message_id)
        message.meta = patched_meta(message.meta, update.meta)
        if update.content is not UNSET:
            self.replace(message, update.content or ())

    def append_text(self, speaker: Speaker, message_id: MessageId, text: str) -> None:
        """Append plain text to the message with this id."""
        message = self._last
        if message is None or message.id != message_id or message.speaker != speaker or message.is_ours:
            message = self.growing(speaker, message_id)
        run = message.run
        if run is None:
            message.add(TextContent(text))
        else:
            run.add(text)
        self._changed.add(message.place)

    def growing(self, speaker: Speaker, message_id: MessageId) -> GrowingMessage:
        """Return the message with this id, to append to; the content of a sent prompt is removed."""
        message = self.message(speaker, message_id)
        if message.is_ours:
            self.replace(message, ())
        return message

    def replace(self, message: GrowingMessage, content: Sequence[ContentBlock]) -> None:
        """Replace a message's content."""
        before = None if self.on_replacement is None else message.read()
        message.is_ours = False
        message.replace(content)
        if before and self.on_replacement is not None and before != tuple(content):
            after = message.message()
            self.on_replacement(msgspec.structs.replace(after, content=before), after)

    def append_content(self, chunk: ToolCallContentChunk) -> None:
        """Append an item to the content of a tool call; one that is unknown begins now."""
        tool_call_id = chunk.tool_call_id
        if tool_call_id not in self._calls:
            self.put_tool_call(ToolCallState(tool_call_id))
        self._appended.setdefault(tool_call_id, []).append(chunk.content)
        self._changed.add(self._places[tool_call_id])

    def _join_appended(self) -> None:
        for tool_call_id, items in self._appended.items():
            call = self._calls[tool_call_id]
            self._calls[tool_call_id] = msgspec.structs.replace(call, content=[*call.content, *items])
        self._appended.clear()

    def drain(self, place: int, least: int) -> tuple[ContentBlock, ...]:
        """Remove and return the content of the message at this place, if it is at least this many bytes."""
        message = self._growing[place - self.forgotten]
        if not isinstance(message, GrowingMessage) or message.size < least:
            return ()
        content = message.read()
        message.replace(())
        return content

    # The limit

    def shrink(self, limit: int) -> None:
        """Drop the oldest entries if all entries take more than half of the limit; a quarter of it remains."""
        if self._appended:
            self._join_appended()
        sizes = [self._size(entry) for entry in self._growing]
        if sum(sizes) > limit // 2:
            self.forget(oldest_beyond(sizes, limit // 4))

    def _size(self, entry: GrowingMessage | ToolCallId) -> int:
        return WEIGHT + entry.size if isinstance(entry, GrowingMessage) else size_of(self._calls[entry])

    def forget(self, count: int) -> None:
        """Drop this many of the oldest entries."""
        for entry in self._growing[:count]:
            if not isinstance(entry, GrowingMessage):
                del self._calls[entry], self._places[entry]
                self._unfinished.pop(entry, None)
        del self._growing[:count], self._read[:count]
        self.forgotten += count
        self._changed = {place for place in self._changed if place >= self.forgotten}
        self._by_id = {key: it for key, it in self._by_id.items() if it.place >= self.forgotten}
        self._not_echoed = [it for it in self._not_echoed if it.place >= self.forgotten]
        if self._last is not None and self._last.place < self.forgotten:
            self._last = None
        self._entries = tuple(self._read)


_SPEAKERS: dict[type, Speaker] = {
    updates.AgentMessageChunk: "agent",
    updates.AgentThoughtChunk: "thought",
    updates.UserMessageChunk: "user",
}
_SPEAKERS_BY_TAG: dict[str, Speaker] = {
    "agent_message": "agent",
    "agent_message_chunk": "agent",
    "agent_thought": "thought",
    "agent_thought_chunk": "thought",
    "user_message": "user",
    "user_message_chunk": "user",
}


def _speaker(update: Any) -> Speaker:
    """Return the speaker of a message or a chunk of either version's class."""
    return _SPEAKERS_BY_TAG[update.__struct_config__.tag]


_NOTHING_YET = Message("user", ())
