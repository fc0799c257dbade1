"""Models over chat completions, which most providers and local servers offer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from accord.coder.conversation import Call, Image, Json, Message, Part, Result, Text, Thought
from accord.coder.models.failures import broken
from accord.coder.models.model import Considered, Event, Finished, Question, Spoken, Stop, Usage
from accord.coder.models.openai_client import OpenAiClient

_STOPS: dict[str, Stop] = {"tool_calls": "calls", "length": "length", "content_filter": "refusal"}


class ChatCompletions(OpenAiClient):
    """The chat completions of OpenAI, or of what speaks as it does."""

    async def answer(self, question: Question) -> AsyncIterator[Event]:
        """The answer as it streams."""
        growing = GrowingAnswer()
        try:
            stream: Any = await self.client.chat.completions.create(**request_of(question))
            async with stream:
                async for chunk in stream:
                    for event in growing.add(chunk.model_dump(mode="json", exclude_none=True)):
                        yield event
            if growing.stop is None:
                raise broken(self._name, "it did not say that it was finished")
        except Exception as error:
            raise self.trouble(error) from error
        yield growing.finished()


class GrowingAnswer:
    """An answer as it comes, chunk by chunk."""

    def __init__(self) -> None:
        self.stop: str | None = None
        self._text = ""
        self._thought = ""
        self._calls: dict[int, Call] = {}
        self._usage = Usage()

    def add(self, chunk: Json) -> list[Event]:
        """Take one more chunk; what it adds that people read."""
        events: list[Event] = []
        if told := chunk.get("usage"):
            thought = (told.get("completion_tokens_details") or {}).get("reasoning_tokens")
            self._usage = Usage(told.get("prompt_tokens") or 0, told.get("completion_tokens") or 0, thought)
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            self.stop = choice.get("finish_reason") or self.stop
            if piece := delta.get("reasoning_content") or delta.get("reasoning"):
                self._thought += piece
                events.append(Considered(piece))
            if piece := delta.get("content") or delta.get("refusal"):
                self._text += piece
                events.append(Spoken(piece))
            for part in delta.get("tool_calls") or ():
                self._add_call(part)
        return events

    def _add_call(self, part: Json) -> None:
        call = self._calls.setdefault(part.get("index", 0), Call("", "", ""))
        function = part.get("function") or {}
        call.id = part.get("id") or call.id
        call.name += function.get("name") or ""
        call.arguments += function.get("arguments") or ""

    def finished(self) -> Finished:
        """The whole answer."""
        parts: list[Part] = [Thought(self._thought)] if self._thought else []
        if self._text:
            parts.append(Text(self._text))
        for at, call in sorted(self._calls.items()):
            call.id = call.id or f"call_{at}"
            parts.append(call)
        return Finished(parts, "calls" if self._calls else _STOPS.get(self.stop or "", "end"), self._usage)


def request_of(question: Question) -> Json:
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
