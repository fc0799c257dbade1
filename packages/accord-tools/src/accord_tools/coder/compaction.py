"""Makes room in the model's context: a summary takes the place of the conversation so far."""

from __future__ import annotations

from contextlib import aclosing

from accord import Session
from accord_tools.coder.conversation import Conversation, Message, Text
from accord_tools.coder.models.model import Finished, Model, Question, Spoken

FULL = 0.8
"""The part of the context from which on it is made shorter."""

WISH = (
    "Summarise this conversation for yourself, because only the summary will remain. Keep: what the user wants and has "
    "decided, what was found out, which files were read and changed and how, what failed, and what is left to do. "
    "Write no more than 800 words, and nothing but the summary."
)


def is_full(conversation: Conversation, context: int) -> bool:
    """Whether the next request may not fit into the context."""
    return len(conversation.messages) > 1 and conversation.used > FULL * context


async def compact(session: Session[Conversation], model: Model, name: str, conversation: Conversation) -> None:
    """Let the model summarise the conversation, and put the summary in its place; the latest prompt stays."""
    latest = conversation.messages[-1]
    is_prompt = latest.role == "user" and any(isinstance(part, Text) for part in latest.parts)
    earlier = conversation.messages[:-1] if is_prompt else conversation.messages
    before = f"The conversation so far, in short:\n{conversation.summary}" if conversation.summary else ""
    async with session.compaction() as compaction:
        question = Question(model=name, system=f"You are a coding agent.\n\n{before}", messages=_with_wish(earlier))
        summary = ""
        async with aclosing(model.answer(question)) as events:
            async for event in events:
                if isinstance(event, Spoken):
                    await compaction.summary(event.text)
                elif isinstance(event, Finished):
                    summary = "".join(part.text for part in event.parts if isinstance(part, Text))
    if summary:
        conversation.replace(summary)
        if is_prompt:
            conversation.messages.append(latest)
        await session.save()


def _with_wish(messages: list[Message]) -> list[Message]:
    """The messages and the wish; no two messages of the user stand side by side."""
    last = messages[-1]
    if last.role == "assistant":
        return [*messages, Message("user", [Text(WISH)])]
    return [*messages[:-1], Message("user", [*last.parts, Text(WISH)])]
