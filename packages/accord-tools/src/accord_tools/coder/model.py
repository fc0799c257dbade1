"""`Model`: the conversation with a model, what is asked of it, what comes back as it streams, and what goes wrong.

The conversation has a form that belongs to no provider; it is kept with the session. Errors have the provider's own
words.

A client may set an endpoint, and then its own headers go along and nothing of this user's. The packages of the
providers read more than a key from the environment: organizations, projects, headers of the user's own. They also send
a key where there is none, and follow redirects with all headers. None of that may reach a server that somebody else has
named. So the last step before a request leaves drops every header that neither HTTP and the API need nor the client has
given (`restrictions`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, cast

from msgspec import Struct, field

from accord import AccordError
from accord.agent.model_answer import ModelAnswer, TextDelta, ThoughtDelta
from accord.agent.model_messages import (
    ModelMessage,
    Part,
    ResultPart,
    TextPart,
    ThoughtPart,
    add_parts,
    prompt_parts,
)
from accord.printable import printable
from accord.redaction import mask_urls
from accord.session import SessionState

Json: TypeAlias = dict[str, Any]


class ModelConversation(Struct):
    """The messages so far, and what they have cost; the state of a session."""

    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    used: int = 0
    """Tokens of the context that the latest request filled."""
    cost: float = 0.0
    read: int = 0
    """Tokens that the model has read in this session."""
    written: int = 0
    """Tokens that it has written."""
    summary: str | None = None
    """What was said before the first message, once the beginning was replaced."""
    folder: str | None = None
    """The session's folder and git state when the session began: a prompt that stays the same is cached."""

    def add(self, role: Literal["user", "assistant"], *parts: Part) -> None:
        """Add what a speaker said; parts of one speaker in a row are one message."""
        add_parts(self.messages, role, parts)

    def close_calls(self, why: str) -> None:
        """Give each call without a result this one: no provider takes a conversation with an open call."""
        answered = {part.call_id for message in self.messages for part in message.parts if isinstance(part, ResultPart)}
        for at, message in enumerate(list(self.messages)):
            missing = [ResultPart(call.id, why, failed=True) for call in message.calls if call.id not in answered]
            if not missing:
                continue
            following = self.messages[at + 1 : at + 2]
            if following and following[0].role == "user":
                following[0].parts[:0] = missing
            else:
                self.messages.insert(at + 1, ModelMessage("user", list(missing)))

    def follow(self, history: SessionState) -> None:
        """Begin again with what the user and the model said, after the session was rewound.

        The record has no results of tools: the model reads again what it still needs.
        """
        self.replace("")
        self.summary = None
        for said in history.messages:
            if said.speaker == "user" and said.text.strip() == "/clear":
                self.messages = []
            elif said.speaker == "user":
                self.add("user", *prompt_parts(said.content))
            elif said.speaker == "agent":
                self.add("assistant", TextPart(said.text))

    def replace(self, summary: str) -> None:
        """Begin again, with this summary of what was said so far."""
        self.messages = []
        self.summary = summary
        self.used = 0


PATIENCE = 120.0
"""Seconds in which something must come, or the model counts as silent."""

RETRIES = 4
"""How often a request is repeated that was refused for the moment, with growing pauses."""


class ToolSpec(Struct, frozen=True):
    """A tool as a model knows it."""

    name: str
    description: str
    schema: Json


class ModelRequest(Struct, frozen=True, kw_only=True):
    """A request to a model."""

    model: str
    system: str
    messages: Sequence[ModelMessage]
    tools: Sequence[ToolSpec] = ()
    effort: str | None = None
    longest: int = 16_000
    """The most tokens of an answer."""


Event: TypeAlias = TextDelta | ThoughtDelta | ThoughtPart | ModelAnswer
"""What is said, as it comes; and at the end the whole answer."""


class Model(Protocol):
    """A provider's models, over one of its APIs."""

    def answer(self, question: ModelRequest) -> AsyncGenerator[Event]:
        """The answer as it streams; the last event is the whole. Raises `ModelError`."""
        ...

    async def names(self) -> list[str]:
        """The models that there are, as the provider lists them. Raises `ModelError`."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...


LONGEST = 600

Trouble = Literal["login", "limit", "request", "server", "silent", "broken"]


class ModelError(AccordError):
    """A model gave no answer; the text is for the user."""

    def __init__(self, trouble: Trouble, detail: str) -> None:
        super().__init__(detail)
        self.trouble: Trouble = trouble
        """What kind of trouble it is."""


def status_error(provider: str, status: int, body: object, fallback: str) -> ModelError:
    """The error for an answer with this HTTP status."""
    words = said_in(body) or fallback
    detail = f"{provider} answered {status}: {shown(words)}"
    if status in (401, 403):
        return ModelError("login", f"{detail}. Check the API key, or store another with 'accord agent login'")
    if status == 429:
        return ModelError("limit", f"{detail}. It was asked several times; try again later")
    if status >= 500:
        return ModelError("server", f"{detail}. It was asked several times; try again later")
    return ModelError("request", detail)


def said_in(body: object) -> str:
    """What the provider says in an error's body, whichever of the usual forms it has."""
    read: object = body
    if isinstance(body, str):
        try:
            read = json.loads(body)
        except ValueError:
            return body.strip()
    if isinstance(read, Mapping):
        inner: Any = cast("Mapping[str, Any]", read).get("error", read)
        if isinstance(inner, Mapping):
            inner = cast("Mapping[str, Any]", inner).get("message")
        if isinstance(inner, str):
            return inner
    return ""


