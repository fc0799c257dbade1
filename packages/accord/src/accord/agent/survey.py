"""A first look at a record: until which entry each thing in it changes. A replay then tells a thing once it is final.

A replay tells each message and each tool call once, in its final form, and in the order in which they began. Without
this look it would have to hold the whole session: any entry might still change the first message. With it, a replay
holds only what has begun and is not final, however long the session is.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import msgspec

from accord.agent.entries import damaged, update_in
from accord.errors import DecodeError
from accord.schema import codec

Key: TypeAlias = tuple[str, str]
"""The kind of something in a session, and its id."""

_CHUNKS = {"user_message_chunk": "user", "agent_message_chunk": "agent", "agent_thought_chunk": "thought"}
_WHOLE = {"user_message": "user", "agent_message": "agent", "agent_thought": "thought"}
"""By the tags of updates: who a message is from; in version 1 there are only chunks."""

KINDS = {
    "tool_call": ("call", "tool_call_id"),
    "tool_call_update": ("call", "tool_call_id"),
    "tool_call_content_chunk": ("call", "tool_call_id"),
    "terminal_update": ("terminal", "terminal_id"),
    "terminal_output_chunk": ("terminal", "terminal_id"),
    "compaction_update": ("compaction", "compaction_id"),
    "compaction_summary_chunk": ("compaction", "compaction_id"),
    "subagent_update": ("subagent", "session_id"),
    "session_message": ("session_message", "message_id"),
    "session_message_chunk": ("session_message", "message_id"),
}
"""By the tags of updates: the kind of what they are about, and the field with its id."""


class _Glance(msgspec.Struct, rename="camel"):
    """As much of an update as says what it is about."""

    session_update: str
    message_id: Any = None
    tool_call_id: Any = None
    terminal_id: Any = None
    compaction_id: Any = None
    session_id: Any = None


_glance = msgspec.json.Decoder(_Glance).decode


class Survey:
    """Until which entry each thing in a record changes."""

    def __init__(self) -> None:
        self.count = 0
        """How many entries there are."""
        self.last: dict[Key, int] = {}
        """The number of the last entry that changes something."""
        self.replaced: dict[Key, int] = {}
        """The number of the last entry that may replace what a message says; later ones append to it."""
        self._current: Key | None = None
        """The message that a chunk without an id continues, if the message has an id."""

    def add(self, entry: bytes) -> None:
        """Look at the next entry."""
        version, update = update_in(entry)
        seen = _seen(update)
        tag = seen.session_update
        if (speaker := _CHUNKS.get(tag) or (_WHOLE.get(tag) if version != 1 else None)) is not None:
            key = self._message(speaker, seen.message_id, version)
            if key is not None:
                self.last[key] = self.count
                if tag in _WHOLE:
                    self.replaced[key] = self.count
        elif (row := KINDS.get(tag)) is not None:
            kind, field = row
            key = kind, str(getattr(seen, field))
            if kind == "call" and key not in self.last:
                self._current = None
            self.last[key] = self.count
        self.count += 1

    def _message(self, speaker: str, message_id: Any, version: int) -> Key | None:
        """The message that an update is about, by the rules of the timeline; None if it has no id."""
        if not isinstance(message_id, str):
            if self._current is not None and self._current[0] != speaker:
                self._current = None
            return self._current
        key = speaker, message_id
        if key not in self.last or version != 1:
            self._current = key
        return key


def _seen(update: bytes) -> _Glance:
    try:
        return _glance(update)
    except codec.REFUSALS:
        pass
    try:
        plain = codec.loads(update)
    except DecodeError as error:
        raise damaged(str(error)) from error
    if not isinstance(plain, dict):
        raise damaged("an update is not an object")
    fields = cast("dict[str, Any]", plain)
    tag = fields.get("sessionUpdate")
    return _Glance(
        tag if isinstance(tag, str) else "", *(fields.get(wire) for wire in _Glance.__struct_encode_fields__[1:])
    )
