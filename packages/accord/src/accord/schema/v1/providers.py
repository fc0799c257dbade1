"""LLM providers that the client chooses for the agent: proposed (custom-llm-endpoint)."""

from __future__ import annotations

from typing import Annotated, NewType, TypeAlias

from accord.masking import MASK, mask_urls
from accord.schema.base import Model, Request, Tolerant, ValidItems, unstable, words

ProviderId = NewType("ProviderId", str)
LlmProtocol: TypeAlias = Annotated[str, words("anthropic", "openai", "azure", "vertex", "bedrock")]


@unstable
class ProviderCurrentConfig(Model):
    """The address of a provider in use, without its secrets."""

    api_type: LlmProtocol
    base_url: str


@unstable
class ProviderInfo(Model):
    """A provider that can be configured; `current` is None while it is disabled."""

    provider_id: ProviderId
    supported: Tolerant[ValidItems[LlmProtocol]]
    required: bool
    current: ProviderCurrentConfig | None = None


@unstable
class ListProvidersResponse(Model):
    """The result of `providers/list`: all providers."""

    providers: list[ProviderInfo]


class ListProvidersRequest(Request[ListProvidersResponse], method="providers/list", unstable=True, needs="providers"):
    """List the agent's providers; needs `providers`."""


@unstable
class SetProviderResponse(Model):
    """The result of `providers/set`: the provider is configured."""


class SetProviderRequest(Request[SetProviderResponse], method="providers/set", unstable=True, needs="providers"):
    """Configure a provider: its address and its headers, including secrets."""

    provider_id: ProviderId
    api_type: LlmProtocol
    base_url: str
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        url, names = mask_urls(self.base_url), dict.fromkeys(self.headers, MASK)
        return f"SetProviderRequest({self.provider_id!r}, {self.api_type!r}, {url!r}, headers={names})"


@unstable
class DisableProviderResponse(Model):
    """The result of `providers/disable`: the provider is off."""


class DisableProviderRequest(
    Request[DisableProviderResponse], method="providers/disable", unstable=True, needs="providers"
):
    """Turn a provider off."""

    provider_id: ProviderId
