"""Models over OpenAI's responses. Nothing is stored at the provider: the whole conversation goes along each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, convert, field

from accord_tools.coder.chat_completions import OpenAiClient
from accord_tools.coder.model import (
    Call,
    Event,
    Finished,
    GrowingAnswer,
    Image,
    Json,
    Message,
    ModelError,
    ModelRequest,
    Part,
    Result,
    Stop,
    Text,
    TextDelta,
    Thought,
    ThoughtDelta,
    Usage,
    read,
    shown,
)


class GrowingResponse(GrowingAnswer):
    """An answer as it comes; its last event has all of it."""

    def __init__(self) -> None:
        self._whole: WholeResponse | None = None

    def add(self, event: Any) -> Iterator[Event]:
        """Take one more event; what it adds that people read."""
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                yield TextDelta(event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield ThoughtDelta(event.delta)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._whole = read(event.response, WholeResponse)
            case "error":
                self._whole = WholeResponse(error=StreamedEvent(event.message))
            case _:
                pass

    def finished(self, provider: str, /) -> Finished | None:
        """The whole answer; None if it has not come. Raises ModelError if the provider says that it failed."""
        if self._whole is not None and self._whole.error is not None:
            raise ModelError("server", f"{provider} failed: {shown(self._whole.error.message)}")
        return None if self._whole is None else finished(self._whole)


class Responses(OpenAiClient):
    """The responses of OpenAI, or of what speaks as it does."""

    growing = GrowingResponse

    async def open(self, question: ModelRequest) -> Any:
        """Begin a request."""
        return await self.client.responses.create(**request_of(question))


class StreamedEvent(Struct):
    message: str = "it failed"


class Incomplete(Struct):
    reason: str = ""


class ResponseOutputDetails(Struct):
    reasoning_tokens: int | None = None


class ResponseUsage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    output_tokens_details: ResponseOutputDetails = field(default_factory=ResponseOutputDetails)


class WholeResponse(Struct):
    """What is read of a whole answer."""

    output: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    usage: ResponseUsage = field(default_factory=ResponseUsage)
    incomplete_details: Incomplete = field(default_factory=Incomplete)
    error: StreamedEvent | None = None


class Content(Struct):
    text: str = ""
    refusal: str = ""


class OutputItem(Struct):
    """What is read of an item of an answer, of whichever type."""

    type: str
    content: list[Content] = field(default_factory=list[Content])
    summary: list[Content] = field(default_factory=list[Content])
    call_id: str = ""
    name: str = ""
    arguments: str = "{}"


_STOPS: dict[str, Stop] = {"max_output_tokens": "length", "content_filter": "refusal"}


def finished(whole: WholeResponse) -> Finished:
    """The whole answer."""
    parts: list[Part] = []
    for raw in whole.output:
        item = convert(raw, OutputItem)
        match item.type:
            case "message":
                parts.append(Text("".join(it.text or it.refusal for it in item.content)))
            case "reasoning":
                parts.append(Thought("\n".join(it.text for it in item.summary), raw))
            case "function_call":
                parts.append(Call(item.call_id, item.name, item.arguments))
            case _:
                pass
    usage = Usage(
        whole.usage.input_tokens, whole.usage.output_tokens, whole.usage.output_tokens_details.reasoning_tokens
    )
    if any(isinstance(part, Call) for part in parts):
        return Finished(parts, "calls", usage)
    return Finished(parts, _STOPS.get(whole.incomplete_details.reason, "end"), usage)


def request_of(question: ModelRequest) -> Json:
    """A question as the API takes it."""
    request: Json = {
        "model": question.model,
        "instructions": question.system,
        "input": wire_items(question.messages),
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if question.tools:
        request["tools"] = [
            {
                "type": "function",
                "name": it.name,
                "description": it.description,
                "parameters": it.schema,
                "strict": False,
            }
            for it in question.tools
        ]
    if question.effort:
        request["reasoning"] = {"effort": question.effort, "summary": "auto"}
    return request


def wire_items(messages: Sequence[Message]) -> list[Json]:
    """Messages as the items that the API takes."""
    items: list[Json] = []
    for message in messages:
        user: list[Json] = []
        for part in message.parts:
            match part:
                case Text() if message.role == "user":
                    user.append({"type": "input_text", "text": part.text})
                case Text():
                    said: list[Json] = [{"type": "output_text", "text": part.text, "annotations": []}]
                    items.append({"type": "message", "role": "assistant", "content": said})
                case Image():
                    user.append(_picture(part))
                case Thought():
                    if part.raw.get("type") == "reasoning":
                        items.append({name: value for name, value in part.raw.items() if name != "status"})
                case Call():
                    call = {"type": "function_call", "call_id": part.id, "name": part.name}
                    items.append({**call, "arguments": part.arguments or "{}"})
                case Result():
                    items.append({"type": "function_call_output", "call_id": part.call_id, "output": part.text})
                    user += map(_picture, part.images)
        if user:
            items.append({"type": "message", "role": "user", "content": user})
    return items


def _picture(image: Image) -> Json:
    return {"type": "input_image", "image_url": f"data:{image.mime_type};base64,{image.data}"}
