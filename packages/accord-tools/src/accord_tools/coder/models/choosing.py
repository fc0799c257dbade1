"""Which API, model, address and key an agent uses: from its settings, its environment, and what its client has set."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from accord_tools.coder.keys import stored_key
from accord_tools.coder.models.model import PATIENCE, RETRIES, Api

VARIABLES: dict[Api, tuple[str, str]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "responses": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
}
"""The variables that hold the key and the address, by the names that the providers' own programs use."""

PROVIDERS: dict[Api, tuple[str, str]] = {
    "anthropic": ("anthropic", "https://api.anthropic.com"),
    "openai": ("openai", "https://api.openai.com/v1"),
    "responses": ("openai", "https://api.openai.com/v1"),
}
"""The kind of API by its name in the protocol, and the address of the provider itself."""

DEFAULT_MODELS: dict[Api, str] = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5",
    "responses": "gpt-5",
}

CONTEXTS = (("claude", 200_000), ("gpt-5", 400_000), ("gpt-4.1", 1_000_000), ("gemini", 1_000_000))
"""How many tokens models take whose names begin so."""

USUAL_CONTEXT = 128_000


class ModelSettings(Struct, frozen=True, kw_only=True):
    """What the user has said about models; the rest is found out."""

    api: Api | None = None
    model: str | None = None
    url: str | None = None
    effort: str | None = None
    context: int | None = None
    price: tuple[float, float] | None = None
    """Dollars for a million tokens, read and written; without it no cost is told."""
    patience: float = PATIENCE
    retries: int = RETRIES


def api_of(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> Api:
    """The API: as said, or the first that there is a key for."""
    if settings.api is not None:
        return settings.api
    known: tuple[Api, ...] = ("anthropic", "responses")
    for api in known:
        if environment.get(VARIABLES[api][0]) or stored_key(api):
            return api
    if environment.get("OPENAI_BASE_URL") or settings.url:
        return "openai"
    return "anthropic"


def key_of(api: Api, environment: Mapping[str, str] = os.environ) -> str | None:
    """The key: of the environment, or as `accord agent login` has stored it."""
    return environment.get(VARIABLES[api][0]) or stored_key(api)


def url_of(api: Api, settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> str | None:
    """The address, where it is not the provider's own."""
    return settings.url or environment.get(VARIABLES[api][1]) or None


def model_name(settings: ModelSettings, api: Api) -> str:
    """The model to begin with."""
    return settings.model or os.environ.get("ACCORD_MODEL") or DEFAULT_MODELS[api]


def context_of(settings: ModelSettings, model: str) -> int:
    """How many tokens the model takes, as far as is known."""
    if settings.context is not None:
        return settings.context
    return next((size for start, size in CONTEXTS if model.startswith(start)), USUAL_CONTEXT)
