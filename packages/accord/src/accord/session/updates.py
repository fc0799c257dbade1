"""`accord.updates`: one set of classes for all that a session says and does, whichever version the agent speaks.

A client iterates over these:

    async for update in session.prompt("What is in here?"):
        match update:
            case updates.AgentMessageChunk(content=updates.TextContent(text)):
                print(text, end="")
            case updates.ToolCallUpdate(title=str(title)):
                print(f"[{title}]")

A `ToolCallUpdate` begins a tool call or changes it, and holds only what changes: a field that it leaves out is `UNSET`,
and `session.state.tool_calls` has the whole. An agent that makes one by hand sends a `ToolCallProgress`. A plan without
an id, as version 1 has it, is the plan `main`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from accord.schema.base import Unknown
from accord.schema.content import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from accord.schema.shared_updates import (
    MAIN_PLAN,
    AgentMessage,
    AgentMessageChunk,
    AgentThought,
    AgentThoughtChunk,
    Content,
    ContentChunk,
    Diff,
    MessageId,
    PlanEntry,
    PlanEntryPriority,
    PlanEntryStatus,
    PlanId,
    PlanItems,
    PlanMarkdown,
    PlanRemoved,
    PlanUpdate,
    PlanUpdateContent,
    SessionReference,
    Terminal,
    TerminalId,
    TextDiff,
    ToolCallContent,
    ToolCallContentChunk,
    ToolCallId,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStatus,
    ToolCallUpdate,
    ToolKind,
    UserMessage,
    UserMessageChunk,
)
from accord.schema.v1 import (
    AvailableCommandsUpdate,
    CompactionSummaryChunk,
    CompactionUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    CursorUpdate,
    Notice,
    PromptSuggestionsUpdate,
    SessionInfoUpdate,
    SessionMessage,
    SessionMessageChunk,
    SubagentUpdate,
    UsageUpdate,
)

if TYPE_CHECKING:
    from accord.schema import v1, v2
    from accord.schema.v2 import ReplayComplete, SessionStateUpdate, TerminalOutputChunk, TerminalUpdate

Update: TypeAlias = "v1.SessionUpdate | v2.SessionUpdate"
"""An update, as readers get it."""

_OF_VERSION_2 = ("ReplayComplete", "SessionStateUpdate", "TerminalOutputChunk", "TerminalUpdate")
"""Only agents that speak version 2 send these, so their types are loaded when they are first named."""


__all__ = [
    "MAIN_PLAN",
    "AgentMessage",
    "AgentMessageChunk",
    "AgentThought",
    "AgentThoughtChunk",
    "AudioContent",
    "AvailableCommandsUpdate",
    "CompactionSummaryChunk",
    "CompactionUpdate",
    "ConfigOptionUpdate",
    "Content",
    "ContentBlock",
    "ContentChunk",
    "CurrentModeUpdate",
    "CursorUpdate",
    "Diff",
    "EmbeddedResource",
    "ImageContent",
    "MessageId",
    "Notice",
    "PlanEntry",
    "PlanEntryPriority",
    "PlanEntryStatus",
    "PlanId",
    "PlanItems",
    "PlanMarkdown",
    "PlanRemoved",
    "PlanUpdate",
    "PlanUpdateContent",
    "PromptSuggestionsUpdate",
    "ReplayComplete",
    "ResourceLink",
    "SessionInfoUpdate",
    "SessionMessage",
    "SessionMessageChunk",
    "SessionReference",
    "SessionStateUpdate",
    "SubagentUpdate",
    "Terminal",
    "TerminalId",
    "TerminalOutputChunk",
    "TerminalUpdate",
    "TextContent",
    "TextDiff",
    "ToolCallContent",
    "ToolCallContentChunk",
    "ToolCallId",
    "ToolCallLocation",
    "ToolCallProgress",
    "ToolCallStatus",
    "ToolCallUpdate",
    "ToolKind",
    "Unknown",
    "Update",
    "UsageUpdate",
    "UserMessage",
    "UserMessageChunk",
]


def __getattr__(name: str) -> Any:
    if name in _OF_VERSION_2:
        from accord.schema import v2

        return getattr(v2, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
