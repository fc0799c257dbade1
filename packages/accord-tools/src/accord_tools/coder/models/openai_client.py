"""What both of OpenAI's APIs share: the client, its errors and its list of models."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from accord.extras import missing_extra
from accord_tools.coder.models import failures
from accord_tools.coder.models.foreign import restrictions
from accord_tools.coder.models.model import PATIENCE, RETRIES

try:
    import openai
except ModuleNotFoundError as missing:
    raise missing_extra("agent", "a model of OpenAI's API") from missing

NAME = "OpenAI"

T = TypeVar("T")


class OpenAiClient:
    """OpenAI's API, or one that speaks as it does."""

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
        self.client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=url,
            default_headers=headers,
            timeout=patience,
            max_retries=retries,
            http_client=openai.DefaultAsyncHttpxClient(**restrictions(headers)) if foreign else None,
        )

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
        if isinstance(error, openai.APIStatusError):
            return failures.of_status(self.name, error.status_code, error.body, error.message)
        if isinstance(error, failures.ModelError):
            return error
        began = began or not isinstance(error, openai.APIConnectionError)
        return failures.of_connection(self.name, self.client.base_url, error, self._patience, began=began)

    def unfinished(self) -> failures.ModelError:
        """The error for an answer that ended too early."""
        return failures.broken(self.name, "it did not say that it was finished")

    @property
    def name(self) -> str:
        """Who answers, for errors."""
        host = self.client.base_url.host
        return NAME if host.endswith("openai.com") else host


def read(value: Any, as_type: type[T]) -> T:
    """A value of the package as a type of ours, which has what we read of it."""
    return msgspec.convert(value.model_dump(mode="json", exclude_none=True, warnings=False), as_type)
