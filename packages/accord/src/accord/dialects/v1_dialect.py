"""The dialect of version 1: updates go as they are made, and the answer to a prompt tells how its turn ended."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from accord.dialects.dialect import Dialect
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.capabilities import updates_of, updates_that_need


@functools.cache
def sendable() -> frozenset[type[Any]]:
    """Updates that can simply be sent."""
    known = updates_of(v1.SessionNotification) - {v1.ToolCall, v1.ToolCallProgress}
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

    def message(self, message_id: v1.MessageId, blocks: Sequence[v1.ContentBlock]) -> Sequence[Any]:
        return [v1.AgentMessageChunk(block, message_id) for block in blocks]

    def fitted(self, update: Any) -> Sequence[Any]:
        if update.__class__ in updates_of(v1.SessionNotification):
            return (update,)
        from accord.schema.conversion import all_to_v1  # loads the types of version 2, which the author has loaded

        return all_to_v1(update)
