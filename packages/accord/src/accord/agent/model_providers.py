"""Providers: where an agent's models are, as its author offers them and each client configures them.

    Agent.provider ─▶ Provider                      the author's: its id, the kinds of API, the default
    providers/set  ─▶ ConnectionProviders.current   one connection's: an Endpoint for each, or None while disabled
    prompt         ─▶ Turn.provider                 what was in force when the turn began

An agent may serve many clients in one process, and each decides only for itself. So a client's setting belongs to its
connection: it is in memory only, and ends with it. `current` is replaced as a whole, so a turn that holds a reference
keeps the setting that it began with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from accord._internal.endpoint import Endpoint
from accord._internal.tasks import finished, in_thread
from accord.errors import RequestError
from accord.mistakes import registered_once, shortened
from accord.schema import v1_and_v2 as both
from accord.schema.base import JsonObject

log = logging.getLogger("accord")

Current: TypeAlias = "Mapping[str, Endpoint | None]"
"""The endpoint of each provider; None for one that is disabled or was never configured."""


class Provider:
    """A source of models that clients may configure; `Agent.provider` returns it.

    main = agent.provider("main", supports=["anthropic"], default=accord.Endpoint("anthropic", URL, HEADERS))


    @main.check
    async def check(endpoint: accord.Endpoint) -> bool:
        return await answers(endpoint)
    """

    def __init__(
        self,
        id: str,  # noqa: A002
        supports: Sequence[str],
        *,
        required: bool,
        default: Endpoint | None,
        replaces_login: bool = False,
        meta: JsonObject | None = None,
    ) -> None:
        self.id = id
        """The provider's id, by which clients and `turn.provider` name it."""
        self.supports = tuple(supports)
        """The kinds of API that it may have."""
        self.required = required
        """Whether clients may not disable it."""
        self.default = default
        """The endpoint while no client has set one."""
        self.replaces_login = replaces_login
        """Whether a client that has set its endpoint needs no login."""
        self.meta = meta
        """The provider's `_meta` in lists."""
        self._check: Callable[[Endpoint], Any] | None = None

    def __repr__(self) -> str:
        return f"Provider({self.id!r}, supports={list(self.supports)}, required={self.required})"

    def check(self, function: Callable[[Endpoint], Any]) -> Callable[[Endpoint], Any]:
        """Let this function check an endpoint before it is used.

        It refuses it by returning False, or with a `RequestError`. What it logs may end up anywhere, so it should not
        log headers.
        """
        registered_once("@provider.check", self._check, function)
        self._check = in_thread(function)
        return function


def endpoint_of(current: Current, provider_id: str, asked: str) -> Endpoint | None:
    """Return the endpoint of this provider; `asked` is the method that an error names."""
    if provider_id not in current:
        known = ", ".join(current) or "none"
        raise ValueError(f"{asked} takes one of the agent's providers ({known}), got {provider_id!r}")
    return current[provider_id]


async def _accept(provider: Provider, endpoint: Endpoint) -> None:
    """Raise RequestError unless this endpoint may be used; errors never contain a header's value."""
    if endpoint.api_type not in provider.supports:
        raise RequestError.invalid_params(
            f"provider {provider.id!r} has no API of type {shortened(endpoint.api_type)!r}; "
            f"it has {', '.join(provider.supports)}",
            path="$.apiType",
        )
    check = provider._check  # pyright: ignore[reportPrivateUsage]
    if check is None:
        return
    try:
        accepted = await finished(check(endpoint))
    except RequestError as error:
        raise RequestError(error.code, endpoint.hidden(error.message), error.data) from None
    except Exception as error:
        # No traceback: the texts of its causes may contain a header's value.
        reason = endpoint.hidden(f"{type(error).__name__}: {error}")
        log.error("the check of provider %s failed: %s", provider.id, reason)  # noqa: TRY400
        raise RequestError.internal("The endpoint of the provider could not be checked") from None
    if accepted is False:
        raise RequestError.invalid_params("The agent does not accept this endpoint for the provider")


class ConnectionProviders:
    """An agent's providers, as the client of one connection has configured them."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        self.current: Current = {it.id: it.default for it in providers}
        self._providers = {it.id: it for it in providers}
        self._changing = asyncio.Lock()

    def replace_login(self) -> bool:
        """Whether the client has set an endpoint that makes the user's login unnecessary."""
        return any(it.replaces_login and self._is_set(it) for it in self._providers.values())

    def _is_set(self, provider: Provider) -> bool:
        endpoint = self.current[provider.id]
        return endpoint is not None and endpoint is not provider.default

    def list(self, _: both.ListProvidersRequest) -> both.ListProvidersResponse:
        return both.ListProvidersResponse([self._info(it) for it in self._providers.values()])

    def _info(self, provider: Provider) -> both.ProviderInfo:
        endpoint = self.current[provider.id]
        # custom-llm-endpoint: headers are never sent, because they hold credentials.
        current = None if endpoint is None else both.ProviderCurrentConfig(endpoint.api_type, endpoint.base_url)
        its_id, supports = both.ProviderId(provider.id), list(provider.supports)
        return both.ProviderInfo(its_id, supports, provider.required, current, meta=provider.meta)

    async def set(self, request: both.SetProviderRequest) -> None:
        provider = self._providers.get(request.provider_id)
        if provider is None:
            known = ", ".join(self._providers)
            raise RequestError.invalid_params(
                f"unknown provider {shortened(request.provider_id)!r}; this agent has {known}", path="$.providerId"
            )
        try:
            endpoint = Endpoint(request.api_type, request.base_url, request.headers)
        except ValueError as error:
            raise RequestError.invalid_params(str(error)) from None
        async with self._changing:  # one after the other, so that the last request wins
            await _accept(provider, endpoint)
            self.current = {**self.current, provider.id: endpoint}

    async def disable(self, request: both.DisableProviderRequest) -> None:
        provider = self._providers.get(request.provider_id)
        if provider is None:
            return  # the proposal: success, as it is not in use
        if provider.required:
            raise RequestError.invalid_params(
                f"provider {provider.id!r} is required and cannot be disabled", path="$.providerId"
            )
        async with self._changing:
            self.current = {**self.current, provider.id: None}
