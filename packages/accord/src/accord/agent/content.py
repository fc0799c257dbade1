"""What a prompt may hold: text and links always, the rest where the agent has declared it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, get_args

from accord.capabilities import Capabilities
from accord.errors import RequestError
from accord.schema import v1
from accord.schema.base import Unknown, tag_of
from accord.schema.v1 import ContentBlock

Accepted = Literal["image", "audio", "embedded"]


class Accepts:
    """The kinds of content that an agent takes in prompts."""

    def __init__(self, kinds: Collection[Accepted]) -> None:
        if unknown := set(kinds) - set(get_args(Accepted)):
            raise ValueError(
                f"accepts must name only {', '.join(get_args(Accepted))}, got {', '.join(map(repr, sorted(unknown)))}"
            )
        self._kinds = frozenset(kinds)

    def capabilities(self) -> v1.PromptCapabilities:
        return v1.PromptCapabilities(
            image="image" in self._kinds,
            audio="audio" in self._kinds,
            embedded_context="embedded" in self._kinds,
        )


def check_prompt(prompt: Sequence[ContentBlock], declared: Capabilities) -> None:
    """RequestError for a prompt that is empty, or holds what was not declared."""
    if not prompt:
        raise RequestError.invalid_params("prompt must not be empty", path="$.prompt")
    for position, block in enumerate(prompt):
        if isinstance(block, Unknown) or not declared.allow(block):
            # initialization, Prompt capabilities: text and links are the baseline, richer types need a capability.
            raise RequestError.invalid_params(
                "this agent does not accept this type of content in a prompt",
                path=f"$.prompt[{position}]",
                type=_tag(block),
            )


def text_of(prompt: Sequence[ContentBlock]) -> str:
    """The texts of a prompt, in their order."""
    return "\n".join(block.text for block in prompt if isinstance(block, v1.TextContent))


def _tag(block: ContentBlock) -> str:
    return block.tag if isinstance(block, Unknown) else str(tag_of(type(block)))
