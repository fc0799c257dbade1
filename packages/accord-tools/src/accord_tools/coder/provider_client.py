"""`Model`: a provider's models, over Anthropic's messages, OpenAI's chat completions or OpenAI's responses.

Most providers and local servers speak chat completions. Each API is spoken by its provider's own package, which is
imported when the first client is made.

A client may set an endpoint, which then gets the client's headers and nothing of this user's. The packages of the
providers read more than a key from the environment: organizations, projects, headers of the user's own. They also send
a key when none is set, and follow redirects with all headers. None of that may reach a server that another party has
named. So the last step before a request leaves drops every header that is neither needed by HTTP and the API nor set by
the client (`restrictions`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any

from accord import RequestError
from accord.agent.model_answer import ModelAnswer, TextDelta, ThoughtDelta
from accord.agent.model_messages import TextPart, wire_messages
from accord.redaction import mask_urls
from accord_tools.coder.model import Event, Json, ModelConversation, ModelError, ModelRequest, ToolSpec, shown

PATIENCE = 120.0
"""Seconds in which something must arrive, or the model counts as silent."""

RETRIES = 4
"""How often a temporarily refused request is repeated, with growing pauses."""

NEEDED = frozenset(
    ("accept", "accept-encoding", "anthropic-version", "connection", "content-length", "content-type", "host")
) | {"transfer-encoding", "user-agent"}
"""Headers that HTTP and the APIs need; none of them identifies the user."""


def restrictions(headers: Iterable[str]) -> dict[str, Any]:
    """Return options for an HTTP client of the providers' packages that sends these headers and the needed ones."""
    allowed = NEEDED | {name.lower() for name in headers}

    async def drop_others(request: Any) -> None:
        for name in [name for name in request.headers if name.lower() not in allowed]:
            del request.headers[name]

    return {"follow_redirects": False, "event_hooks": {"request": [drop_others]}}


class Model:
    """The common part of the APIs of all providers. One generator makes their packages, so these have the
    same names.
    """

    owner: str
    domain: str = ""
    """The end of the provider's hosts; models elsewhere are named by their host. Empty: all have the owner's name."""

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
        """Raises ModuleNotFoundError if the provider's package is missing."""
        self._patience = patience
        self._package = self.package()
        self.client: Any = getattr(self._package, f"Async{self.owner}")(
            api_key=key or "none",
            base_url=url,
            default_headers=headers,
            timeout=patience,
            max_retries=retries,
            http_client=self._package.DefaultAsyncHttpxClient(**restrictions(headers)) if foreign else None,
        )
        host: str = self.client.base_url.host
        self.name = self.owner if host.endswith(self.domain) else host
        """The provider, as errors name it."""

    @staticmethod
    def package() -> Any:
        """The provider's package."""
        raise NotImplementedError

    async def open(self, question: ModelRequest) -> Any:
        """Begin a request; returns the context manager of its stream."""
        raise NotImplementedError

    async def answer(self, question: ModelRequest) -> AsyncGenerator[Event]:
        """Yield the answer as it streams; the last event is the whole. Raises `ModelError`."""
        answer, began = ModelAnswer(), False
        try:
            async with await self.open(question) as stream:
                began = True
                async for event in stream:
                    for added in answer.add(event):
                        yield added
        except Exception as error:
            raise self._trouble(error, began=began) from error
        if answer.error is not None:
            raise ModelError("server", f"{self.name} failed: {shown(answer.error)}")
        if answer.stop_reason is None:
            raise ModelError("broken", f"the answer of {self.name} broke off: it did not say that it was finished")
        yield answer

    async def names(self) -> list[str]:
        """Return the models in the provider's list. Raises `ModelError`."""
        try:
            return [it.id async for it in self.client.models.list()]
        except Exception as error:
            raise self._trouble(error) from error

    async def close(self) -> None:
        """End its connections."""
        await self.client.close()

    def _trouble(self, error: Any, *, began: bool = False) -> ModelError:
        """Return the error for an exception of the package; `began` is whether an answer had begun."""
        if isinstance(error, self._package.APIStatusError):
            return ModelError.of_status(self.name, error.status_code, error.body, error.message)
        causes = [it for it in (error, error.__cause__) if it is not None]
        # The packages use one of two HTTP libraries, and pass its timeouts on unchanged once an answer has begun.
        if any(type(it).__name__.endswith(("Timeout", "TimeoutError")) for it in causes):
            return ModelError("silent", f"{self.name} did not answer within {self._patience:g} s")
        why = shown(str(causes[-1]) or type(causes[-1]).__name__)
        if began or not isinstance(error, self._package.APIConnectionError):
            return ModelError("broken", f"the answer of {self.name} broke off: {why}")
        return ModelError("broken", f"cannot reach {self.name} at {mask_urls(str(self.client.base_url))}: {why}")


