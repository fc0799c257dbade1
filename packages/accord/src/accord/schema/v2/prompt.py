"""Prompting and cancelling. Proposal: prompt.

Differs from version 1: the answer comes when the message has its place in the conversation, not when the work is done;
that is told by an idle `StateUpdate`.
"""

from __future__ import annotations

from accord.schema.base import Model, Notification, Request
from accord.schema.v1.messages import MessageId
from accord.schema.v1.session import SessionId
from accord.schema.v2.content import ContentBlock, as_block


class PromptResponse(Model):
    """The result of `session/prompt`: the id under which the user's message is in the conversation."""

    message_id: MessageId


class PromptRequest(Request[PromptResponse], method="session/prompt", patient=True):
    """Send a message of the user; the answer comes when it has its place, which may be after other work."""

    session_id: SessionId
    prompt: list[ContentBlock]

    @classmethod
    def of(cls, session_id: SessionId, *content: str | ContentBlock) -> PromptRequest:
        return cls(session_id, [as_block(block) for block in content])


class CancelSessionNotification(Notification, method="session/cancel", immediate=True):
    """Stop the session's work and its waiting prompts; background work continues."""

    session_id: SessionId
