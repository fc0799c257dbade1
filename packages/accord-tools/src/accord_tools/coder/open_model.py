"""Chooses the API, model, address and key of an agent, and opens the API of a model beside the event loop.

Settings take precedence over the environment; a client may set an endpoint of its own.

The package of a provider takes seconds to import on a busy machine, and a keyring may be slow, too. A cancel must not
wait for that, and neither must the end of the agent: so a daemon thread does it. Whether the package is installed is
checked before: while one thread fails to import a module, another that imports it sees half of it and another error.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct

from accord import Endpoint, PermissionPolicy, RequestError, Session
from accord.agent.model_messages import Api
from accord.installation import needs_extra
from accord_tools.coder.api_keys import stored_key
from accord_tools.coder.provider_client import PATIENCE, RETRIES, AnthropicMessages, ChatCompletions, Model, Responses

T = TypeVar("T")


class ApiFacts(NamedTuple):
    """The differences between the APIs."""

    key_variable: str
    url_variable: str
    """The variables of the key and the address, by the names that the provider's own programs use."""
    kind: Literal["anthropic", "openai"]
    """The API's name in the protocol, and that of the package that speaks it."""
    url: str
    """The address of the provider itself."""
    default_model: str
    client: type[Model]


_OPENAI = ApiFacts(
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    kind="openai",
    url="https://api.openai.com/v1",
    default_model="gpt-5",
    client=ChatCompletions,
)
FACTS: dict[Api, ApiFacts] = {
    "anthropic": ApiFacts(
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
        kind="anthropic",
        url="https://api.anthropic.com",
        default_model="claude-sonnet-4-5",
        client=AnthropicMessages,
    ),
    "openai": _OPENAI,
    "responses": _OPENAI._replace(client=Responses),
}

CONTEXTS = (("claude", 200_000), ("gpt-5", 400_000), ("gpt-4.1", 1_000_000), ("gemini", 1_000_000))
"""The context sizes of models whose names begin like this."""

USUAL_CONTEXT = 128_000


class ModelFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A model as the user knows it."""

    context: int | None = None
    """The size of its context in tokens."""
    price: tuple[float, float] | None = None
    """Dollars for a million tokens, read and written; without it no cost is reported."""


class ModelSettings(Struct, frozen=True, kw_only=True):
    """The user's settings for models; the rest is determined."""

    api: Api | None = None
    model: str | None = None
    base_url: str | None = None
    effort: str | None = None
    key_variable: str | None = None
    """The variable with the key, if it is not the provider's own."""
    key: str | None = None
    """The key itself, where a program has it; empty for a server without one."""
    headers: Mapping[str, str] = {}
    """The headers of each request."""
    context: int | None = None
    price: tuple[float, float] | None = None
    """The price of every model; takes precedence over `models`."""
    models: Mapping[str, ModelFacts] = {}
    policy: PermissionPolicy | None = None
    """Rules that answer before the mode does."""
    patience: float = PATIENCE
    retries: int = RETRIES


def api_of(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> Api:
    """Return the API: the user's choice, or the first for which there is a key."""
    if settings.api is not None:
        return settings.api
    known: tuple[Api, ...] = ("anthropic", "responses")
    for api in known:
        if environment.get(FACTS[api].key_variable) or stored_key(api):
            return api
    if environment.get("OPENAI_BASE_URL") or settings.base_url:
        return "openai"
    return "anthropic"


def key_of(api: Api, settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> str | None:
    """The key: of the settings, of the environment, or as `accord agent login` has stored it."""
    if settings.key is not None:
        return settings.key
    if settings.key_variable is not None:
        return environment.get(settings.key_variable)
    return environment.get(FACTS[api].key_variable) or stored_key(api)


def url_of(api: Api, settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the address, if it is not the provider's own."""
    return settings.base_url or environment.get(FACTS[api].url_variable) or None


def model_name(settings: ModelSettings, api: Api) -> str:
    """Return the first model: the named one, the first of those that the user describes, or a usual one."""
    named = settings.model or os.environ.get("ACCORD_MODEL")
    return named or next(iter(settings.models), FACTS[api].default_model)


def context_of(settings: ModelSettings, model: str) -> int:
    """Return the size of the model's context in tokens, if it is known."""
    known = settings.context or settings.models.get(model, ModelFacts()).context
    return known or next((size for start, size in CONTEXTS if model.startswith(start)), USUAL_CONTEXT)


def price_of(settings: ModelSettings, model: str) -> tuple[float, float] | None:
    """Return the model's price, if it is known."""
    return settings.price or settings.models.get(model, ModelFacts()).price


MOST_OPEN = 8
"""Clients that are kept; making one takes 80 ms of processor time."""


class OpenModels:
    """The clients of one agent, each made when it is first used: one for each address, with its key and headers.

    They end with the last of the sessions that `keep_for` has named.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._open: dict[object, Model] = {}
        self._sessions: set[Session[Any]] = set()

    def keep_for(self, session: Session[Any]) -> None:
        """Keep the clients until this session has ended."""
        if session not in self._sessions:
            self._sessions.add(session)
            session.resources.push_async_callback(self._ended, session)

    async def _ended(self, session: Session[Any]) -> None:
        self._sessions.remove(session)
        if not self._sessions:
            await self.close()

    async def get(self, endpoint: Endpoint | None = None) -> Model:
        """Return the model's API: at the endpoint that the client has set, which gets no key of ours; else the user's
        own.

        Raises RequestError, with the command that installs it, if the API's package is missing.
        """
        facts = FACTS[api_of(self._settings) if endpoint is None else api_at(endpoint)]
        if importlib.util.find_spec(facts.kind) is None:
            raise RequestError.internal(needs_extra("agent", f"a model of {facts.client.owner}'s API"))
        return await asyncio.wrap_future(_beside(lambda: self._get(endpoint)))

    def _get(self, endpoint: Endpoint | None) -> Model:
        settings = self._settings
        if endpoint is None:
            api = api_of(settings)
            key, url, headers = key_of(api, settings), url_of(api, settings), dict(settings.headers)
        else:
            api, key, url, headers = api_at(endpoint), None, endpoint.base_url, dict(endpoint.headers)
        place = (api, key, url, *headers.items())
        if place not in self._open:
            if len(self._open) >= MOST_OPEN:  # a turn may still use it: it ends its connections when it is forgotten
                del self._open[next(iter(self._open))]
            self._open[place] = FACTS[api].client(
                key, url, headers, settings.patience, settings.retries, foreign=endpoint is not None
            )
        return self._open[place]

    async def close(self) -> None:
        """End all connections."""
        while self._open:
            await self._open.popitem()[1].close()


def _beside(work: Callable[[], T]) -> Future[T]:
    """Run this function in a thread that delays nothing, and return its result."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # whoever waits gets it
            done.set_exception(error)

    threading.Thread(target=run, name="open a model", daemon=True).start()
    return done


def api_at(endpoint: Endpoint) -> Api:
    """The API that an endpoint speaks."""
    return "anthropic" if endpoint.api_type == "anthropic" else "openai"
