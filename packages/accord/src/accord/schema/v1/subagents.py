"""Subagents and messages between sessions: proposed, not yet stable."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET

from accord.schema.base import Model, Open, Patch, Tolerant, Upsert, ValidItems, needs, unstable
from accord.schema.v1.content import ContentBlock
from accord.schema.v1.messages import MessageId
from accord.schema.v1.prompt import Usage
from accord.schema.v1.protocol import Error
from accord.schema.v1.session import SessionId


@unstable
class SessionCancelCapabilities(Model):
    """Declares that the client may cancel this session on its own."""


@unstable
class SubagentSessionCapabilities(Model):
    """What a client may do with a subagent's session."""

    cancel: Tolerant[SessionCancelCapabilities | None] = None


@unstable
class RunningStateUpdate(Model, tag_field="state", tag="running"):
    """The session is at work."""


@unstable
class IdleStateUpdate(Model, tag_field="state", tag="idle"):
    """The session is not at work.

    `stop_reason` says why the last turn ended, in the words of `StopReason` or `error`; with that goes `error`.
    """

    stop_reason: Tolerant[str | None] = None
    usage: Tolerant[Usage | None] = None
    error: Tolerant[Error | None] = None


@unstable
class RequiresActionStateUpdate(Model, tag_field="state", tag="requires_action"):
    """The session waits for the user."""


@unstable
class UnknownStateUpdate(Model, tag_field="state", tag="unknown"):
    """The agent does not know the session's state."""


StateUpdate: TypeAlias = Open[RunningStateUpdate | IdleStateUpdate | RequiresActionStateUpdate | UnknownStateUpdate]


@unstable
@needs("subagents")
class SubagentUpdate(Upsert, tag_field="sessionUpdate", tag="subagent_update"):
    """A subagent that this session started, or changes to it: an omitted field stays, `None` clears it."""

    session_id: SessionId
    title: Tolerant[Patch[str]] = UNSET
    description: Tolerant[Patch[str]] = UNSET
    capabilities: Tolerant[Patch[SubagentSessionCapabilities]] = UNSET
    state: Tolerant[Patch[StateUpdate]] = UNSET
    cwd: Patch[str] = UNSET
    additional_directories: Patch[list[str]] = UNSET


@unstable
@needs("subagents")
class SessionMessage(Upsert, tag_field="sessionUpdate", tag="session_message"):
    """A message from one session to another, or changes to it: an omitted field stays, `None` clears it."""

    message_id: MessageId
    sender_session_id: Tolerant[Patch[SessionId]] = UNSET
    recipient_session_id: Tolerant[Patch[SessionId]] = UNSET
    sender_message_id: Tolerant[Patch[MessageId]] = UNSET
    recipient_message_id: Tolerant[Patch[MessageId]] = UNSET
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET


@unstable
@needs("subagents")
class SessionMessageChunk(Model, tag_field="sessionUpdate", tag="session_message_chunk"):
    """Part of a message from one session to another."""

    message_id: MessageId
    content: ContentBlock
