"""The dialect of version 1: updates go as they are made, and the answer to a prompt tells how its turn ended."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from accord.dialects.dialect import Dialect
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.capabilities import updates_of, updates_that_need
from accord.schema.unknown_members import unknown_members, with_unknown_members

REMEMBERED = 10_000
"""Tool calls of a session that are known as begun; a change of an older one that has a title begins it anew."""


@functools.cache
def _known() -> frozenset[type[Any]]:
    """The updates that version 1 has."""
    return updates_of(v1.SessionNotification)


@functools.cache
def sendable() -> frozenset[type[Any]]:
    """Updates that can simply be sent."""
    known = _known() - {v1.ToolCall, v1.ToolCallProgress}
    return known.difference(updates_that_need(v1.SessionNotification)) | {Unknown}


class V1Dialect(Dialect):
    """How a session speaks in version 1."""

    version = 1
    cancelled_status = "failed"  # tool-calls, Status: version 1 has no other word for it
    can_pause = False
    replaces_messages = False
    commands_come_with_answers = False

    def __init__(self) -> None:
        self.agent_chunk = v1.AgentMessageChunk
        self.thought_chunk = v1.AgentThoughtChunk
        self.user_chunk = v1.UserMessageChunk
        self.sendable = sendable()
        self._begun: dict[str, None] = {}
        """The tool calls that the client knows, the newest of them."""

    def message(self, message_id: v1.MessageId, blocks: Sequence[v1.ContentBlock]) -> Sequence[Any]:
        return [v1.AgentMessageChunk(block, message_id) for block in blocks]

    def fitted(self, update: Any) -> Sequence[Any]:
        if update.__class__ is v1.ToolCall:
            self._begins(update.tool_call_id)
        if update.__class__ in _known():
            return (update,)
        from accord.schema.conversion import all_to_v1  # loads the types of version 2, which the author has loaded

        return [self._as_beginning(it) for it in all_to_v1(update)]

    def _as_beginning(self, update: Any) -> Any:
        """A change of a tool call that the client does not know yet is its beginning."""
        if update.__class__ is not v1.ToolCallProgress or update.title is None or update.tool_call_id in self._begun:
            return update
        self._begins(update.tool_call_id)
        fields = {name: getattr(update, name) for name in v1.ToolCall.__struct_fields__}
        given = {name: value for name, value in fields.items() if value is not None}
        return with_unknown_members(v1.ToolCall(**given), unknown_members(update))

    def _begins(self, tool_call_id: v1.ToolCallId) -> None:
        self._begun[tool_call_id] = None
        if len(self._begun) > REMEMBERED:
            del self._begun[next(iter(self._begun))]


V1_ONLY: frozenset[Any] = frozenset((v1.ToolCall, v1.ToolCallProgress, v1.Plan))
"""The updates that only version 1 has."""
