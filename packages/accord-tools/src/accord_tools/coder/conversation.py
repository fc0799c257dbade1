"""The conversation with a model, in a form that belongs to no provider. It is kept with the session. PURE."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

Json: TypeAlias = dict[str, Any]


class Text(Struct, tag="text"):
    """Words."""

    text: str


class Image(Struct, tag="image"):
    """A picture, in base64."""

    data: str
    mime_type: str


class Thought(Struct, tag="thought"):
    """What the model thought; `raw` is the provider's own form of it, which it wants back as it was."""

    text: str
    raw: Json = field(default_factory=dict[str, Any])


class Call(Struct, tag="call"):
    """A tool that the model wants to use, with its arguments as the JSON text that it wrote."""

    id: str
    name: str
    arguments: str


class Result(Struct, tag="result"):
    """What a tool gave back."""

    call_id: str
    text: str
    failed: bool = False
    images: list[Image] = field(default_factory=list[Image])


Part: TypeAlias = Text | Image | Thought | Call | Result


class Message(Struct):
    """What the user or the model said; results of tools are the user's."""

    role: Literal["user", "assistant"]
    parts: list[Part]

    @property
    def calls(self) -> list[Call]:
        """The tools that the model wants to use."""
        return [part for part in self.parts if isinstance(part, Call)]

    @property
    def text(self) -> str:
        """The words of it."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


class Conversation(Struct):
    """The messages so far, and what they have cost; the state of a session."""

    messages: list[Message] = field(default_factory=list[Message])
    used: int = 0
    """Tokens of the context that the latest request filled."""
    cost: float = 0.0
    read: int = 0
    """Tokens that the model has read in this session."""
    written: int = 0
    """Tokens that it has written."""
    summary: str | None = None
    """What was said before the first message, once the beginning was replaced."""

    def add(self, role: Literal["user", "assistant"], *parts: Part) -> None:
        """Add what a speaker said; parts of one speaker in a row are one message."""
        if self.messages and self.messages[-1].role == role:
            self.messages[-1].parts += parts
        elif parts:
            self.messages.append(Message(role, list(parts)))

    def close_calls(self, why: str) -> None:
        """Give each call without a result this one: no provider takes a conversation with an open call."""
        answered = {part.call_id for message in self.messages for part in message.parts if isinstance(part, Result)}
        for at, message in enumerate(list(self.messages)):
            missing = [Result(call.id, why, failed=True) for call in message.calls if call.id not in answered]
            if not missing:
                continue
            following = self.messages[at + 1 : at + 2]
            if following and following[0].role == "user":
                following[0].parts[:0] = missing
            else:
                self.messages.insert(at + 1, Message("user", list(missing)))

    def replace(self, summary: str) -> None:
        """Begin again, with this summary of what was said so far."""
        self.messages = []
        self.summary = summary
        self.used = 0