async def streamed_answer(
    model: Model,
    question: ModelRequest,
    conversation: ModelConversation,
    say: Callable[[str], Awaitable[None]],
    think: Callable[[str], Awaitable[None]],
) -> ModelAnswer:
    """Return the model's answer, and show it as it streams. The conversation keeps the part that came before a cancel.

    Raises ModelError, and RequestError for a stream without an answer.
    """
    said = ""
    try:
        async with aclosing(model.answer(question)) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        said += text
                        await say(text)
                    case ThoughtDelta(text):
                        await think(text)
                    case ModelAnswer():
                        return event
                    case _:
                        pass
    except asyncio.CancelledError:
        conversation.add("assistant", TextPart(said or "..."))
        raise
    raise RequestError.internal("the model gave no answer")


class AnthropicMessages(Model):
    """Anthropic's API, or a compatible one."""

    owner = "Anthropic"

    @staticmethod
    def package() -> Any:
        import anthropic

        return anthropic

    async def open(self, question: ModelRequest) -> Any:
        more: Json = {}
        if question.effort:
            more = {"thinking": {"type": "adaptive"}, "output_config": {"effort": question.effort}}
        if question.tools:
            more["tools"] = [
                {"name": it.name, "description": it.description, "input_schema": it.schema} for it in question.tools
            ]
        return await self.client.messages.create(
            model=question.model,
            max_tokens=question.longest,
            system=[{"type": "text", "text": question.system, "cache_control": {"type": "ephemeral"}}],
            messages=wire_messages("anthropic", question.messages),
            stream=True,
            **more,
        )


class ChatCompletions(Model):
    """The chat completions of OpenAI, or a compatible API."""

    owner, domain = "OpenAI", "openai.com"

    @staticmethod
    def package() -> Any:
        import openai

        return openai

    async def open(self, question: ModelRequest) -> Any:
        more: Json = {"reasoning_effort": question.effort} if question.effort else {}
        if question.tools:
            more["tools"] = [{"type": "function", "function": _function(it)} for it in question.tools]
        return await self.client.chat.completions.create(
            model=question.model,
            messages=[{"role": "system", "content": question.system}, *wire_messages("openai", question.messages)],
            stream=True,
            stream_options={"include_usage": True},
            **more,
        )


class Responses(ChatCompletions):
    """The responses of OpenAI. Nothing is stored at the provider: each request has the whole conversation."""

    async def open(self, question: ModelRequest) -> Any:
        more: Json = {"reasoning": {"effort": question.effort, "summary": "auto"}} if question.effort else {}
        if question.tools:
            more["tools"] = [{"type": "function", **_function(it), "strict": False} for it in question.tools]
        return await self.client.responses.create(
            model=question.model,
            instructions=question.system,
            input=wire_messages("responses", question.messages),
            stream=True,
            store=False,
            include=["reasoning.encrypted_content"],
            **more,
        )


def _function(tool: ToolSpec) -> Json:
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}
