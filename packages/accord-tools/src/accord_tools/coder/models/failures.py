"""What goes wrong with a model, in the provider's own words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

from accord import AccordError
from accord.masking import mask_urls
from accord.printable import printable

LONGEST = 600

Trouble = Literal["login", "limit", "request", "server", "silent", "broken"]


class ModelError(AccordError):
    """A model gave no answer; the text is for the user."""

    def __init__(self, trouble: Trouble, detail: str) -> None:
        super().__init__(detail)
        self.trouble: Trouble = trouble
        """What kind of trouble it is."""


def of_status(provider: str, status: int, body: object, fallback: str) -> ModelError:
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


def silent(provider: str, seconds: float) -> ModelError:
    """The error for a provider from which nothing came."""
    return ModelError("silent", f"{provider} did not answer within {seconds:g} s")


def broken(provider: str, why: object) -> ModelError:
    """The error for a connection that failed, or an answer that broke off."""
    return ModelError("broken", f"the answer of {provider} broke off: {shown(str(why) or type(why).__name__)}")


def of_connection(provider: str, url: object, error: BaseException, patience: float, *, began: bool) -> ModelError:
    """The error for a connection that failed; `began` says whether an answer had begun."""
    causes = [it for it in (error, error.__cause__) if it is not None]
    # The packages use one of two HTTP libraries, and pass its timeouts on as they are once an answer has begun.
    if any(type(it).__name__.endswith(("Timeout", "TimeoutError")) for it in causes):
        return silent(provider, patience)
    return broken(provider, causes[-1]) if began else unreachable(provider, url, causes[-1])


def unreachable(provider: str, url: object, why: object) -> ModelError:
    """The error for a provider that cannot be reached."""
    return ModelError(
        "broken", f"cannot reach {provider} at {mask_urls(str(url))}: {shown(str(why) or type(why).__name__)}"
    )


def shown(text: str) -> str:
    """A provider's words as a user may read them."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
