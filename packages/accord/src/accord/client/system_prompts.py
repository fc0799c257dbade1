"""System prompts of a client: they extend or replace the agent's own, and are checked before they are sent."""

from __future__ import annotations

from typing import cast

from accord.arguments import wrong_type
from accord.capabilities import Capabilities
from accord.schema import v1
from accord.schema.sendable import check_sendable

APPENDING = "session_capabilities.system_prompt"
OVERRIDING = f"{APPENDING}.mode.override"


def system_prompt_for(capabilities: Capabilities, given: str | v1.SystemPrompt | None) -> v1.SystemPrompt | None:
    """The system prompt as it is sent: a text is appended to the agent's own.

    Raises CapabilityMissing if the agent does not take it, TypeError or ValueError if it is not a good one.
    """
    if given is None:
        return None
    prompt = v1.SystemPrompt("append", [v1.TextContent(given)]) if isinstance(given, str) else given
    if not isinstance(cast("object", prompt), v1.SystemPrompt):
        raise wrong_type("system_prompt", "text or a v1.SystemPrompt", prompt)
    check_sendable("system_prompt", prompt)
    if not any(isinstance(block, v1.TextContent) and block.text for block in prompt.content):
        raise ValueError("system_prompt must hold some text, got none")
    if not all(isinstance(block, v1.TextContent) for block in prompt.content):
        raise ValueError("system_prompt must hold only text, got another kind of content")
    needed = OVERRIDING if prompt.mode == "override" else APPENDING
    capabilities.require(needed, f"a system prompt to {prompt.mode}")
    return prompt
