"""`Model`: what the agent asks of a model, and what comes back as it streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct, field

from accord_tools.coder.conversation import Json, Message, Part

Api: TypeAlias = Literal["anthropic", "openai", "responses"]
"""Anthropic's messages, OpenAI's chat completions, or OpenAI's responses."""

APIS: tuple[Api, ...] = ("anthropic", "openai", "responses")

PATIENCE = 120.0
"""Seconds in which something must come, or the model counts as silent."""

RETRIES = 4
"""How often a request is repeated that was refused for the moment, with growing pauses."""

Stop: TypeAlias = Literal["end", "calls", "length", "refusal"]


class ToolSpec(Struct, frozen=True):
    """A tool as a model knows it."""

    name: str
    description: str
    schema: Json


class Question(Struct, frozen=True, kw_only=True):
    """A request to a model."""

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    effort: str | None = None
    longest: int = 16_000
    """The most tokens of an answer."""


class Spoken(Struct, frozen=True):
    """The next piece of what the model says."""

    text: str


class Considered(Struct, frozen=True):
    """The next piece of what it thinks."""

    text: str


class Usage(Struct, frozen=True):
    """Tokens that were read and written."""

    input: int = 0
    output: int = 0
    thought: int | None = None


class Finished(Struct, frozen=True):
    """The whole answer."""

    parts: list[Part]
    stop: Stop
    usage: Usage = field(default_factory=Usage)


Event: TypeAlias = Spoken | Considered | Finished


class Model(Protocol):
    """A provider's models, over one of its APIs."""

    def answer(self, question: Question) -> AsyncGenerator[Event]:
        """The answer as it streams; the last event is `Finished`. Raises `ModelError`."""
        ...

    async def names(self) -> list[str]:
        """The models that there are, as the provider lists them. Raises `ModelError`."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...
