"""A conversation as models read it: its messages, and their forms in the requests of three APIs.

    session.history() ──▶ messages_of ──▶ [ModelMessage] ──▶ wire_messages(api) ──▶ plain dicts for a request

The APIs are Anthropic's messages, OpenAI's chat completions and OpenAI's responses. They agree on one rule, and refuse
a request that breaks it: the tool calls of an answer are followed by the result of each, before anything else. A record
has calls that were refused, cancelled, or cut off by a crash, so each call gets a result that says how it ended.

A provider signs or encrypts its model's reasoning, and wants it back unchanged. That form travels in the `_meta` of a
thought, under `THOUGHT_KEY`; a thought without it is left out of requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from accord.session import SessionState, ToolCallState, updates

Json: TypeAlias = dict[str, Any]

Api: TypeAlias = Literal["anthropic", "openai", "responses"]
"""Anthropic's messages, OpenAI's chat completions, or OpenAI's responses."""

API_WORDS: tuple[Api, ...] = ("anthropic", "openai", "responses")

THOUGHT_KEY = "accord.dev/thought"
"""The member of `_meta` with a thought in its provider's form."""


class TextPart(Struct, tag="text"):
    """Text that the user or the model wrote."""

    text: str


class ImagePart(Struct, tag="image"):
    """An image, in base64."""

    data: str
    mime_type: str


class FilePart(Struct, tag="file"):
    """Another file, in base64: a PDF or a sound."""

    data: str
    mime_type: str
    name: str

    @property
    def note(self) -> str:
        """The text for a model that does not take the file itself."""
        return f"\n(The user attaches {self.name}, of type {self.mime_type}, which cannot be read)\n"


class ThoughtPart(Struct, tag="thought"):
    """The model's reasoning; `raw` is the provider's form of it, which must be sent back unchanged."""

    text: str
    raw: Json = field(default_factory=dict[str, Any])


class ModelCall(Struct, tag="call"):
    """A tool that the model wants to use."""

    id: str
    """The call's id, as the model's provider names it."""
    name: str
    """The tool's name."""
    arguments: str
    """The arguments as the JSON text that the model wrote; `input` parses them."""

    @property
    def input(self) -> Json:
        """The arguments as an object; text that is not a JSON object is in one, under `invalid`."""
        try:
            return msgspec.json.decode(self.arguments or "{}", type=dict[str, Any])
        except (msgspec.DecodeError, msgspec.ValidationError):
            return {"invalid": self.arguments}


class ResultPart(Struct, tag="result"):
    """The result of a tool."""

    call_id: str
    text: str
    failed: bool = False
    images: list[ImagePart] = field(default_factory=list[ImagePart])


Part: TypeAlias = TextPart | ImagePart | FilePart | ThoughtPart | ModelCall | ResultPart


class ModelMessage(Struct):
    """A message of the user or the model; tool results are the user's."""

    role: Literal["user", "assistant"]
    parts: list[Part]

    @property
    def calls(self) -> list[ModelCall]:
        """The tools that the model wants to use."""
        return [part for part in self.parts if isinstance(part, ModelCall)]

    @property
    def text(self) -> str:
        """The message's text."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


def add_parts(messages: list[ModelMessage], role: Literal["user", "assistant"], parts: Iterable[Part]) -> None:
    """Add a speaker's parts; consecutive parts of one speaker form one message."""
    if not (given := list(parts)):
        return
    if messages and messages[-1].role == role:
        messages[-1].parts += given
    else:
        messages.append(ModelMessage(role, given))


# From the session's record


def prompt_parts(prompt: Sequence[updates.ContentBlock]) -> list[Part]:
    """Return a prompt as a model reads it."""
    return [_prompt_part(block) for block in prompt]


def _prompt_part(block: updates.ContentBlock) -> Part:
    match block:
        case updates.TextContent():
            return TextPart(block.text)
        case updates.ImageContent():
            return ImagePart(block.data, block.mime_type)
        case updates.AudioContent():
            return FilePart(block.data, block.mime_type, "a sound")
        case updates.ResourceLink():
            return TextPart(f"\n(The user points to {block.uri})\n")
        case updates.EmbeddedResource(resource=updates.TextResourceContents() as inner):
            return TextPart(f"\n<file uri={inner.uri!r}>\n{inner.text}\n</file>\n")
        case updates.EmbeddedResource(resource=updates.BlobResourceContents() as inner):
            kind = inner.mime_type or "application/octet-stream"
            is_image = kind.startswith("image/")
            return ImagePart(inner.blob, kind) if is_image else FilePart(inner.blob, kind, inner.uri)
        case _:
            return TextPart("\n(The user attaches something that cannot be read)\n")


