"""The providers of an agent's models as its client wants them: listed, set, disabled, and set again after a restart.

An agent keeps nothing of them: the protocol forbids it to store credentials. So what the caller has set is kept here,
and set on every new connection before any session is opened there. If that fails, so does the connection: a prompt
must not go to other models than the caller chose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar, cast

from accord.arguments import wrong_type
from accord.endpoints import Endpoint
from accord.errors import AccordError
from accord.schema import v1
from accord.schema.base import Request

ResultT = TypeVar("ResultT")


class Asked(Protocol):
    """What sends a request: the connection, or the agent, which waits for a restart."""

    async def request(
        self,
        request: Request[ResultT],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ResultT: ...


class Providers:
    """The providers of one agent, which may be restarted."""

    def __init__(self, wanted: Mapping[str, Endpoint] | None = None) -> None:
        self._wanted: dict[str, Endpoint | None] = dict(_checked({} if wanted is None else wanted))
        """What every connection is told; None for a provider that was disabled."""
        self._listed: dict[str, v1.ProviderInfo] = {}
        """The providers as the agent listed them last."""

    async def list(self, agent: Asked, seconds: float | None = None) -> list[v1.ProviderInfo]:
        listed = (await agent.request(v1.ListProvidersRequest(), timeout=seconds)).providers
        self._listed = {it.provider_id: it for it in listed}
        return listed

    async def set(self, agent: Asked, provider_id: str, endpoint: Endpoint) -> None:
        """Set a provider; raises ValueError for a kind of API that the agent has listed without."""
        listed = self._listed.get(provider_id)
        if listed is not None and endpoint.api_type not in listed.supported:
            raise ValueError(
                f"provider {provider_id!r} has no API of type {endpoint.api_type!r}; "
                f"it has {', '.join(listed.supported) or 'none'}"
            )
        await agent.request(_request(provider_id, endpoint))
        self._wanted[provider_id] = endpoint

    async def disable(self, agent: Asked, provider_id: str) -> None:
        """Disable a provider; raises ValueError for one that the agent has listed as required."""
        listed = self._listed.get(provider_id)
        if listed is not None and listed.required:
            raise ValueError(f"provider {provider_id!r} cannot be disabled; the agent requires it")
        await agent.request(v1.DisableProviderRequest(v1.ProviderId(provider_id)))
        self._wanted[provider_id] = None

    async def establish(self, agent: Asked, seconds: float) -> None:
        """Tell a new connection what is wanted; raises AccordError if the agent cannot do that."""
        if not self._wanted:
            return
        # custom-llm-endpoint: list before setting, and set only what is listed.
        await self.list(agent, seconds)
        for provider_id, endpoint in self._wanted.items():
            if endpoint is None:
                await agent.request(v1.DisableProviderRequest(v1.ProviderId(provider_id)), timeout=seconds)
                continue
            self._must_be_listed(provider_id, endpoint)
            await agent.request(_request(provider_id, endpoint), timeout=seconds)

    def _must_be_listed(self, provider_id: str, endpoint: Endpoint) -> None:
        listed = self._listed.get(provider_id)
        if listed is None:
            known = ", ".join(self._listed) or "none"
            raise AccordError(f"connect(providers=...): the agent has no provider {provider_id!r}; it has {known}")
        if endpoint.api_type not in listed.supported:
            raise AccordError(
                f"connect(providers=...): provider {provider_id!r} has no API of type {endpoint.api_type!r}; "
                f"it has {', '.join(listed.supported) or 'none'}"
            )


def _request(provider_id: str, endpoint: Endpoint) -> v1.SetProviderRequest:
    headers = dict(endpoint.headers)
    return v1.SetProviderRequest(v1.ProviderId(provider_id), endpoint.api_type, endpoint.base_url, headers)


def _checked(wanted: Mapping[str, Endpoint]) -> Mapping[str, Endpoint]:
    if not isinstance(cast("object", wanted), Mapping):
        raise wrong_type("connect(providers=...)", "Endpoints by the ids of providers", wanted)
    for provider_id, endpoint in wanted.items():
        if not isinstance(cast("object", provider_id), str) or not isinstance(cast("object", endpoint), Endpoint):
            raise wrong_type("connect(providers=...)", "Endpoints by the ids of providers", endpoint)
    return wanted
