"""The conversation with a model: its requests, its streamed answers, and its errors.

The conversation is in a form that belongs to no provider; it is stored with the session. Errors have the provider's own
words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct, field

from accord import AccordError
from accord.agent.model_answer import ModelAnswer, TextDelta, ThoughtDelta
from accord.agent.model_messages import (
    ModelMessage,
    Part,
    ResultPart,
    TextPart,
    ThoughtPart,
    add_parts,
    prompt_parts,
)
from accord.printable import printable
from accord.session import SessionState

Json: TypeAlias = dict[str, Any]


class ModelConversation(Struct):
    """The messages so far, and their cost; the state of a session."""

    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    used: int = 0
    """Tokens of the context that the latest request filled."""
    cost: float = 0.0
    read: int = 0
    """Tokens that the model has read in this session."""
    written: int = 0
    """Tokens that it has written."""
    summary: str | None = None
    """The summary of the conversation before the first message, once the beginning was replaced."""
    folder: str | None = None
    """The session's folder and git state when the session began: a prompt that stays the same is cached."""

    def add(self, role: Literal["user", "assistant"], *parts: Part) -> None:
        """Add a speaker's parts; consecutive parts of one speaker form one message."""
        add_parts(self.messages, role, parts)

    def close_calls(self, why: str) -> None:
        """Give each call without a result this one: no provider accepts a conversation with an open call."""
        answered = {part.call_id for message in self.messages for part in message.parts if isinstance(part, ResultPart)}
        for at, message in enumerate(list(self.messages)):
            missing = [ResultPart(call.id, why, failed=True) for call in message.calls if call.id not in answered]
            if not missing:
                continue
            following = self.messages[at + 1 : at + 2]
            if following and following[0].role == "user":
                following[0].parts[:0] = missing
            else:
                self.messages.insert(at + 1, ModelMessage("user", list(missing)))

    def follow(self, history: SessionState) -> None:
        """Begin again with the user's and the model's messages, after the session was rewound.

        The record has no results of tools: the model reads again what it still needs.
        """
        self.replace("")
        self.summary = None
        for said in history.messages:
            if said.speaker == "user" and said.text.strip() == "/clear":
                self.messages = []
            elif said.speaker == "user":
                self.add("user", *prompt_parts(said.content))
            elif said.speaker == "agent":
                self.add("assistant", TextPart(said.text))

    def replace(self, summary: str) -> None:
        """Begin again, with this summary of the conversation so far."""
        self.messages = []
        self.summary = summary
        self.used = 0


class ToolSpec(Struct, frozen=True):
    """A tool as a model knows it."""

    name: str
    description: str
    schema: Json


class ModelRequest(Struct, frozen=True, kw_only=True):
    """A request to a model."""

    model: str
    system: str
    messages: Sequence[ModelMessage]
    tools: Sequence[ToolSpec] = ()
    effort: str | None = None
    longest: int = 16_000
    """The most tokens of an answer."""


Event: TypeAlias = TextDelta | ThoughtDelta | ThoughtPart | ModelAnswer
"""The answer as it streams, and at the end the whole of it."""


LONGEST = 600

Trouble = Literal["login", "limit", "request", "server", "silent", "broken"]


class ModelError(AccordError):
    """A model gave no answer; the text is for the user."""

    def __init__(self, trouble: Trouble, detail: str) -> None:
        super().__init__(detail)
        self.trouble: Trouble = trouble
        """The kind of trouble."""

    @classmethod
    def of_status(cls, provider: str, status: int, body: object, fallback: str) -> ModelError:
        """The error for an answer with this HTTP status."""
        detail = f"{provider} answered {status}: {shown(said_in(body) or fallback)}"
        if status in (401, 403):
            return cls("login", f"{detail}. Check the API key, or store another with 'accord agent login'")
        if status == 429 or status >= 500:
            again = f"{detail}. It was asked several times; try again later"
            return cls("limit" if status == 429 else "server", again)
        return cls("request", detail)


def said_in(body: object) -> str:
    """Return the provider's text in an error's body, whichever of the usual forms it has."""
    read: object = body
    if isinstance(body, str):
        try:
            read = json.loads(body)
        except ValueError:
            return body.strip()
    if isinstance(read, Mapping):
        inner: Any = cast("Mapping[str, Any]", read).get("error", read)
        if isinstance(inner, Mapping):
            inner = cast("Mapping[str, Any]", inner).get("message")
        if isinstance(inner, str):
            return inner
    return ""


def shown(text: str) -> str:
    """A provider's words as a user may read them."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
