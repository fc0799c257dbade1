"""Session updates: everything that an agent tells, at any time.

Differs from version 1: whole messages, state and terminals are told too; `tool_call`, `plan` and `current_mode_update`
are gone.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET

from accord.schema.base import Model, Notification, Open, Patch, Tolerant, Uint64, ValidItems
from accord.schema.v1.plan import PlanRemoved
from accord.schema.v1.session import SessionId
from accord.schema.v1.updates import CompactionId, CompactionStatus, Cost, Notice
from accord.schema.v2.commands import AvailableCommandsUpdate
from accord.schema.v2.config import ConfigOptionUpdate
from accord.schema.v2.content import ContentBlock
from accord.schema.v2.messages import (
    AgentMessage,
    AgentMessageChunk,
    AgentThought,
    AgentThoughtChunk,
    UserMessage,
    UserMessageChunk,
)
from accord.schema.v2.plan import PlanUpdate
from accord.schema.v2.state import SessionStateUpdate
from accord.schema.v2.subagents import SessionMessage, SessionMessageChunk, SubagentUpdate
from accord.schema.v2.terminal import TerminalOutputChunk, TerminalUpdate
from accord.schema.v2.tools import ToolCallContentChunk, ToolCallProgress
from accord.schema.v2.upserts import Upsert


class SessionInfoUpdate(Upsert, tag_field="sessionUpdate", tag="session_info_update"):
    """Changes to the session's information."""

    title: Tolerant[Patch[str]] = UNSET
    updated_at: Tolerant[Patch[str]] = UNSET  # RFC 3339


class UsageUpdate(Model, tag_field="sessionUpdate", tag="usage_update"):
    """The used part of the context, and the cost of the session."""

    used: Uint64
    size: Uint64
    cost: Tolerant[Patch[Cost]] = UNSET


class CompactionUpdate(Upsert, tag_field="sessionUpdate", tag="compaction_update"):
    """The progress of shortening the context; the first update fixes its place in the conversation."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET
    error: Tolerant[Patch[str]] = UNSET


class CompactionSummaryChunk(Model, tag_field="sessionUpdate", tag="compaction_summary_chunk"):
    """Part of the summary that replaces the shortened context."""

    compaction_id: CompactionId
    content: ContentBlock


SessionUpdate: TypeAlias = Open[
    UserMessageChunk
    | UserMessage
    | AgentMessageChunk
    | AgentMessage
    | AgentThoughtChunk
    | AgentThought
    | SessionStateUpdate
    | ToolCallProgress
    | ToolCallContentChunk
    | TerminalUpdate
    | TerminalOutputChunk
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
    | SubagentUpdate
    | SessionMessage
    | SessionMessageChunk
]
"""One thing that happened in a session."""


class UpdateSessionNotification(Notification, method="session/update", stream=True):
    """A session update, with the id of its session."""

    session_id: SessionId
    update: SessionUpdate
