"""Instructions of a proxy for the agent: added to the system prompt, or put before the first prompt of a session.

The user never wrote them, so the user does not see them: where the agent tells a prompt again, in its echo or in a
replay, the block is left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.proxy.hop import Hop
from accord.proxy.registered import Registered
from accord.schema import v1, v2

OPENING = (
    v1.NewSessionRequest,
    v1.LoadSessionRequest,
    v1.ResumeSessionRequest,
    v1.ForkSessionRequest,
    v2.NewSessionRequest,
    v2.ResumeSessionRequest,
    v2.ForkSessionRequest,
)
"""The requests that may carry an addition to the system prompt."""


class Instructions:
    """One text for the agent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._block = f"<instructions>\n{text}\n</instructions>"

    def register(self, registered: Registered) -> None:
        """Add the steps that the instructions need."""
        for request in OPENING:
            registered.entry("client", request).add(self._on_opening, self._on_opening, is_filter=True)
        for prompt in (v1.PromptRequest, v2.PromptRequest):
            registered.entry("client", prompt).add(self._on_prompt, self._on_prompt, is_filter=True)
        for update in (v1.SessionNotification, v2.UpdateSessionNotification):
            registered.entry("agent", update).add(self._on_update, self._on_update, is_filter=True)

    def _on_opening(self, request: Any, hop: Hop[Any]) -> Any:
        if not hop.appends_to_system_prompt:
            return request
        given = request.system_prompt
        ours = hop.text(self._text)
        if given is None:
            given = (v1 if hop.version == 1 else v2).SystemPrompt("append", [ours])
        else:
            given = msgspec.structs.replace(given, content=[*given.content, ours])
        return msgspec.structs.replace(request, system_prompt=given)

    def _on_prompt(self, request: Any, hop: Hop[Any]) -> Any:
        if hop.appends_to_system_prompt or not hop.is_first(self):
            return request
        return msgspec.structs.replace(request, prompt=[hop.text(self._block), *request.prompt])

    def _on_update(self, notification: Any, _: Hop[Any]) -> Any:
        update = notification.update
        if isinstance(update, v1.UserMessageChunk | v2.UserMessageChunk):
            content = self._without(update.content)
            if content is update.content:
                return notification
            if content is None:
                return None
            return msgspec.structs.replace(notification, update=msgspec.structs.replace(update, content=content))
        if isinstance(update, v2.UserMessage) and isinstance(update.content, list):
            kept = [block for block in map(self._without, update.content) if block is not None]
            return msgspec.structs.replace(notification, update=msgspec.structs.replace(update, content=kept))
        return notification

    def _without(self, block: Any) -> Any:
        """A block of the user's message without the instructions; None if nothing else is in it."""
        text = getattr(block, "text", None)
        if not isinstance(text, str) or not text.startswith(self._block):
            return block
        rest = text.removeprefix(self._block).lstrip("\n")
        return msgspec.structs.replace(block, text=rest) if rest else None
