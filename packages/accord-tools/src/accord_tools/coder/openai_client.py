"""Models over OpenAI's chat completions, which most providers and local servers offer, and over OpenAI's responses."""

from __future__ import annotations

from typing import Any

from accord.agent.model_messages import wire_messages
from accord.installation import missing_extra
from accord_tools.coder.model import Json, ModelRequest, ProviderClient

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


class ChatCompletions(OpenAiClient):
    """The chat completions of OpenAI, or of what speaks as it does."""

    async def open(self, question: ModelRequest) -> Any:
        """Begin a request."""
        request: Json = {
            "model": question.model,
            "messages": [
                {"role": "system", "content": question.system},
                *wire_messages("openai", question.messages),
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if question.tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {"name": it.name, "description": it.description, "parameters": it.schema},
                }
                for it in question.tools
            ]
        if question.effort:
            request["reasoning_effort"] = question.effort
        return await self.client.chat.completions.create(**request)


class Responses(OpenAiClient):
    """The responses of OpenAI. Nothing is stored at the provider: the whole conversation goes along each time."""

    async def open(self, question: ModelRequest) -> Any:
        """Begin a request."""
        request: Json = {
            "model": question.model,
            "instructions": question.system,
            "input": wire_messages("responses", question.messages),
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if question.tools:
            request["tools"] = [
                {
                    "type": "function",
                    "name": it.name,
                    "description": it.description,
                    "parameters": it.schema,
                    "strict": False,
                }
                for it in question.tools
            ]
        if question.effort:
            request["reasoning"] = {"effort": question.effort, "summary": "auto"}
        return await self.client.responses.create(**request)
