"""A prompt of the user as parts of a message. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord import v1
from accord_tools.coder.conversation import Image, Part, Text


def parts_of(prompt: Sequence[v1.ContentBlock]) -> list[Part]:
    """What the model reads of a prompt."""
    return list(_parts(prompt))


def _parts(prompt: Sequence[v1.ContentBlock]) -> Iterator[Part]:
    for block in prompt:
        match block:
            case v1.TextContent():
                yield Text(block.text)
            case v1.ImageContent():
                yield Image(block.data, block.mime_type)
            case v1.ResourceLink():
                yield Text(f"\n(The user points to {block.uri})\n")
            case v1.EmbeddedResource():
                inner = block.resource
                if isinstance(inner, v1.TextResourceContents):
                    yield Text(f"\n<file uri={inner.uri!r}>\n{inner.text}\n</file>\n")
                else:
                    yield Text(f"\n(The user attaches {inner.uri}, which is not text)\n")
            case _:
                yield Text("\n(The user attaches something that cannot be read)\n")
