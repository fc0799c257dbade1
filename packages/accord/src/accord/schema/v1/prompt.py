"""The prompt turn: asking, stopping, and how it ended. Pages: prompt-turn; proposal: end-turn-token-usage."""

from __future__ import annotations

from typing import Literal

from accord.schema.base import Model, Notification, ReadOpen, Request, Tolerant, Uint64, Unstable, unstable
from accord.schema.v1.content import ContentBlock, as_block
from accord.schema.v1.session import SessionId

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


@unstable
class Usage(Model):
    """The tokens that a session has used so far."""

    total_tokens: Uint64
    input_tokens: Uint64
    output_tokens: Uint64
    thought_tokens: Tolerant[Uint64 | None] = None
    cached_read_tokens: Tolerant[Uint64 | None] = None
    cached_write_tokens: Tolerant[Uint64 | None] = None


class PromptResponse(Model):
    """The result of `session/prompt`: why the turn ended."""

    stop_reason: ReadOpen[StopReason]
    usage: Unstable[Tolerant[Usage | None]] = None


class PromptRequest(Request[PromptResponse], method="session/prompt", patient=True):
    """Send a message of the user; the answer comes when the agent is done with it."""

    session_id: SessionId
    prompt: list[ContentBlock]

    @classmethod
    def of(cls, session_id: SessionId, *content: str | ContentBlock) -> PromptRequest:
        return cls(session_id, [as_block(block) for block in content])


class CancelNotification(Notification, method="session/cancel", immediate=True):
    """Stop the session's turn; its prompt is then answered with `cancelled`."""

    session_id: SessionId
