"""Short ways to make content, tool calls and updates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from accord.compat.acp import schema as s

__all__ = [
    "audio_block",
    "embedded_blob_resource",
    "embedded_text_resource",
    "image_block",
    "plan_entry",
    "resource_block",
    "resource_link_block",
    "session_notification",
    "start_edit_tool_call",
    "start_read_tool_call",
    "start_tool_call",
    "text_block",
    "tool_content",
    "tool_diff_content",
    "tool_terminal_ref",
    "update_agent_message",
    "update_agent_message_text",
    "update_agent_thought",
    "update_agent_thought_text",
    "update_available_commands",
    "update_current_mode",
    "update_plan",
    "update_tool_call",
    "update_user_message",
    "update_user_message_text",
]

# Content


def text_block(text: str) -> s.TextContentBlock:
    """Text as content."""
    return s.TextContentBlock(text=text)


def image_block(data: str, mime_type: str, *, uri: str | None = None) -> s.ImageContentBlock:
    """An image as content; `data` is in base64."""
    return s.ImageContentBlock(data=data, mime_type=mime_type, uri=uri)


def audio_block(data: str, mime_type: str) -> s.AudioContentBlock:
    """A sound as content; `data` is in base64."""
    return s.AudioContentBlock(data=data, mime_type=mime_type)


def resource_link_block(
    name: str,
    uri: str,
    *,
    mime_type: str | None = None,
    size: int | None = None,
    description: str | None = None,
    title: str | None = None,
) -> s.ResourceContentBlock:
    """A link to a resource as content."""
    return s.ResourceContentBlock(
        name=name, uri=uri, mime_type=mime_type, size=size, description=description, title=title
    )


def embedded_text_resource(uri: str, text: str, *, mime_type: str | None = None) -> s.TextResourceContents:
    """A resource's text, for `resource_block`."""
    return s.TextResourceContents(uri=uri, text=text, mime_type=mime_type)


def embedded_blob_resource(uri: str, blob: str, *, mime_type: str | None = None) -> s.BlobResourceContents:
    """A resource's bytes in base64, for `resource_block`."""
    return s.BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type)


def resource_block(resource: s.TextResourceContents | s.BlobResourceContents) -> s.EmbeddedResourceContentBlock:
    """A resource that is sent along, as content."""
    return s.EmbeddedResourceContentBlock(resource=resource)


# Tool calls


def tool_content(block: Any) -> s.ContentToolCallContent:
    """Content as the content of a tool call."""
    return s.ContentToolCallContent(content=block)


def tool_diff_content(path: str, new_text: str, old_text: str | None = None) -> s.FileEditToolCallContent:
    """A change of a file as the content of a tool call; without `old_text` the file is new."""
    return s.FileEditToolCallContent(path=path, new_text=new_text, old_text=old_text)


def tool_terminal_ref(terminal_id: str) -> s.TerminalToolCallContent:
    """A terminal as the content of a tool call."""
    return s.TerminalToolCallContent(terminal_id=terminal_id)


def start_tool_call(
    tool_call_id: str,
    title: str,
    *,
    kind: s.ToolKind | None = None,
    status: s.ToolCallStatus | None = None,
    content: Sequence[Any] | None = None,
    locations: Sequence[s.ToolCallLocation] | None = None,
    raw_input: Any | None = None,
    raw_output: Any | None = None,
) -> s.ToolCallStart:
    """The update that announces a tool call."""
    return s.ToolCallStart(
        tool_call_id=tool_call_id,
        title=title,
        kind=kind,
        status=status,
        content=None if content is None else list(content),
        locations=None if locations is None else list(locations),
        raw_input=raw_input,
        raw_output=raw_output,
    )


def start_read_tool_call(
    tool_call_id: str, title: str, path: str, *, extra_options: Sequence[Any] | None = None
) -> s.ToolCallStart:
    """The update that announces the reading of a file."""
    return _start_file_call(tool_call_id, title, "read", path, {"path": path}, extra_options)


def start_edit_tool_call(
    tool_call_id: str, title: str, path: str, content: Any, *, extra_options: Sequence[Any] | None = None
) -> s.ToolCallStart:
    """The update that announces a change of a file; `content` goes into the raw input."""
    return _start_file_call(tool_call_id, title, "edit", path, {"path": path, "content": content}, extra_options)


def _start_file_call(
    tool_call_id: str, title: str, kind: Any, path: str, raw_input: Any, content: Sequence[Any] | None
) -> s.ToolCallStart:
    return start_tool_call(
        tool_call_id,
        title,
        kind=kind,
        status="pending",
        content=content,
        locations=[s.ToolCallLocation(path=path)],
        raw_input=raw_input,
    )


def update_tool_call(
    tool_call_id: str,
    *,
    title: str | None = None,
    kind: s.ToolKind | None = None,
    status: s.ToolCallStatus | None = None,
    content: Sequence[Any] | None = None,
    locations: Sequence[s.ToolCallLocation] | None = None,
    raw_input: Any | None = None,
    raw_output: Any | None = None,
) -> s.ToolCallProgress:
    """The update that changes a tool call; what is None stays as it was."""
    return s.ToolCallProgress(
        tool_call_id=tool_call_id,
        title=title,
        kind=kind,
        status=status,
        content=None if content is None else list(content),
        locations=None if locations is None else list(locations),
        raw_input=raw_input,
        raw_output=raw_output,
    )


# Updates


def plan_entry(
    content: str, *, priority: s.PlanEntryPriority = "medium", status: s.PlanEntryStatus = "pending"
) -> s.PlanEntry:
    """One step of a plan."""
    return s.PlanEntry(content=content, priority=priority, status=status)


def update_plan(entries: Iterable[s.PlanEntry]) -> s.AgentPlanUpdate:
    """The update that replaces the plan."""
    return s.AgentPlanUpdate(entries=list(entries))


def update_user_message(content: Any) -> s.UserMessageChunk:
    """The update that adds content to the user's message."""
    return s.UserMessageChunk(content=content)


def update_user_message_text(text: str) -> s.UserMessageChunk:
    """The update that adds text to the user's message."""
    return s.UserMessageChunk(content=text_block(text))


def update_agent_message(content: Any) -> s.AgentMessageChunk:
    """The update that adds content to the agent's message."""
    return s.AgentMessageChunk(content=content)


def update_agent_message_text(text: str) -> s.AgentMessageChunk:
    """The update that adds text to the agent's message."""
    return s.AgentMessageChunk(content=text_block(text))


def update_agent_thought(content: Any) -> s.AgentThoughtChunk:
    """The update that adds content to the agent's thoughts."""
    return s.AgentThoughtChunk(content=content)


def update_agent_thought_text(text: str) -> s.AgentThoughtChunk:
    """The update that adds text to the agent's thoughts."""
    return s.AgentThoughtChunk(content=text_block(text))


def update_available_commands(commands: Iterable[s.AvailableCommand]) -> s.AvailableCommandsUpdate:
    """The update that replaces the slash commands."""
    return s.AvailableCommandsUpdate(available_commands=list(commands))


def update_current_mode(current_mode_id: str) -> s.CurrentModeUpdate:
    """The update that tells the present mode."""
    return s.CurrentModeUpdate(current_mode_id=current_mode_id)


def session_notification(session_id: str, update: Any) -> s.SessionNotification:
    """An update with the id of its session."""
    return s.SessionNotification(session_id=session_id, update=update)
