"""`SystemPrompt`: text of a client that extends or replaces an agent's own system prompt."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, TypeAlias, cast

import msgspec

from accord.errors import RequestError

Mode: TypeAlias = Literal["append", "override"]


class SystemPrompt(msgspec.Struct, frozen=True):
    """Text of the client that extends the agent's own system prompt, or replaces it.

    >>> SystemPrompt("append", "Be brief.").applied_to("You are a librarian.")
    'You are a librarian.\\n\\nBe brief.'
    >>> SystemPrompt("override", "You are a poet.").applied_to("You are a librarian.")
    'You are a poet.'
    """

    mode: Mode
    """What happens to the agent's own: `append` adds to it, `override` replaces it."""
    text: str
    """What the client wrote."""

    def applied_to(self, own: str) -> str:
        """The system prompt of the session, made of the agent's own and this one."""
        return self.text if self.mode == "override" or not own else f"{own}\n\n{self.text}"


def system_prompt_of(given: Any, accepted: Collection[Mode]) -> SystemPrompt | None:
    """The system prompt in a request that opens a session; raises RequestError for one that the agent cannot use."""
    if given is None:
        return None
    # system prompts, Errors: one that the agent cannot use is refused, never ignored.
    if given.mode not in accepted:
        how = ", ".join(accepted) or "none"
        raise RequestError.invalid_params(
            f"this agent takes no system prompt of mode {given.mode[:60]!r}; it takes {how}", path="$.systemPrompt.mode"
        )
    texts = [getattr(block, "text", None) for block in given.content]
    if not all(isinstance(text, str) for text in texts) or not any(texts):
        raise RequestError.invalid_params("a system prompt must be text, and not empty", path="$.systemPrompt.content")
    return SystemPrompt(cast("Mode", given.mode), "\n\n".join(cast("list[str]", texts)))


def check_modes(modes: Collection[str]) -> tuple[Mode, ...]:
    """The modes of `Agent(system_prompts=...)`; raises ValueError for what cannot be declared."""
    given = set(modes)
    if given - {"append", "override"} or given == {"override"}:
        raise ValueError(
            "Agent(system_prompts=...) must be empty, ['append'] or ['append', 'override']: "
            f"an agent that lets its system prompt be replaced must let it be extended; got {sorted(given)}"
        )
    return tuple(mode for mode in ("append", "override") if mode in given)
