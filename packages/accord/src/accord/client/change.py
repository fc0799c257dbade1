"""`Change`: an update of a turn, for programs that render messages and must know what no longer holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from accord.schema import v1
from accord.schema.base import Unknown
from accord.session import Speaker

_APPENDS: dict[type, Speaker] = {
    v1.AgentMessageChunk: "agent",
    v1.AgentThoughtChunk: "thought",
    v1.UserMessageChunk: "user",
}
_REPLACES: dict[str, Speaker] = {"agent_message": "agent", "agent_thought": "thought", "user_message": "user"}
"""The whole messages of version 2, by their tags."""


class Change(msgspec.Struct, frozen=True):
    """An update of a turn, with what it means for the message that it belongs to."""

    update: v1.SessionUpdate
    """The update."""
    speaker: Speaker | None = None
    """Whose message it changes; None if it changes no message."""
    message_id: str | None = None
    """The id of the message, from agents that send one."""
    text: str = ""
    """The text to append to the message; all of its text, if it is replaced."""
    replaced: bool = False
    """Whether the message now says something else than what came before: render it again."""

    @classmethod
    def of(cls, update: Any) -> Change:
        """The change that an update of a Reply makes."""
        if (speaker := _APPENDS.get(update.__class__)) is not None:
            return cls(update, speaker, update.message_id, _text_of([update.content]))
        if (speaker := replaced_by(update)) is not None:
            return cls(update, speaker, update.message_id, _text_of(update.content or ()), replaced=True)
        return cls(update)


def replaced_by(update: Any) -> Speaker | None:
    """Whose message an update replaces; None for any other update."""
    if isinstance(update, Unknown) or not isinstance(update, msgspec.Struct):
        return None
    speaker = _REPLACES.get(str(update.__struct_config__.tag))
    return None if speaker is None or getattr(update, "content", msgspec.UNSET) is msgspec.UNSET else speaker


def _text_of(blocks: Sequence[Any]) -> str:
    return "".join(block.text for block in blocks if _is_text(block))


def _is_text(block: Any) -> bool:
    """Whether this is text, of either version."""
    return isinstance(block, msgspec.Struct) and block.__struct_config__.tag == "text"
