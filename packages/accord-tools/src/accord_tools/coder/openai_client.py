"""What both of OpenAI's APIs share: their client, and who is named in errors."""

from __future__ import annotations

from accord.installation import missing_extra
from accord_tools.coder.model import ProviderClient

try:
    import openai
except ModuleNotFoundError as missing:
    raise missing_extra("agent", "a model of OpenAI's API") from missing


class OpenAiClient(ProviderClient):
    """OpenAI's API, or one that speaks as it does."""

    package, client_type = openai, openai.AsyncOpenAI

    @property
    def name(self) -> str:
        """The provider, as errors name it."""
        host: str = self.client.base_url.host
        return "OpenAI" if host.endswith("openai.com") else host
