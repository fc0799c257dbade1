"""Models over Anthropic's messages."""

from __future__ import annotations

from typing import Any

from accord.agent.model_messages import wire_messages
from accord.installation import missing_extra
from accord_tools.coder.model import ModelRequest, ProviderClient

try:
    import anthropic
except ModuleNotFoundError as missing:
    raise missing_extra("agent", "a model of Anthropic's API") from missing


class AnthropicMessages(ProviderClient):
    """Anthropic's API, or one that speaks as it does."""

    package, client_type = anthropic, anthropic.AsyncAnthropic

    @property
    def name(self) -> str:
        """The provider, as errors name it."""
        return "Anthropic"

    async def open(self, question: ModelRequest) -> Any:
        """Begin a request."""
        more: dict[str, Any] = {}
        if question.effort:
            more = {"thinking": {"type": "adaptive"}, "output_config": {"effort": question.effort}}
        if question.tools:
            more["tools"] = [
                {"name": it.name, "description": it.description, "input_schema": it.schema} for it in question.tools
            ]
        return await self.client.messages.create(
            model=question.model,
            max_tokens=question.longest,
            system=[{"type": "text", "text": question.system, "cache_control": {"type": "ephemeral"}}],
            messages=wire_messages("anthropic", question.messages),
            stream=True,
            **more,
        )
