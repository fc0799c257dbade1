"""Models over Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from accord.installation import missing_extra
from accord_tools.coder.model import (
    Call,
    Event,
    Finished,
    GrowingAnswer,
    Image,
    Json,
    Message,
    ModelRequest,
    Part,
    ProviderClient,
    Result,
    Stop,
    Text,
    TextDelta,
    Thought,
    ThoughtDelta,
    Usage,
    read,
)

try:
    import anthropic
except ModuleNotFoundError as missing:
    raise missing_extra("agent", "a model of Anthropic's API") from missing

_STOPS: dict[str, Stop] = {"tool_use": "calls", "max_tokens": "length", "refusal": "refusal"}


class GrowingMessage(GrowingAnswer):
    """An answer as it comes; its last event has all of it."""

    def __init__(self) -> None:
        self._whole = AnthropicMessage()

    def add(self, event: Any) -> Iterator[Event]:
        """Take one more event; what it adds that people read."""
        match event.type:
            case "text":
                yield TextDelta(event.text)
            case "thinking":
                yield ThoughtDelta(event.thinking)
            case "message_stop":
                self._whole = read(event.message, AnthropicMessage)
            case _:
                pass

    def finished(self, _: str, /) -> Finished | None:
        """The whole answer; None if the provider did not say that it is."""
        whole = self._whole
        usage = Usage(whole.usage.read, whole.usage.output_tokens)
        stop = _STOPS.get(whole.stop_reason, "end")
        return Finished(parts_of(whole.content), stop, usage) if whole.stop_reason else None


class AnthropicMessages(ProviderClient):
    """Anthropic's API, or one that speaks as it does."""

    package, client_type, growing = anthropic, anthropic.AsyncAnthropic, GrowingMessage

    @property
    def name(self) -> str:
        """The provider, as errors name it."""
        return "Anthropic"

    async def open(self, question: ModelRequest) -> Any:
        """Begin a request."""
        more: dict[str, Any] = {}
        if question.effort:
            more = {"thinking": {"type": "adaptive"}, "output_config": {"effort": question.effort}}
        if question.tools:
            more["tools"] = [
                {"name": it.name, "description": it.description, "input_schema": it.schema} for it in question.tools
            ]
        return self.client.messages.stream(
            model=question.model,
            max_tokens=question.longest,
            system=[{"type": "text", "text": question.system, "cache_control": {"type": "ephemeral"}}],
            messages=wire_messages(question.messages),
            **more,
        )


def wire_messages(messages: Sequence[Message]) -> list[Json]:
    """Messages as the API takes them."""
    return [{"role": it.role, "content": [wire_part(part) for part in it.parts]} for it in messages]


def wire_part(part: Part) -> Json:
    """One part of a message as the API takes it."""
    match part:
        case Text():
            return {"type": "text", "text": part.text or " "}
        case Image():
            return {"type": "image", "source": {"type": "base64", "media_type": part.mime_type, "data": part.data}}
        case Thought():
            return part.raw or {"type": "text", "text": part.text}
        case Call():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": read_arguments(part.arguments)}
        case Result():
            content = [{"type": "text", "text": part.text or " "}, *map(wire_part, part.images)]
            return {"type": "tool_result", "tool_use_id": part.call_id, "content": content, "is_error": part.failed}


class AnthropicBlock(Struct):
    """What is read of a block of an answer, of whichever type."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: Json = field(default_factory=dict[str, Any])


class AnthropicUsage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    @property
    def read(self) -> int:
        """Tokens that were read, from a cache or not."""
        return self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens


class AnthropicMessage(Struct):
    """What is read of a whole answer."""

    content: list[Json] = field(default_factory=list[Json])
    stop_reason: str = ""
    usage: AnthropicUsage = field(default_factory=AnthropicUsage)


def parts_of(content: Sequence[Json]) -> list[Part]:
    """What an answer holds."""
    parts: list[Part] = []
    for raw in content:
        block = msgspec.convert(raw, AnthropicBlock)
        match block.type:
            case "text":
                parts.append(Text(block.text))
            case "thinking" | "redacted_thinking":
                parts.append(Thought(block.thinking, raw))
            case "tool_use":
                parts.append(Call(block.id, block.name, msgspec.json.encode(block.input).decode()))
            case _:
                pass
    return parts


def read_arguments(text: str) -> Json:
    """Arguments as an object; what is no object stands alone in one, so that the model sees what it wrote."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return {"invalid": text}
