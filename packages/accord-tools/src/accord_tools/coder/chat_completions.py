"""Models over chat completions, which most providers and local servers offer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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
    import openai
except ModuleNotFoundError as missing:
    raise missing_extra("agent", "a model of OpenAI's API") from missing

_STOPS: dict[str, Stop] = {"tool_calls": "calls", "length": "length", "content_filter": "refusal"}


class FunctionDelta(Struct):
    name: str | None = None
    arguments: str | None = None


class CallDelta(Struct):
    index: int = 0
    id: str | None = None
    function: FunctionDelta = field(default_factory=FunctionDelta)


class Delta(Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    """Two names under which servers send what a model thinks."""
    tool_calls: list[CallDelta] | None = None


class ChatChoice(Struct):
    delta: Delta = field(default_factory=Delta)
    finish_reason: str | None = None


class ChatOutputDetails(Struct):
    reasoning_tokens: int | None = None


class ChatUsage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    completion_tokens_details: ChatOutputDetails = field(default_factory=ChatOutputDetails)


class Chunk(Struct):
    """What is read of a chunk of an answer."""

    choices: list[ChatChoice] = field(default_factory=list[ChatChoice])
    usage: ChatUsage | None = None


class GrowingChat(GrowingAnswer):
    """An answer as it comes, chunk by chunk."""

    def __init__(self) -> None:
        self._stop: str | None = None
        self._text = ""
        self._thought = ""
        self._calls: dict[int, Call] = {}
        self._usage = Usage()

    def add(self, event: Any) -> Iterator[Event]:
        """Take one more chunk; what it adds that people read."""
        chunk = read(event, Chunk)
        if told := chunk.usage:
            thought = told.completion_tokens_details.reasoning_tokens
            self._usage = Usage(told.prompt_tokens, told.completion_tokens, thought)
        for choice in chunk.choices:
            delta = choice.delta
            self._stop = choice.finish_reason or self._stop
            if piece := delta.reasoning_content or delta.reasoning:
                self._thought += piece
                yield ThoughtDelta(piece)
            if piece := delta.content or delta.refusal:
                self._text += piece
                yield TextDelta(piece)
            for part in delta.tool_calls or ():
                self._add_call(part)

    def _add_call(self, part: CallDelta) -> None:
        call = self._calls.setdefault(part.index, Call("", "", ""))
        call.id = part.id or call.id
        call.name += part.function.name or ""
        call.arguments += part.function.arguments or ""

    def finished(self, _: str, /) -> Finished | None:
        """The whole answer; None if the provider did not say that it is."""
        if self._stop is None:
            return None
        parts: list[Part] = [Thought(self._thought)] if self._thought else []
        if self._text:
            parts.append(Text(self._text))
        for at, call in sorted(self._calls.items()):
            call.id = call.id or f"call_{at}"
            parts.append(call)
        return Finished(parts, "calls" if self._calls else _STOPS.get(self._stop, "end"), self._usage)


class OpenAiClient(ProviderClient):
    """OpenAI's API, or one that speaks as it does."""

    package, client_type = openai, openai.AsyncOpenAI

    @property
    def name(self) -> str:
        """The provider, as errors name it."""
        host: str = self.client.base_url.host
        return "OpenAI" if host.endswith("openai.com") else host


class ChatCompletions(OpenAiClient):
    """The chat completions of OpenAI, or of what speaks as it does."""

    growing = GrowingChat

    async def open(self, question: ModelRequest) -> Any:
        """Begin a request."""
        return await self.client.chat.completions.create(**request_of(question))


def request_of(question: ModelRequest) -> Json:
    """A question as the API takes it."""
    request: Json = {
        "model": question.model,
        "messages": [{"role": "system", "content": question.system}, *wire_messages(question.messages)],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if question.tools:
        request["tools"] = [
            {"type": "function", "function": {"name": it.name, "description": it.description, "parameters": it.schema}}
            for it in question.tools
        ]
    if question.effort:
        request["reasoning_effort"] = question.effort
    return request


def wire_messages(messages: Sequence[Message]) -> list[Json]:
    """Messages as the API takes them; each result of a tool is a message of its own."""
    wire: list[Json] = []
    for message in messages:
        if message.role == "assistant":
            wire.append(_assistant(message))
            continue
        pictures: list[Image] = []
        for part in message.parts:
            if isinstance(part, Result):
                wire.append({"role": "tool", "tool_call_id": part.call_id, "content": part.text or " "})
                pictures += part.images
        content = [_content(part) for part in [*message.parts, *pictures] if isinstance(part, (Text, Image))]
        if content:
            wire.append({"role": "user", "content": content})
    return wire


def _assistant(message: Message) -> Json:
    said: Json = {"role": "assistant", "content": message.text or None}
    if message.calls:
        said["tool_calls"] = [
            {"id": it.id, "type": "function", "function": {"name": it.name, "arguments": it.arguments or "{}"}}
            for it in message.calls
        ]
    elif not message.text:
        said["content"] = " "
    return said


def _content(part: Text | Image) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text or " "}
    return {"type": "image_url", "image_url": {"url": f"data:{part.mime_type};base64,{part.data}"}}
