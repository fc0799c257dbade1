"""Models over OpenAI's responses. Nothing is stored at the provider: the whole conversation goes along each time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from accord.coder.conversation import Call, Image, Json, Message, Part, Result, Text, Thought
from accord.coder.models.failures import ModelError, broken, said_in, shown
from accord.coder.models.model import Considered, Event, Finished, Question, Spoken, Usage
from accord.coder.models.openai_client import OpenAiClient


class Responses(OpenAiClient):
    """The responses of OpenAI, or of what speaks as it does."""

    async def answer(self, question: Question) -> AsyncIterator[Event]:
        """The answer as it streams."""
        whole: Json | None = None
        try:
            stream: Any = await self.client.responses.create(**request_of(question))
            async with stream:
                async for event in stream:
                    match event.type:
                        case "response.output_text.delta" | "response.refusal.delta":
                            yield Spoken(event.delta)
                        case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                            yield Considered(event.delta)
                        case "response.completed" | "response.incomplete":
                            whole = event.response.model_dump(mode="json", exclude_none=True)
                        case "response.failed" | "error":
                            told = event.model_dump(mode="json")
                            words = said_in(told.get("response") or told) or told.get("message") or "it failed"
                            raise ModelError("server", f"{self._name} failed: {shown(words)}")
                        case _:
                            pass
            if whole is None:
                raise broken(self._name, "it did not say that it was finished")
        except Exception as error:
            raise self.trouble(error) from error
        yield finished(whole)


def finished(whole: Json) -> Finished:
    """The whole answer."""
    parts: list[Part] = []
    for item in whole.get("output") or ():
        match item.get("type"):
            case "message":
                text = "".join(it.get("text") or it.get("refusal") or "" for it in item.get("content") or ())
                parts.append(Text(text))
            case "reasoning":
                summary = "\n".join(it.get("text", "") for it in item.get("summary") or ())
                parts.append(Thought(summary, item))
            case "function_call":
                parts.append(Call(item["call_id"], item["name"], item.get("arguments") or "{}"))
            case _:
                pass
    told = whole.get("usage") or {}
    thought = (told.get("output_tokens_details") or {}).get("reasoning_tokens")
    usage = Usage(told.get("input_tokens") or 0, told.get("output_tokens") or 0, thought)
    if any(isinstance(part, Call) for part in parts):
        return Finished(parts, "calls", usage)
    reason = (whole.get("incomplete_details") or {}).get("reason")
    stop = {"max_output_tokens": "length", "content_filter": "refusal"}.get(reason or "", "end")
    return Finished(parts, stop, usage)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def request_of(question: Question) -> Json:
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
                    said = [{"type": "output_text", "text": part.text, "annotations": []}]
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
