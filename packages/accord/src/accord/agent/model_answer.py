"""`ModelAnswer`: the answer of a model, gathered from the events in which its API streams it.

The events may be objects of the packages `openai` and `anthropic`, plain dicts, or lines of server-sent events: their
members have the same names in all of these. Which API they belong to shows in each event, so nobody has to say it.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from accord.agent.model_messages import Json, ModelCall, Part, TextPart, ThoughtPart
from accord.errors import RequestError
from accord.printable import printable

ModelStream: TypeAlias = AsyncIterable[Any] | Iterable[Any]
"""The events of an answer: objects of the packages `openai` or `anthropic`, dicts, or lines of server-sent events."""


class TextDelta(Struct, frozen=True):
    """The next part of the model's text."""

    text: str


class ThoughtDelta(Struct, frozen=True):
    """The next part of the model's reasoning."""

    text: str


class ModelUsage(Struct, frozen=True):
    """How many tokens a model has read and written for an answer."""

    input: int = 0
    """Tokens read, from a cache or not."""
    output: int = 0
    """Tokens written."""
    thought: int | None = None
    """Tokens of reasoning, if the provider counts them."""


Delta: TypeAlias = TextDelta | ThoughtDelta | ThoughtPart


class ModelAnswer:
    """A model's answer, as far as it has arrived.

    >>> answer = ModelAnswer()
    >>> chunk = {"choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}]}
    >>> [*answer.add(chunk)]
    [TextDelta(text='Hello.')]
    >>> answer.text, answer.stop_reason
    ('Hello.', 'end_turn')
    """

    def __init__(self) -> None:
        self.usage = ModelUsage()
        """The tokens that the answer took."""
        self.stop_reason: Literal["end_turn", "max_tokens", "refusal"] | None = None
        """Why the model stopped, which the function of a turn may return; None while the answer is not complete."""
        self.error: str | None = None
        """The provider's error, if the answer broke off."""
        self._parts: list[Part] = []
        self._text: list[str] = []
        self._thought: list[str] = []
        self._blocks: dict[int, Json] = {}
        """Anthropic's content blocks, or calls of chat completions, that are not complete."""

    def check(self) -> None:
        """Raise RequestError, in the provider's words, for an answer that failed or broke off."""
        if self.error is None and self.stop_reason is None:
            self.error = "it ended before it was complete"
        if self.error is not None:
            raise RequestError.internal(f"the answer of the model failed: {printable(self.error)[:600]}")

    @property
    def parts(self) -> list[Part]:
        """The whole answer: texts, thoughts, and calls of tools."""
        loose: list[Part] = [ThoughtPart("".join(self._thought))] if self._thought else []
        loose += [TextPart("".join(self._text))] if self._text else []
        calls = [
            ModelCall(block["id"] or f"call_{at}", block["name"], block["arguments"])
            for at, block in sorted(self._blocks.items())
            if "arguments" in block
        ]
        return [*self._parts, *loose, *calls]

    @property
    def text(self) -> str:
        """The answer's text."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> list[ModelCall]:
        """The tool calls that the model requests; none if its answer was cut off, perhaps within an argument."""
        return [it for it in self.parts if isinstance(it, ModelCall)] if self.stop_reason == "end_turn" else []

    def add(self, event: Any) -> Iterator[Delta]:
        """Take the next event; yields the text that it adds, and thoughts in their provider's form."""
        if isinstance(event, str | bytes):
            event = _in_line(event)
        if _get(event, "choices") is not None:
            yield from self._add_chunk(event)
        elif (kind := _get(event, "type")) in self._TYPES:
            yield from self._TYPES[kind](self, event)
        elif (error := _get(event, "error")) is not None:
            self._fail(error)

    def _fail(self, error: Any) -> None:
        self.error = str(_get(error, "message") or error)

    # OpenAI's chat completions

    def _add_chunk(self, chunk: Any) -> Iterator[Delta]:
        if (usage := _get(chunk, "usage")) is not None:
            thought = _get(_get(usage, "completion_tokens_details"), "reasoning_tokens")
            self.usage = ModelUsage(_number(usage, "prompt_tokens"), _number(usage, "completion_tokens"), thought)
        for choice in _get(chunk, "choices"):
            delta = _get(choice, "delta")
            # Servers send a model's reasoning under either name.
            if thought := _get(delta, "reasoning_content") or _get(delta, "reasoning"):
                self._thought.append(thought)
                yield ThoughtDelta(thought)
            if text := _get(delta, "content") or _get(delta, "refusal"):
                self._text.append(text)
                yield TextDelta(text)
            for call in _get(delta, "tool_calls") or ():
                at = _number(call, "index")
                known = self._blocks.setdefault(at, {"id": "", "name": "", "arguments": ""})
                function = _get(call, "function")
                known["id"] = _get(call, "id") or known["id"]
                known["name"] += _get(function, "name") or ""
                known["arguments"] += _get(function, "arguments") or ""
            if reason := _get(choice, "finish_reason"):
                self.stop_reason = _STOPS.get(reason, "end_turn")

    # Anthropic's messages

    def _message_begins(self, event: Any) -> Iterator[Delta]:
        self._count_message(_get(_get(event, "message"), "usage"))
        return iter(())

    def _block_begins(self, event: Any) -> Iterator[Delta]:
        self._blocks[_number(event, "index")] = _plain(_get(event, "content_block"))
        return iter(())

    def _block_grows(self, event: Any) -> Iterator[Delta]:
        block, delta = self._blocks[_number(event, "index")], _get(event, "delta")
        name = _GROWS.get(_get(delta, "type"))
        if name is None:
            return
        block[name] = block.get(name, "") + (added := _get(delta, name))
        if name == "text":
            yield TextDelta(added)
        elif name == "thinking":
            yield ThoughtDelta(added)

    def _block_ends(self, event: Any) -> Iterator[Delta]:
        block = self._blocks.pop(_number(event, "index"), {})
        match block.get("type"):
            case "text":
                self._parts.append(TextPart(block["text"]))
            case "thinking" | "redacted_thinking":
                thought = ThoughtPart(block.get("thinking", ""), block)
                self._parts.append(thought)
                yield thought
            case "tool_use":
                arguments = block.get(_JSON) or msgspec.json.encode(block.get("input") or {}).decode()
                self._parts.append(ModelCall(block["id"], block["name"], arguments))
            case _:
                pass

    def _message_changes(self, event: Any) -> Iterator[Delta]:
        self._count_message(_get(event, "usage"))
        if reason := _get(_get(event, "delta"), "stop_reason"):
            self.stop_reason = _STOPS.get(reason, "end_turn")
        return iter(())

    def _count_message(self, usage: Any) -> None:
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        read = sum(_number(usage, name) for name in names)
        self.usage = ModelUsage(read or self.usage.input, _number(usage, "output_tokens") or self.usage.output)

    # OpenAI's responses

    def _text_grows(self, event: Any) -> Iterator[Delta]:
        yield TextDelta(_get(event, "delta"))

    def _thought_grows(self, event: Any) -> Iterator[Delta]:
        yield ThoughtDelta(_get(event, "delta"))

    def _item_ends(self, event: Any) -> Iterator[Delta]:
        yield from self._add_item(_get(event, "item"))

    def _add_item(self, item: Any) -> Iterator[Delta]:
        match _get(item, "type"):
            case "message":
                texts = [_get(it, "text") or _get(it, "refusal") or "" for it in _get(item, "content") or ()]
                self._parts.append(TextPart("".join(texts)))
            case "reasoning":
                summary = [_get(it, "text") or "" for it in _get(item, "summary") or ()]
                thought = ThoughtPart("\n".join(summary), _plain(item))
                self._parts.append(thought)
                yield thought
            case "function_call":
                arguments = _get(item, "arguments") or "{}"
                self._parts.append(ModelCall(_get(item, "call_id"), _get(item, "name"), arguments))
            case _:
                pass

    def _response_ends(self, event: Any) -> Iterator[Delta]:
        response = _get(event, "response")
        if not self._parts:  # servers that send nothing of an item but its text
            for item in _get(response, "output") or ():
                yield from self._add_item(item)
        usage = _get(response, "usage")
        thought = _get(_get(usage, "output_tokens_details"), "reasoning_tokens")
        self.usage = ModelUsage(_number(usage, "input_tokens"), _number(usage, "output_tokens"), thought)
        self.stop_reason = _STOPS.get(_get(_get(response, "incomplete_details"), "reason"), "end_turn")
        if (error := _get(response, "error")) is not None:
            self._fail(error)

    def _error(self, event: Any) -> Iterator[Delta]:
        self._fail(_get(event, "error") or event)
        return iter(())

    _TYPES: ClassVar[dict[Any, Callable[[ModelAnswer, Any], Iterator[Delta]]]] = {
        "content_block_delta": _block_grows,
        "content_block_start": _block_begins,
        "content_block_stop": _block_ends,
        "error": _error,
        "message_delta": _message_changes,
        "message_start": _message_begins,
        "response.completed": _response_ends,
        "response.failed": _response_ends,
        "response.incomplete": _response_ends,
        "response.output_item.done": _item_ends,
        "response.output_text.delta": _text_grows,
        "response.reasoning_summary_text.delta": _thought_grows,
        "response.reasoning_text.delta": _thought_grows,
        "response.refusal.delta": _text_grows,
    }


_STOPS: dict[Any, Literal["max_tokens", "refusal"]] = {
    "content_filter": "refusal",
    "length": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}

_JSON = "partial_json"
_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": _JSON}


def _get(value: Any, name: str) -> Any:
    """Return a member of an object or a dict; None if it is missing."""
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _number(value: Any, name: str) -> int:
    return _get(value, name) or 0


def _plain(value: Any) -> Json:
    """Return a value as a dict; the packages' objects are pydantic models."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return cast("Json", value.model_dump(mode="json", exclude_none=True, warnings=False))


def _in_line(line: str | bytes) -> Any:
    """Return the event in a line of server-sent events; None for a line without data."""
    text = line.decode() if isinstance(line, bytes) else line
    data = text.removeprefix("data:").strip() if text.startswith("data:") else ""
    return msgspec.json.decode(data) if data.startswith("{") else None


async def events_of(stream: ModelStream) -> AsyncGenerator[Any]:
    """Yield the events of a stream, and close it with this generator."""
    try:
        if isinstance(stream, AsyncIterable):
            async for event in stream:
                yield event
        else:
            for event in stream:
                yield event
    finally:
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        if close is not None and inspect.isawaitable(closing := close()):
            await closing
