"""`adapted_agent`: an `accord.Agent` whose turns are run by another framework."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, cast

from msgspec import Struct

from accord import AccordError, Agent, Limits, RequestError, Spans, Store, Turn, v1
from accord.agent.model_messages import TextPart, prompt_parts
from accord.mistakes import wrong_type
from accord.redaction import mask_urls
from accord.session.placeholders import from_base64
from accord_adapters.narration import Narration, Shown
from accord_tools.coder.model import said_in, shown

StateT = TypeVar("StateT")

Work: TypeAlias = Callable[[Turn[StateT], Narration], Awaitable[str | None]]
"""Works on one prompt; returns a stop reason if it is not `end_turn`."""

_TURN: ContextVar[Turn[Any]] = ContextVar("accord_adapters.turn")


Accepted: TypeAlias = Literal["image", "audio", "embedded"]
"""Content beside text that `Agent(accepts=...)` may name."""


class ServeOptions(TypedDict, total=False):
    """The options of every `serve` beside the framework's own agent: how its work is shown, and options of `Agent`."""

    name: str
    """The agent's name; if left out, the framework's own name of it, or the framework's name."""
    kinds: Mapping[str, v1.ToolKind]
    """The kind of each tool's work, by the tool's name: `{"read_file": "read"}`. Editors show an icon for it."""
    context: int
    """The size of the model's context in tokens; clients show how full it is."""
    version: str
    title: str
    store: Store | str | Path
    """The store of the sessions, with the model's state of each. In memory if left out."""
    accepts: Collection[Accepted]
    """The content that prompts may have beside text; if left out, all that the adapter can pass to the framework."""
    local: bool
    prompt_while_working: Literal["queue", "cancel_first"]
    remember: Literal["session", "agent"]
    versions: Sequence[Literal[1, 2]]
    cancel_grace: float
    unstable: bool
    debug: bool
    limits: Limits
    spans: Spans


def adapted_agent(
    work: Work[StateT],
    state: type[StateT],
    name: str,
    accepts: Collection[Accepted],
    options: ServeOptions,
    *,
    shown_errors: tuple[type[BaseException], ...] = (),
) -> Agent[StateT]:
    """Return an agent that does this work for each prompt, and stores a `state` with each session.

    `shown_errors` are the framework's errors whose text is for the user; see `failures`.
    """
    of_agent: dict[str, Any] = {"accepts": accepts, **options}
    shown = Shown(kinds=of_agent.pop("kinds", {}), context=of_agent.pop("context", None))
    agent = Agent(of_agent.pop("name", name), state=state, **of_agent)

    @agent.on_prompt
    async def answer(turn: Turn[StateT]) -> str | None:
        token = _TURN.set(turn)
        try:
            async with Narration(turn, shown) as narration:
                return await work(turn, narration)
        except Exception as error:
            if (known := provider_error(error, shown_errors)) is None:
                raise
            raise known from error
        finally:
            _TURN.reset(token)

    return agent


def current_turn() -> Turn[Any]:
    """Return the turn that the calling tool works for: a framework's tool reaches the client's files and terminals
    through it.

    >>> async def read_file(path: str) -> str:
    ...     return await current_turn().client.read_text_file(path)

    Raises AccordError outside of a turn of an agent that `serve` made.
    """
    try:
        return _TURN.get()
    except LookupError:
        raise AccordError(
            "current_turn() was called outside of a turn: call it in a tool of an agent that serve() made"
        ) from None


def check_served(what: str, kind: str, value: object, expected: type[Any] | tuple[type[Any], ...]) -> None:
    """Raise TypeError unless the framework's agent is of its class."""
    if not isinstance(value, expected):
        raise wrong_type(what, kind, value)


# The content of a user's prompt, in the few forms that all frameworks know. PURE.


class Attachment(Struct, frozen=True):
    """Data that the user attached: an image, a sound or a file that is not text."""

    data: str
    """The data in base64."""
    mime_type: str
    uri: str | None = None

    @property
    def is_image(self) -> bool:
        return self.mime_type.startswith("image/")

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.data)

    @property
    def url(self) -> str:
        """Return a URL that contains the data."""
        return f"data:{self.mime_type};base64,{self.data}"

    @property
    def note(self) -> str:
        """Return the text for a model that cannot read it."""
        return (
            f"\n(The user attaches {self.uri or 'something'}, which is of type {self.mime_type} and cannot be read)\n"
        )


Part: TypeAlias = str | Attachment


def parts_of(prompt: Sequence[v1.ContentBlock]) -> list[Part]:
    """The prompt as texts and attachments, in order; neighbouring texts are one."""
    parts: list[Part] = []
    for block in prompt:
        part: Part = _attachment(block) or "".join(it.text for it in prompt_parts([block]) if isinstance(it, TextPart))
        if isinstance(part, Attachment) and from_base64(part.data) is None:
            part = part.note
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += "\n" + part
        else:
            parts.append(part)
    return parts


def images_only(parts: Sequence[Part]) -> list[Part]:
    """Return these parts for a model that reads text and images: other attachments become notes."""
    return [part if isinstance(part, str) or part.is_image else part.note for part in parts]


def _attachment(block: v1.ContentBlock) -> Attachment | None:
    match block:
        case v1.ImageContent() | v1.AudioContent():
            return Attachment(block.data, block.mime_type)
        case v1.EmbeddedResource(resource=v1.BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type)):
            return Attachment(blob, mime_type or "application/octet-stream", uri)
        case _:
            return None


# Errors of a model's provider
#
# Most errors in a framework's run are told to the client as "Internal error", because their texts may hold what is not
# for the user. Errors of the provider are for the user: a key that is refused, a limit that is reached. They are known
# by their class: those of the providers' own packages, and those that an adapter names for its framework.


PACKAGES = frozenset({"anthropic", "cohere", "groq", "mistralai", "openai"})
"""Packages of providers, all of whose errors are about a request to a model."""

OWN_ERRORS = ("APIError", "ApiError", "MistralError", "SDKError")
"""The classes, including subclasses, that these packages raise for a request."""


def provider_error(error: BaseException, own: tuple[type[BaseException], ...]) -> RequestError | None:
    """Return the client's error for this one; None if neither it nor its causes are the provider's."""
    for cause in _with_causes(error):
        if isinstance(cause, own) or _is_of_provider(cause):
            return RequestError.internal(_words(cause), reason=_reason(_status(cause)))
    return None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield this error and its causes; of a group, each."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", current).exceptions
        if current.__cause__ is not None:
            waiting.append(current.__cause__)


def _is_of_provider(error: BaseException) -> bool:
    return any(it.__module__.partition(".")[0] in PACKAGES and it.__name__ in OWN_ERRORS for it in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    status: Any = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _words(error: BaseException) -> str:
    words = said_in(getattr(error, "body", None)) or str(error) or type(error).__name__
    status = _status(error)
    return mask_urls(shown(words if status is None else f"the model's provider answered {status}: {words}"))


def _reason(status: int | None) -> str:
    """Return the kind of error, in the words of `accord agent`."""
    if status in (401, 403):
        return "login"
    if status == 429:
        return "limit"
    if status is None:
        return "broken"
    return "server" if status >= 500 else "request"
