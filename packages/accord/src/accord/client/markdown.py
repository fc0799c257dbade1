"""A session as Markdown, for logs, reports and notebooks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accord.schema import v1
from accord.schema.base import Unknown
from accord.session import Message, SessionState, ToolCallState

if TYPE_CHECKING:
    from accord.schema import v2

_STATUS_MARKS = {"completed": "done", "failed": "failed", "cancelled": "cancelled"}


def markdown(state: SessionState) -> str:
    """The conversation: prompts, thoughts, tool calls and answers in order, and the current plan."""
    parts = [f"# {state.title}"] if state.title else []
    parts += [_message(entry) if isinstance(entry, Message) else _tool_call(entry) for entry in state.timeline]
    if state.plan:
        parts.append("\n".join(["## Plan", "", *map(_step, state.plan)]))
    return "\n\n".join(part for part in parts if part) + "\n"


def turn_markdown(tool_calls: Sequence[ToolCallState], text: str, stop_reason: str) -> str:
    """A turn: its tool calls, what the agent said, and why it stopped if it was not done."""
    parts = [*map(_tool_call, tool_calls), text]
    if stop_reason != "end_turn":
        parts.append(f"*({_escaped(stop_reason)})*")
    return "\n\n".join(part for part in parts if part) + "\n"


def _message(message: Message) -> str:
    text = "\n\n".join(_block(block) for block in message.content)
    if message.speaker == "agent":
        return text
    asked = "**You** (refused; the agent goes on without this): " if message.refused else "**You:** "
    heading = asked if message.speaker == "user" else "*Thinking:* "
    return "\n".join(f"> {line}".rstrip() for line in (heading + text).split("\n"))


def _block(block: v1.ContentBlock) -> str:
    match block:
        case v1.TextContent(text=text):
            return text
        case v1.ResourceLink(name=name, uri=uri):
            return f"[{_escaped(name)}](<{uri}>)"
        case v1.ImageContent(mime_type=kind):
            return f"*(an image, {kind})*"
        case v1.AudioContent(mime_type=kind):
            return f"*(a sound, {kind})*"
        case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
            return f"`{uri}`\n\n{fenced(text)}"
        case v1.EmbeddedResource(resource=resource):
            return f"`{resource.uri}`"
        case Unknown(tag=tag):
            return f"*({tag})*"


def _tool_call(call: ToolCallState) -> str:
    heading = f"- **{_escaped(call.title or call.id)}** ({call.kind}, {_STATUS_MARKS.get(call.status, 'not finished')})"
    details = "\n\n".join(_result(content) for content in call.content)
    return heading if not details else f"{heading}\n\n{_indented(details)}"


def _result(content: v1.ToolCallContent | v2.Diff) -> str:
    match content:
        case v1.Content(content=block):
            return _block(block)
        case v1.Diff(path=path, deleted=True, old_text=None):
            return f"*(deleted {_escaped(path)})*"
        case v1.Diff() as diff:
            return fenced(diff.unified(), "diff")
        case v1.Terminal(terminal_id=terminal):
            return f"*(terminal {terminal})*"
        case Unknown(tag=tag):
            return f"*({tag})*"
        case changed:
            return _changes(changed)


def _changes(diff: v2.Diff) -> str:
    """The patch of a diff of version 2; without one, what happened to each file."""
    if diff.patch is not None:
        return fenced(diff.patch.text.rstrip("\n"), "diff")
    return "\n\n".join(f"*({_escaped(line)})*" for line in diff.summary)


def _step(entry: v1.PlanEntry) -> str:
    return f"- [{'x' if entry.status == 'completed' else ' '}] {entry.content}"


def fenced(text: str, language: str = "") -> str:
    """Text as a code block, with a fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.split("\n"))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", text.replace("\n", " "))
