"""A session's subagents, and the messages that sessions send each other, after all of their updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from accord.schema import v1
from accord.schema.base import Json, Upsert
from accord.state.text import WEIGHT, GrowingContent

if TYPE_CHECKING:
    from accord.schema import v2


class Subagent(msgspec.Struct, frozen=True):
    """A subagent of a session, after all of its updates so far; None stands for what is not known."""

    session_id: v1.SessionId
    title: str | None = None
    description: str | None = None
    capabilities: v1.SubagentSessionCapabilities | None = None
    state: v1.StateUpdate | None = None
    cwd: str | None = None
    additional_directories: list[str] | None = None
    meta: dict[str, Json] | None = None
    background: list[v2.BackgroundWork] | None = None
    """What runs in its background; None if the agent does not report that."""

    def updated(self, update: v1.SubagentUpdate) -> Subagent:
        """This subagent after an update: what it leaves out stays, and what it clears becomes None."""
        return msgspec.structs.replace(self, **given(update))


class SessionMessageState(GrowingContent):
    """A message from one session to another, after all of its updates so far."""

    __slots__ = ("id", "meta", "recipient_message_id", "recipient_session_id", "sender_message_id", "sender_session_id")

    def __init__(self, message_id: v1.MessageId) -> None:
        super().__init__()
        self.id = message_id
        self.sender_session_id: v1.SessionId | None = None
        self.recipient_session_id: v1.SessionId | None = None
        self.sender_message_id: v1.MessageId | None = None
        self.recipient_message_id: v1.MessageId | None = None
        self.meta: dict[str, Json] | None = None

    @property
    def content(self) -> tuple[v1.ContentBlock, ...]:
        """Its content, as far as it has come."""
        return self.read()

    @property
    def weight(self) -> int:
        """The approximate size in bytes, `_meta` included."""
        return WEIGHT + self.size + (0 if self.meta is None else len(repr(self.meta)))

    def update(self, update: v1.SessionMessage) -> None:
        """Take an update: what it leaves out stays, and what it clears becomes None."""
        for name, value in given(update).items():
            if name == "content":
                self.replace(value or ())
            elif name != "message_id":
                setattr(self, name, value)


def given(update: Upsert) -> dict[str, Any]:
    """The fields that an update carries, those that it clears among them."""
    return {name: value for name in update.__struct_fields__ if (value := getattr(update, name)) is not UNSET}