def messages_of(history: SessionState) -> list[ModelMessage]:
    """Return the messages of a session: its text, and the tool calls that have a name, each with its result.

    A tool call without a name is the agent's own work: no model has requested it.
    """
    messages: list[ModelMessage] = []
    results: list[ResultPart] = []
    for entry in history.timeline:
        if entry.refused:
            continue
        if isinstance(entry, ToolCallState):
            if entry.name is not None:
                arguments = "{}" if entry.raw_input is None else msgspec.json.encode(entry.raw_input).decode()
                add_parts(messages, "assistant", [ModelCall(entry.id, entry.name, arguments)])
                results.append(_result(entry))
            continue
        add_parts(messages, "user", results)
        results = []
        if entry.speaker == "user":
            add_parts(messages, "user", prompt_parts(entry.content))
        elif entry.speaker == "agent":
            add_parts(messages, "assistant", [TextPart(entry.text)] if entry.text.strip() else [])
        else:
            kept: list[Any] = [
                (block.meta or {}).get(THOUGHT_KEY) for block in entry.content if isinstance(block, updates.TextContent)
            ]
            add_parts(messages, "assistant", [ThoughtPart("", raw) for raw in kept if raw is not None])
    add_parts(messages, "user", results)
    return messages


_ENDINGS = {
    "failed": "It did not run to its end: it failed, or the user refused or cancelled it.",
    "cancelled": "The user cancelled it.",
}


def _result(call: ToolCallState) -> ResultPart:
    """Return a call's result for the model: its raw output, else its text; and how it ended, unless it succeeded."""
    output = call.raw_output
    text = call.text if output is None else output if isinstance(output, str) else msgspec.json.encode(output).decode()
    blocks = [part.content for part in call.content if isinstance(part, updates.Content)]
    images = [ImagePart(it.data, it.mime_type) for it in blocks if isinstance(it, updates.ImageContent)]
    if call.status != "completed" and not (call.status == "failed" and text.strip()):
        ending = _ENDINGS.get(call.status, "It has not ended, or the agent ended while it ran.")
        text = f"{text}\n{ending}".lstrip()
    return ResultPart(call.id, text, call.status != "completed", images)


# Requests


def wire_messages(api: Api, messages: Sequence[ModelMessage]) -> list[Json]:
    """Return messages in an API's form: the `messages` of a request, or the `input` of OpenAI's responses."""
    return _FORMS[api](messages)


_IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""The images that all three APIs take."""

NO_OUTPUT = "(no output)"


def _id(call_id: str) -> str:
    """Return a call's id, in the characters that all three APIs accept."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)


def _user_content(parts: Iterable[Part], forms: Mapping[type[Part], Callable[[Any], Json | None]]) -> list[Json]:
    """Return the user's own parts in an API's form; a note stands for what the API does not accept."""
    content: list[Json] = []
    for part in parts:
        taken = forms[type(part)](part) if type(part) in forms else None
        if taken is None and isinstance(part, FilePart):
            taken = forms[TextPart](TextPart(part.note))
        elif taken is None and isinstance(part, ImagePart):
            taken = forms[TextPart](TextPart(f"\n(An image of type {part.mime_type}, which cannot be read)\n"))
        if taken is not None:
            content.append(taken)
    return content


def _split(message: ModelMessage) -> tuple[list[ResultPart], list[Part]]:
    """Return the results in a message of the user, which come first; and the rest, with the images of the results."""
    results = [part for part in message.parts if isinstance(part, ResultPart)]
    rest = [part for part in message.parts if not isinstance(part, ResultPart)]
    return results, [*(image for result in results for image in result.images), *rest]


def _said(message: ModelMessage, *thoughts: str) -> list[Part]:
    """Return the model's message, with its thoughts of these types; omit one that nothing follows."""
    parts = list(message.parts)
    while parts and isinstance(parts[-1], ThoughtPart):
        parts.pop()
    return [it for it in parts if not isinstance(it, ThoughtPart) or it.raw.get("type") in thoughts]


def _data_url(part: ImagePart | FilePart) -> str:
    return f"data:{part.mime_type};base64,{part.data}"


# Anthropic's messages


def _anthropic(messages: Sequence[ModelMessage]) -> list[Json]:
    wire: list[Json] = []
    for message in messages:
        if message.role == "user":
            content = [_anthropic_result(it) for it in message.parts if isinstance(it, ResultPart)]
            content += _user_content(message.parts, _ANTHROPIC_FORMS)
        else:
            content = [it for it in map(_anthropic_said, _said(message, "thinking", "redacted_thinking")) if it]
        if content:
            wire.append({"role": message.role, "content": content})
    if wire and wire[0]["role"] == "assistant":  # the API wants the user first
        wire.insert(0, {"role": "user", "content": [{"type": "text", "text": "(The agent begins.)"}]})
    return wire


