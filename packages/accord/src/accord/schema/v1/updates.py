"""Session updates: everything that an agent tells while it works.

Pages: prompt-turn, session-list (session info), session-usage; and whatever the variants' own files say.
"""

from __future__ import annotations

from typing import Annotated, NewType, TypeAlias

from msgspec import UNSET, Meta

from accord.schema.base import Model, Notification, Open, Patch, Tolerant, Uint64, Upsert, ValidItems, needs, words
from accord.schema.v1.commands import AvailableCommandsUpdate
from accord.schema.v1.config import SessionConfigOption
from accord.schema.v1.content import ContentBlock
from accord.schema.v1.messages import AgentMessageChunk, AgentThoughtChunk, UserMessageChunk
from accord.schema.v1.modes import SessionModeId
from accord.schema.v1.plan import Plan, PlanRemoved, PlanUpdate
from accord.schema.v1.session import SessionId
from accord.schema.v1.subagents import SessionMessage, SessionMessageChunk, SubagentUpdate
from accord.schema.v1.tools import ToolCall, ToolCallProgress


class CurrentModeUpdate(Model, tag_field="sessionUpdate", tag="current_mode_update"):
    """The session's mode after a change."""

    current_mode_id: SessionModeId


class ConfigOptionUpdate(Model, tag_field="sessionUpdate", tag="config_option_update"):
    """All config options of the session, with their present values."""

    config_options: Tolerant[ValidItems[SessionConfigOption]]


class SessionInfoUpdate(Upsert, tag_field="sessionUpdate", tag="session_info_update"):
    """Changes to the session's information: an omitted field stays, `None` clears it."""

    title: Tolerant[Patch[str]] = UNSET
    updated_at: Tolerant[Patch[str]] = UNSET


class Cost(Model):
    """The cost of a session so far."""

    amount: float
    currency: str  # ISO 4217


class UsageUpdate(Model, tag_field="sessionUpdate", tag="usage_update"):
    """The used part of the context."""

    used: Uint64
    size: Uint64
    cost: Tolerant[Cost | None] = None


NoticeSeverity: TypeAlias = Annotated[str, words("info", "warning", "error")]


@needs("session.notices")
class Notice(Model, tag_field="sessionUpdate", tag="notice"):
    """Information for the user that is not part of the conversation; needs `session.notices`."""

    severity: NoticeSeverity
    title: Annotated[str, Meta(min_length=1)]
    description: Tolerant[str | None] = None


CompactionId = NewType("CompactionId", str)
CompactionStatus: TypeAlias = Annotated[str, words("in_progress", "completed", "failed", "cancelled")]


@needs("session.compaction")
class CompactionUpdate(Upsert, tag_field="sessionUpdate", tag="compaction_update"):
    """The progress of shortening the context; needs `session.compaction`. An omitted field stays, `None` clears it."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET
    error: Tolerant[Patch[str]] = UNSET


@needs("session.compaction")
class CompactionSummaryChunk(Model, tag_field="sessionUpdate", tag="compaction_summary_chunk"):
    """Part of the summary that replaces the shortened context."""

    compaction_id: CompactionId
    content: ContentBlock


SessionUpdate: TypeAlias = Open[
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | ToolCallProgress
    | Plan
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | CurrentModeUpdate
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


class SessionNotification(Notification, method="session/update", stream=True):
    """A session update, with the id of its session."""

    session_id: SessionId
    update: SessionUpdate