def silent_provider(provider: str, seconds: float) -> ModelError:
    """The error for a provider from which nothing came."""
    return ModelError("silent", f"{provider} did not answer within {seconds:g} s")


def broken_answer(provider: str, why: object) -> ModelError:
    """The error for a connection that failed, or an answer that broke off."""
    return ModelError("broken", f"the answer of {provider} broke off: {shown(str(why) or type(why).__name__)}")


def connection_error(provider: str, url: object, error: BaseException, patience: float, *, began: bool) -> ModelError:
    """The error for a connection that failed; `began` says whether an answer had begun."""
    causes = [it for it in (error, error.__cause__) if it is not None]
    # The packages use one of two HTTP libraries, and pass its timeouts on as they are once an answer has begun.
    if any(type(it).__name__.endswith(("Timeout", "TimeoutError")) for it in causes):
        return silent_provider(provider, patience)
    return broken_answer(provider, causes[-1]) if began else unreachable_provider(provider, url, causes[-1])


def unreachable_provider(provider: str, url: object, why: object) -> ModelError:
    """The error for a provider that cannot be reached."""
    return ModelError(
        "broken", f"cannot reach {provider} at {mask_urls(str(url))}: {shown(str(why) or type(why).__name__)}"
    )


def shown(text: str) -> str:
    """A provider's words as a user may read them."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


NEEDED = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)
"""Headers that HTTP and the APIs need; none of them says who the user is."""


def restrictions(headers: Iterable[str]) -> dict[str, Any]:
    """Options for an HTTP client of the providers' packages that sends these headers and those that are needed."""
    allowed = NEEDED | {name.lower() for name in headers}

    async def drop_others(request: Any) -> None:
        for name in [name for name in request.headers if name.lower() not in allowed]:
            del request.headers[name]

    return {"follow_redirects": False, "event_hooks": {"request": [drop_others]}}


class ProviderClient:
    """What the APIs of all providers share. One generator makes their packages, so these have the same names."""

    package: Any
    client_type: Any

    def __init__(
        self,
        key: str | None,
        url: str | None,
        headers: dict[str, str],
        patience: float = PATIENCE,
        retries: int = RETRIES,
        *,
        foreign: bool = False,
    ) -> None:
        self._patience = patience
        self.client = self.client_type(
            api_key=key or "none",
            base_url=url,
            default_headers=headers,
            timeout=patience,
            max_retries=retries,
            http_client=self.package.DefaultAsyncHttpxClient(**restrictions(headers)) if foreign else None,
        )

    @property
    def name(self) -> str:
        """The provider, as errors name it."""
        raise NotImplementedError

    async def open(self, question: ModelRequest) -> Any:
        """Begin a request; returns the context manager of its stream."""
        raise NotImplementedError

    async def answer(self, question: ModelRequest) -> AsyncGenerator[Event]:
        """The answer as it streams; the last event is the whole. Raises `ModelError`."""
        answer, began = ModelAnswer(), False
        try:
            async with await self.open(question) as stream:
                began = True
                async for event in stream:
                    for added in answer.add(event):
                        yield added
        except Exception as error:
            raise self.trouble(error, began=began) from error
        if answer.error is not None:
            raise ModelError("server", f"{self.name} failed: {shown(answer.error)}")
        if answer.stop_reason is None:
            raise broken_answer(self.name, "it did not say that it was finished")
        yield answer

    async def names(self) -> list[str]:
        """The models that there are."""
        try:
            return [it.id async for it in self.client.models.list()]
        except Exception as error:
            raise self.trouble(error) from error

    async def close(self) -> None:
        """End its connections."""
        await self.client.close()

    def trouble(self, error: Exception, *, began: bool = False) -> Exception:
        """The error for an exception of the package; `began` says whether an answer had begun."""
        if isinstance(error, self.package.APIStatusError):
            status: Any = error
            return status_error(self.name, status.status_code, status.body, status.message)
        began = began or not isinstance(error, self.package.APIConnectionError)
        return connection_error(self.name, self.client.base_url, error, self._patience, began=began)
