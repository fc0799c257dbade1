"""Errors of a model's provider, as the user may read them: in the provider's own words.

Most errors in a framework's run are told to the client as "Internal error", because their texts may hold what is not
for the user. Errors of the provider are for the user: a key that is refused, a limit that is reached. They are known
by their class: those of the providers' own packages, and those that an adapter names for its framework.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from accord import RequestError
from accord.masking import mask_urls
from accord_tools.coder.model import said_in, shown

PACKAGES = frozenset({"anthropic", "cohere", "groq", "mistralai", "openai"})
"""Packages of providers, all of whose errors are about a request to a model."""

OWN_ERRORS = ("APIError", "ApiError", "MistralError", "SDKError")
"""The classes, with those below them, that these packages raise for a request."""


def told(error: BaseException, own: tuple[type[BaseException], ...]) -> RequestError | None:
    """The error that the client gets for this one; None if it, and what has led to it, is not the provider's."""
    for cause in _with_causes(error):
        if isinstance(cause, own) or _is_of_provider(cause):
            return RequestError.internal(_words(cause), reason=_reason(_status(cause)))
    return None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """This error and those that it was raised from; of a group, each."""
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
    """What kind of trouble it is, in the words of `accord agent`."""
    if status in (401, 403):
        return "login"
    if status == 429:
        return "limit"
    if status is None:
        return "broken"
    return "server" if status >= 500 else "request"
