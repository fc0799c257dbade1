"""Messages as they stream: what the user, the agent and its thinking say. Page: prompt-turn; proposal: message-id."""

from __future__ import annotations

from typing import NewType, Self

from accord.schema.base import Model, Tolerant
from accord.schema.v1.content import ContentBlock, TextContent

MessageId = NewType("MessageId", str)


class ContentChunk(Model):
    """A piece of a message; pieces with one `message_id` belong together."""

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
    """The user speaks (when a session is replayed)."""


class AgentMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """The agent speaks."""


class AgentThoughtChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """The agent thinks aloud."""
