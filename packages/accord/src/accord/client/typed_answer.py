"""Typed answers: a type travels in the prompt as a JSON Schema, and the answer becomes a value of the type.

A model writes JSON as it likes: bare, in a fence, after a sentence. So the first JSON of the answer that fits counts.
If none fits, the agent gets one message with the problem, and answers again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar, get_origin

import msgspec

from accord.client.reply import Outcome, Reply
from accord.errors import OutputError
from accord.mistakes import wrong_type
from accord.session import updates

T = TypeVar("T")

AGAIN = "Answer again, with nothing but JSON that fits the schema."

_FENCE = re.compile(r"^ {0,3}```[^\n]*\n(.*?)^ {0,3}```", re.MULTILINE | re.DOTALL)
MOST_PLACES = 20
"""How many brackets of an answer are tried as the beginning of JSON."""


class OutputType(Generic[T]):
    """A type that an answer must fit: a dataclass, a Struct, a TypedDict, a model of pydantic, `list[str]` and so on.

    >>> OutputType(list[int]).read("The numbers:\\n```json\\n[1, 2]\\n```")
    [1, 2]
    """

    def __init__(self, wanted: Any) -> None:
        self._name: str = getattr(wanted, "__name__", None) or repr(wanted)
        self.schema: dict[str, Any]
        """The JSON Schema of the type."""
        self._decode: Callable[[str], T]
        pydantic: Any = sys.modules.get("pydantic")
        model: Any = wanted
        try:
            if hasattr(model, "model_json_schema"):  # a class of pydantic, or one with its two methods
                self.schema, self._decode = model.model_json_schema(), model.model_validate_json
            else:
                self.schema, self._decode = msgspec.json.schema(wanted), msgspec.json.Decoder[T](wanted).decode
        except (TypeError, AttributeError) as error:
            if pydantic is None or (not isinstance(wanted, type) and get_origin(wanted) is None):
                allowed = "a dataclass, a TypedDict, a msgspec.Struct, a model of pydantic, list[str] and the like"
                raise wrong_type("session.prompt(output=...)", allowed, wanted) from error
            adapter = pydantic.TypeAdapter(wanted)  # a type that contains models of pydantic
            self.schema, self._decode = adapter.json_schema(), adapter.validate_json

    @property
    def request(self) -> str:
        """Return the text that is added to the prompt."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"\nAnswer with nothing but JSON that fits this JSON Schema:\n{schema}\n"

    def read(self, text: str) -> T:
        """Return the value in an answer; raises OutputError if none fits."""
        problem = None
        for candidate in _candidates(text):
            try:
                json.loads(candidate)
            except (ValueError, RecursionError):
                continue
            try:
                return self._decode(candidate)
            except (ValueError, msgspec.ValidationError) as error:  # of pydantic or of msgspec
                problem = problem or _problem(error)
        raise OutputError(problem or "there is no JSON in it", text, self._name)


def _candidates(text: str) -> Iterator[str]:
    """Yield the parts of an answer that may be the requested value, the likeliest first."""
    yield text.strip()
    yield from reversed(_FENCE.findall(text))
    decoder = json.JSONDecoder()
    for bracket in islice(re.finditer(r"[{\[]", text), MOST_PLACES):
        try:
            yield text[bracket.start() : decoder.raw_decode(text, bracket.start())[1]]
        except (ValueError, RecursionError):
            continue
    yield from _quoted(text.strip())


def _quoted(text: str) -> Iterator[str]:
    """Return a text as a JSON string: models omit the quotes of a string, if it is their whole answer."""
    if text and "\n" not in text and not text.startswith(("{", "[")):
        yield json.dumps(text)


def _problem(error: Exception) -> str:
    """Describe what does not fit, where, and what was expected there."""
    errors: Any = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    found: Any = errors()
    return "; ".join(
        f"{it['msg']}, got {it['input']!r:.80} - at `{'.'.join(map(str, ('$', *it['loc'])))}`" for it in found[:5]
    )


class TypedReply(Awaitable[T]):
    """The reply to a prompt with `output=`: await it for the answer, as a value of the type."""

    def __init__(self, output: OutputType[T], reply: Reply, again: Callable[[str], Reply]) -> None:
        self.reply = reply
        """The reply of the turn: iterate it for the updates, or cancel it."""
        self.repair: Reply | None = None
        """The reply of the turn in which the agent repairs an answer that did not fit."""
        self._output = output
        self._again = again

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the answer. Raises OutputError if neither it nor its repair fits."""
        return self._answer().__await__()

    async def _answer(self) -> T:
        text = _text_of(await self.reply)
        try:
            return self._output.read(text)
        except OutputError as error:
            if self.repair is None:
                self.repair = self._again(f"Your answer does not fit: {error.problem}\n{AGAIN}")
        return self._output.read(_text_of(await self.repair))

    def __repr__(self) -> str:
        return "<an answer as data: write `await session.prompt(..., output=...)`>"


def typed_prompt(
    prompt: Callable[..., Any], blocks: list[Any], wanted: Any, first: dict[str, Any], again: dict[str, Any]
) -> TypedReply[Any]:
    """Send a prompt for an answer of this type; `again` has the options that a repair has too, `first` the others."""
    output = OutputType[Any](wanted)
    reply: Reply = prompt([*blocks, updates.TextContent(output.request)], **first, **again)
    return TypedReply(output, reply, partial(prompt, **again))


def _text_of(outcome: Outcome) -> str:
    if outcome.stop_reason != "end_turn":
        raise OutputError(f"the turn ended with {outcome.stop_reason!r} before the answer was complete", outcome.text)
    return outcome.text
