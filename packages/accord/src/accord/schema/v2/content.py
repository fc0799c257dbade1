"""Content: what prompts, messages and tool results are made of.

Differs from version 1: roles are an open set, a priority lies between 0 and 1, links may have icons.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias, cast

from msgspec import Meta

from accord.schema.base import Json, Model, Open, Tolerant, Uint64, ValidItems, choice, words
from accord.schema.v1 import content as v1

Role: TypeAlias = Annotated[str, words("assistant", "user")]

MediaType: TypeAlias = Annotated[str, "MediaType"]
"""A MIME type."""

IconTheme: TypeAlias = Annotated[str, words("light", "dark")]


class Annotations(Model):
    """Hints about the audience and the importance of content."""

    audience: Tolerant[ValidItems[Role] | None] = None
    last_modified: Tolerant[str | None] = None
    priority: Tolerant[Annotated[float, Meta(ge=0, le=1)] | None] = None


class TextContent(Model, tag_field="type", tag="text"):
    """Plain text or Markdown."""

    text: str
    annotations: Tolerant[Annotations | None] = None


class ImageContent(Model, tag_field="type", tag="image"):
    """An image, encoded in base64."""

    data: str
    mime_type: MediaType
    uri: Tolerant[str | None] = None
    annotations: Tolerant[Annotations | None] = None

    @classmethod
    def from_bytes(cls, data: bytes, mime_type: str, *, uri: str | None = None) -> Self:
        return cls(v1.ImageContent.from_bytes(data, mime_type).data, mime_type, uri)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Reads the file now; its type is told by its name."""
        read = v1.ImageContent.from_file(path)
        return cls(read.data, read.mime_type, read.uri)


class AudioContent(Model, tag_field="type", tag="audio"):
    """A sound, encoded in base64."""

    data: str
    mime_type: MediaType
    annotations: Tolerant[Annotations | None] = None

    @classmethod
    def from_bytes(cls, data: bytes, mime_type: str) -> Self:
        return cls(v1.AudioContent.from_bytes(data, mime_type).data, mime_type)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Reads the file now; its type is told by its name."""
        read = v1.AudioContent.from_file(path)
        return cls(read.data, read.mime_type)


class Icon(Model):
    """An icon to show beside a resource."""

    src: str  # an https: or data: URI
    mime_type: Tolerant[MediaType | None] = None
    sizes: Tolerant[ValidItems[str] | None] = None
    theme: Tolerant[IconTheme | None] = None


class ResourceLink(Model, tag_field="type", tag="resource_link"):
    """A link to a resource that the receiver may be able to read."""

    name: str
    uri: str
    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    mime_type: Tolerant[MediaType | None] = None
    size: Tolerant[Uint64 | None] = None
    annotations: Tolerant[Annotations | None] = None
    icons: Tolerant[ValidItems[Icon] | None] = None

    @classmethod
    def to(cls, path: str | Path, *, title: str | None = None, description: str | None = None) -> Self:
        """A link to a file, with its type and, where the file exists, its size."""
        link = v1.ResourceLink.to(path)
        return cls(link.name, link.uri, title, description, link.mime_type, link.size)


class TextResourceContents(Model):
    """The contents of a resource as text."""

    text: str
    uri: str
    mime_type: Tolerant[MediaType | None] = None


class BlobResourceContents(Model):
    """The contents of a resource as bytes, encoded in base64."""

    blob: str
    uri: str
    mime_type: Tolerant[MediaType | None] = None


def _text_or_blob(value: Json) -> Any:
    if not isinstance(value, dict):
        return None
    raw = cast("dict[str, Json]", value)
    if isinstance(raw.get("text"), str):
        return TextResourceContents
    return BlobResourceContents if "blob" in raw else None


if TYPE_CHECKING:
    EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents
else:
    EmbeddedResourceResource = choice(
        "EmbeddedResourceResource", _text_or_blob, TextResourceContents, BlobResourceContents
    )


class EmbeddedResource(Model, tag_field="type", tag="resource"):
    """A resource together with its contents."""

    resource: EmbeddedResourceResource
    annotations: Tolerant[Annotations | None] = None

    @classmethod
    def from_text(cls, text: str, uri: str, mime_type: str | None = None) -> Self:
        return cls(TextResourceContents(text, uri, mime_type))

    @classmethod
    def from_bytes(cls, data: bytes, uri: str, mime_type: str | None = None) -> Self:
        read = v1.EmbeddedResource.from_bytes(data, uri)
        return cls(BlobResourceContents(cast("v1.BlobResourceContents", read.resource).blob, uri, mime_type))

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Reads the file now: as text where it is UTF-8, else as bytes."""
        read = v1.EmbeddedResource.from_file(path).resource
        if isinstance(read, v1.TextResourceContents):
            return cls.from_text(read.text, read.uri, read.mime_type)
        return cls(BlobResourceContents(read.blob, read.uri, read.mime_type))


ContentBlock: TypeAlias = Open[TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource]
"""One piece of content."""


def as_block(content: str | ContentBlock) -> ContentBlock:
    """Content as a block; a plain string is text."""
    return TextContent(content) if isinstance(content, str) else content
