"""What a user's prompt holds, in the few forms that all frameworks know. PURE."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from accord import v1
from accord.session.placeholders import from_base64
from accord_tools.coder.model import Text, prompt_parts


class Attachment(Struct, frozen=True):
    """Data that the user attached: an image, a sound or a file that is not text."""

    data: str
    """The data in base64."""
    mime_type: str
    uri: str | None = None

    @property
    def is_image(self) -> bool:
        return self.mime_type.startswith("image/")

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.data)

    @property
    def url(self) -> str:
        """A URL that holds the data."""
        return f"data:{self.mime_type};base64,{self.data}"

    @property
    def note(self) -> str:
        """What a model that cannot read it is told of it."""
        return (
            f"\n(The user attaches {self.uri or 'something'}, which is of type {self.mime_type} and cannot be read)\n"
        )


Part: TypeAlias = str | Attachment


def parts_of(prompt: Sequence[v1.ContentBlock]) -> list[Part]:
    """The prompt as texts and attachments, in order; neighbouring texts are one."""
    parts: list[Part] = []
    for block in prompt:
        part: Part = _attachment(block) or "".join(it.text for it in prompt_parts([block]) if isinstance(it, Text))
        if isinstance(part, Attachment) and from_base64(part.data) is None:
            part = part.note
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += "\n" + part
        else:
            parts.append(part)
    return parts


def images_only(parts: Sequence[Part]) -> list[Part]:
    """These parts for a model that reads text and images: other attachments become notes."""
    return [part if isinstance(part, str) or part.is_image else part.note for part in parts]


def _attachment(block: v1.ContentBlock) -> Attachment | None:
    match block:
        case v1.ImageContent() | v1.AudioContent():
            return Attachment(block.data, block.mime_type)
        case v1.EmbeddedResource(resource=v1.BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type)):
            return Attachment(blob, mime_type or "application/octet-stream", uri)
        case _:
            return None
