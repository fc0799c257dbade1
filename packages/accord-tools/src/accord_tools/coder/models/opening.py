"""Opens the API of a model, beside the event loop.

The package of a provider takes seconds to import on a busy machine, and a keyring may take its time, too. A cancel must
not wait for that, and neither must the end of the agent: so a daemon thread does it. Whether the package is there is
asked before: while one thread fails to import a module, another that imports it sees half of it and another error.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from accord import Endpoint, RequestError
from accord.extras import needs_extra
from accord_tools.coder.models.choosing import ModelSettings, api_of, key_of, url_of
from accord_tools.coder.models.model import Api, Model

PACKAGES: dict[Api, tuple[str, str]] = {
    "anthropic": ("anthropic", "Anthropic"),
    "openai": ("openai", "OpenAI"),
    "responses": ("openai", "OpenAI"),
}
"""The package for each API, and whose API it is."""

T = TypeVar("T")


async def open_model(settings: ModelSettings, endpoint: Endpoint | None = None) -> Model:
    """The model's API: at the endpoint that the client has set, which gets no key of ours; else the user's own.

    Raises RequestError, with the command that installs it, if the API's package is missing.
    """
    package, owner = PACKAGES[api_of(settings) if endpoint is None else api_at(endpoint)]
    if importlib.util.find_spec(package) is None:
        raise RequestError.internal(needs_extra("agent", f"a model of {owner}'s API"))
    return await _beside(lambda: _opened(settings, endpoint))


async def _beside(work: Callable[[], T]) -> T:
    """What this function returns; a thread calls it that keeps nothing waiting."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # whoever waits gets it
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, name="open a model", daemon=True).start()
    return await asyncio.wrap_future(done)


def _opened(settings: ModelSettings, endpoint: Endpoint | None) -> Model:
    if endpoint is not None:
        headers = dict(endpoint.headers)
        return _made(api_at(endpoint), None, endpoint.base_url, headers, settings, foreign=True)
    api = api_of(settings)
    return _made(api, key_of(api), url_of(api, settings), {}, settings)


def api_at(endpoint: Endpoint) -> Api:
    """The API that an endpoint speaks."""
    return "anthropic" if endpoint.api_type == "anthropic" else "openai"


def _made(
    api: Api,
    key: str | None,
    url: str | None,
    headers: dict[str, str],
    settings: ModelSettings,
    *,
    foreign: bool = False,
) -> Model:
    match api:
        case "anthropic":
            from accord_tools.coder.models.anthropic_messages import AnthropicMessages

            return AnthropicMessages(key, url, headers, settings.patience, settings.retries, foreign=foreign)
        case "openai":
            from accord_tools.coder.models.chat_completions import ChatCompletions

            return ChatCompletions(key, url, headers, settings.patience, settings.retries, foreign=foreign)
        case "responses":
            from accord_tools.coder.models.responses import Responses

            return Responses(key, url, headers, settings.patience, settings.retries, foreign=foreign)
