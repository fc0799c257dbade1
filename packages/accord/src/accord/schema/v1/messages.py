"""Messages as they stream: what the user, the agent and its thinking say. Page: prompt-turn; proposal: message-id."""

from __future__ import annotations

from typing import NewType, Self

from accord.schema.base import Model, Tolerant
from accord.schema.v1.content import ContentBlock, TextContent

MessageId = NewType("MessageId", str)


class ContentChunk(Model):
    """Part of a message; parts with the same `message_id` belong together."""

    content: ContentBlock
    message_id: Tolerant[MessageId | None] = None

    @classmethod
    def of(cls, content: str | ContentBlock, message_id: MessageId | None = None) -> Self:
        """
        >>> AgentMessageChunk.of("Hello")
        AgentMessageChunk(content=TextContent(text='Hello'))
        """
        return cls(TextContent(content) if isinstance(content, str) else content, message_id)


class UserMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="user_message_chunk"):
    """Part of a user's message, sent when a session is replayed."""


class AgentMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """Part of a message of the agent."""


class AgentThoughtChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """Part of a thought of the agent."""
