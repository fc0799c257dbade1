"""Subagents and messages between sessions: proposed, not yet stable.

The same as in version 1, but for the state, and that no client has to declare support.
"""

from __future__ import annotations

from msgspec import UNSET

from accord.schema.base import Model, Patch, Tolerant, ValidItems, unstable
from accord.schema.v1.messages import MessageId
from accord.schema.v1.session import SessionId
from accord.schema.v1.subagents import SubagentSessionCapabilities
from accord.schema.v2.content import ContentBlock
from accord.schema.v2.protocol import AbsolutePath
from accord.schema.v2.state import StateUpdate
from accord.schema.v2.upserts import Upsert


@unstable
class SubagentUpdate(Upsert, tag_field="sessionUpdate", tag="subagent_update"):
    """A subagent that this session started, or changes to it."""

    session_id: SessionId
    title: Tolerant[Patch[str]] = UNSET
    description: Tolerant[Patch[str]] = UNSET
    capabilities: Tolerant[Patch[SubagentSessionCapabilities]] = UNSET
    state: Tolerant[Patch[StateUpdate]] = UNSET
    cwd: Patch[AbsolutePath] = UNSET
    additional_directories: Patch[list[AbsolutePath]] = UNSET


@unstable
class SessionMessage(Upsert, tag_field="sessionUpdate", tag="session_message"):
    """A message from one session to another, or changes to it."""

    message_id: MessageId
    sender_session_id: Tolerant[Patch[SessionId]] = UNSET
    recipient_session_id: Tolerant[Patch[SessionId]] = UNSET
    sender_message_id: Tolerant[Patch[MessageId]] = UNSET
    recipient_message_id: Tolerant[Patch[MessageId]] = UNSET
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET


@unstable
class SessionMessageChunk(Model, tag_field="sessionUpdate", tag="session_message_chunk"):
    """Part of a message from one session to another."""

    message_id: MessageId
    content: ContentBlock