def _text(part: TextPart) -> Json | None:
    return {"type": "text", "text": part.text} if part.text.strip() else None


def _anthropic_source(part: ImagePart | FilePart) -> Json:
    return {"type": "base64", "media_type": part.mime_type, "data": part.data}


def _anthropic_image(part: ImagePart) -> Json | None:
    return {"type": "image", "source": _anthropic_source(part)} if part.mime_type in _IMAGES else None


def _anthropic_file(part: FilePart) -> Json | None:
    if part.mime_type != "application/pdf":
        return None
    return {"type": "document", "source": _anthropic_source(part), "title": part.name}


_ANTHROPIC_FORMS: dict[type[Part], Callable[[Any], Json | None]] = {
    TextPart: _text,
    ImagePart: _anthropic_image,
    FilePart: _anthropic_file,
}


def _anthropic_result(part: ResultPart) -> Json:
    content = _user_content([TextPart((part.text.strip() and part.text) or NO_OUTPUT), *part.images], _ANTHROPIC_FORMS)
    return {"type": "tool_result", "tool_use_id": _id(part.call_id), "content": content, "is_error": part.failed}


def _anthropic_said(part: Part) -> Json | None:
    match part:
        case TextPart():
            return _text(part)
        case ThoughtPart():
            return part.raw
        case ModelCall():
            return {"type": "tool_use", "id": _id(part.id), "name": _id(part.name), "input": part.input}
        case _:
            return None


# OpenAI's chat completions


def _openai(messages: Sequence[ModelMessage]) -> list[Json]:
    wire: list[Json] = []
    for message in messages:
        if message.role == "user":
            results, rest = _split(message)
            wire += [
                {"role": "tool", "tool_call_id": _id(it.call_id), "content": it.text or NO_OUTPUT} for it in results
            ]
            if content := _user_content(rest, _OPENAI_FORMS):
                wire.append({"role": "user", "content": content})
        elif message.calls or message.text.strip():
            said: Json = {"role": "assistant", "content": message.text or None}
            if message.calls:
                said["tool_calls"] = [
                    {
                        "id": _id(it.id),
                        "type": "function",
                        "function": {"name": _id(it.name), "arguments": it.arguments or "{}"},
                    }
                    for it in message.calls
                ]
            wire.append(said)
    return wire


def _openai_image(part: ImagePart) -> Json | None:
    return {"type": "image_url", "image_url": {"url": _data_url(part)}} if part.mime_type in _IMAGES else None


_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def _openai_file(part: FilePart) -> Json | None:
    if sound := _SOUNDS.get(part.mime_type):
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": sound}}
    if part.mime_type != "application/pdf":
        return None
    return {"type": "file", "file": {"filename": part.name, "file_data": _data_url(part)}}


_OPENAI_FORMS: dict[type[Part], Callable[[Any], Json | None]] = {
    TextPart: _text,
    ImagePart: _openai_image,
    FilePart: _openai_file,
}


# OpenAI's responses


def _responses(messages: Sequence[ModelMessage]) -> list[Json]:
    items: list[Json] = []
    for message in messages:
        if message.role == "assistant":
            items += filter(None, map(_response_said, _said(message, "reasoning")))
            continue
        results, rest = _split(message)
        items += [
            {"type": "function_call_output", "call_id": _id(it.call_id), "output": it.text or NO_OUTPUT}
            for it in results
        ]
        if content := _user_content(rest, _RESPONSES_FORMS):
            items.append({"type": "message", "role": "user", "content": content})
    return items


def _response_said(part: Part) -> Json | None:
    match part:
        case TextPart() if part.text.strip():
            return {"type": "message", "role": "assistant", "content": part.text}
        case ThoughtPart() if part.raw.get("encrypted_content"):  # the API may not have kept any other
            return {name: value for name, value in part.raw.items() if name != "status"}
        case ModelCall():
            call = {"type": "function_call", "call_id": _id(part.id), "name": _id(part.name)}
            return {**call, "arguments": part.arguments or "{}"}
        case _:
            return None


def _response_text(part: TextPart) -> Json | None:
    return {"type": "input_text", "text": part.text} if part.text.strip() else None


def _response_image(part: ImagePart) -> Json | None:
    if part.mime_type not in _IMAGES:
        return None
    return {"type": "input_image", "image_url": _data_url(part), "detail": "auto"}


def _response_file(part: FilePart) -> Json | None:
    if part.mime_type != "application/pdf":
        return None
    return {"type": "input_file", "filename": part.name, "file_data": _data_url(part)}


_RESPONSES_FORMS: dict[type[Part], Callable[[Any], Json | None]] = {
    TextPart: _response_text,
    ImagePart: _response_image,
    FilePart: _response_file,
}

_FORMS: dict[Api, Callable[[Sequence[ModelMessage]], list[Json]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "responses": _responses,
}
