"""Updates of version 2 in the words of version 1, for those who read them one by one. PURE.

A program that reads `v1.AgentMessageChunk` and `v1.ToolCall` need not know which version its agent speaks.

| version 2 | a reader gets |
|---|---|
| a chunk of a message | the same chunk of version 1 |
| a whole message that is new | a chunk for each of its blocks |
| a whole message that continues what was there | a chunk with the rest |
| a whole message that replaces what was there | the `v2` update itself: what was read no longer holds |
| a tool call | `v1.ToolCall` at first, then `v1.ToolCallProgress`, with the values that the call has now |
| plans, commands, options, usage, title, notices | the same of version 1 |
| states, terminals, single pieces of a tool call's content, unknown updates | the `v2` update itself |
"""

from __future__ import annotations

from typing import Any, cast

from msgspec import UNSET

from accord.errors import ConversionError
from accord.schema import v1, v2
from accord.schema.base import Unknown
from accord.schema.conversion import all_to_v1
from accord.session import Message, SessionState, Speaker
from accord.session.upserts import shown

CHUNKS: dict[type, tuple[Speaker, Any]] = {
    v2.AgentMessageChunk: ("agent", v1.AgentMessageChunk),
    v2.AgentThoughtChunk: ("thought", v1.AgentThoughtChunk),
    v2.UserMessageChunk: ("user", v1.UserMessageChunk),
}
WHOLE: dict[type, tuple[Speaker, Any]] = {
    v2.AgentMessage: ("agent", v1.AgentMessageChunk),
    v2.AgentThought: ("thought", v1.AgentThoughtChunk),
    v2.UserMessage: ("user", v1.UserMessageChunk),
}
REMEMBERED = 10_000
"""Messages and tool calls that are known as begun; of an older one, a whole message counts as new."""


class UpdateView:
    """The updates of one session, as readers see them."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], None] = {}
        """The messages and tool calls that have begun, by kind and id."""
        self.last: tuple[str, str] | None = None
        """What was noted last, which the next chunk most likely continues."""
        self._grown: set[str] = set()
        """Tool calls whose content has grown piece by piece since it was last shown as a whole."""

    def clear(self) -> None:
        """Forget everything, before a replay from the start."""
        self._begun.clear()
        self.last = None
        self._grown.clear()

    def read(
        self, update: v2.SessionUpdate, state: SessionState, replaced: tuple[Message, Message] | None
    ) -> list[Any]:
        """What readers get for this update, which `state` has folded already.

        `replaced` is a message before and after, if the update has replaced what it said.
        """
        kind = update.__class__
        if (chunk := CHUNKS.get(kind)) is not None:
            return self._chunk(cast("v2.ContentChunk", update), *chunk)
        if (whole := WHOLE.get(kind)) is not None:
            return self._whole(update, *whole, replaced)
        match update:
            case v2.ToolCallProgress():
                return self.tool_call(update, state)
            case v2.ToolCallContentChunk():
                self._grown.add(update.tool_call_id)
                return [update]
            case v2.ConfigOptionUpdate():
                return [v1.ConfigOptionUpdate([*state.config, *state.unknown_config], meta=update.meta)]
            case v2.AvailableCommandsUpdate():
                return [v1.AvailableCommandsUpdate(list(state.commands), meta=update.meta)]
            case v2.SessionStateUpdate() | v2.TerminalUpdate() | v2.TerminalOutputChunk() | Unknown():
                return [update]
            case _:
                return as_v1(update)

    # Messages

    def _chunk(self, update: v2.ContentChunk, speaker: Speaker, kind: Any) -> list[Any]:
        self.begin(speaker, update.message_id)
        return [kind(shown(update.content), update.message_id, meta=update.meta)]

    def _whole(self, update: Any, speaker: Speaker, kind: Any, replaced: tuple[Message, Message] | None) -> list[Any]:
        if update.content is UNSET:
            return [update]
        is_new = self.begin(speaker, update.message_id)
        if not update.content:  # what comes next is all that it says
            del self._begun[speaker, update.message_id]
            self.last = None
            return [update]
        if is_new:
            return _chunks(update, kind)
        if replaced is None:  # it says what it said
            return []
        before, after = replaced
        rest = _rest(before, after)
        if rest is None:
            return [update]
        return [kind(v1.TextContent(rest), update.message_id)] if rest else []

    def begin(self, kind: str, its_id: str) -> bool:
        """Note that something has begun; returns whether it is new."""
        self.last = key = (kind, its_id)
        if key in self._begun:
            return False
        self._begun[key] = None
        if len(self._begun) > REMEMBERED:
            del self._begun[next(iter(self._begun))]
        return True

    # Tool calls

    def tool_call(self, update: v2.ToolCallProgress, state: SessionState) -> list[Any]:
        """What readers get for a change of a tool call, which `state` has folded already."""
        call_id = update.tool_call_id
        call = state.tool_calls.get(call_id)
        if call is None:  # dropped at once, because it is larger than the state may be
            return as_v1(update)
        is_new = self.begin("tool call", call_id)
        shows_content = is_new or update.content is not UNSET or (call_id in self._grown and call.is_finished)
        if shows_content:
            self._grown.discard(call_id)
        status: Any = call.status  # of version 2, with its words
        content: Any = list(call.content) if shows_content else None
        meta = update.meta or None
        if is_new:
            return [
                v1.ToolCall(
                    call_id,
                    call.title,
                    kind=call.kind,
                    status=status,
                    content=content,
                    locations=list(call.locations),
                    raw_input=call.raw_input,
                    raw_output=call.raw_output,
                    name=call.name,
                    meta=meta,
                )
            ]
        return [
            v1.ToolCallProgress(
                call_id,
                title=None if update.title is UNSET else call.title,
                kind=None if update.kind is UNSET else call.kind,
                status=None if update.status is UNSET else status,
                content=content,
                locations=None if update.locations is UNSET else list(call.locations),
                raw_input=None if update.raw_input is UNSET else call.raw_input,
                raw_output=None if update.raw_output is UNSET else call.raw_output,
                name=None if update.name is UNSET else call.name,
                meta=meta,
            )
        ]


def as_v1(update: Any) -> list[Any]:
    """This update in the words of version 1; the update itself if version 1 has no words for it."""
    try:
        return all_to_v1(update)
    except ConversionError:
        return [update]


def _chunks(update: Any, kind: Any) -> list[Any]:
    """A whole message as one chunk for each block."""
    return [kind(shown(block), update.message_id) for block in update.content]


def _rest(before: Message, after: Message) -> str | None:
    """The text that a message has gained; None if it does not begin with what it said before."""
    if any(not isinstance(block, v1.TextContent) for block in (*before.content, *after.content)):
        return None
    return after.text[len(before.text) :] if after.text.startswith(before.text) else None
