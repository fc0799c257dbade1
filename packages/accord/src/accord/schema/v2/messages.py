"""Messages, whole and as they stream: what the user, the agent and its thinking say.

Differs from version 1: every message has an id, which the agent gives; a message may also come whole, and then replaces
what was there. User messages, agent messages and thoughts have id spaces of their own.
"""

from __future__ import annotations

from typing import Self

from msgspec import UNSET

from accord.schema.base import Model, Patch, Tolerant, ValidItems
from accord.schema.v1.messages import MessageId
from accord.schema.v2.content import ContentBlock, as_block
from accord.schema.v2.upserts import Upsert


class ContentChunk(Model):
    """Content to append to the message with this `message_id`."""

    content: ContentBlock
    message_id: MessageId

    @classmethod
    def of(cls, content: str | ContentBlock, message_id: MessageId) -> Self:
        """
        >>> AgentMessageChunk.of("Hello", MessageId("m-1"))
        AgentMessageChunk(content=TextContent(text='Hello'), message_id='m-1')
        """
        return cls(as_block(content), message_id)


class UserMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="user_message_chunk"):
    """Part of a user's message."""


class AgentMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """Part of a message of the agent."""


class AgentThoughtChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """Part of a thought of the agent."""


class UserMessage(Upsert, tag_field="sessionUpdate", tag="user_message"):
    """A whole message of the user, sent when a prompt is accepted and in a replay."""

    message_id: MessageId
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET

    @classmethod
    def of(cls, message_id: MessageId, *content: str | ContentBlock) -> Self:
        return cls(message_id, [as_block(block) for block in content])


class AgentMessage(Upsert, tag_field="sessionUpdate", tag="agent_message"):
    """A whole message of the agent."""

    message_id: MessageId
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET

    @classmethod
    def of(cls, message_id: MessageId, *content: str | ContentBlock) -> Self:
        return cls(message_id, [as_block(block) for block in content])


class AgentThought(Upsert, tag_field="sessionUpdate", tag="agent_thought"):
    """A whole thought of the agent."""

    message_id: MessageId
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET

    @classmethod
    def of(cls, message_id: MessageId, *content: str | ContentBlock) -> Self:
        return cls(message_id, [as_block(block) for block in content])
