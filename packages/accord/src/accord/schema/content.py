"""Content: the parts of prompts, messages and tool results, in both versions of the protocol. Page: content.

The versions differ little, and both are read in the form of version 2: roles are an open set, a priority lies between 0
and 1, links may have icons, a prompt may name a skill. A priority out of range carries no information, and is left out.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Meta

from accord.schema.base import Json, Model, Open, Tolerant, Uint64, ValidItems, choice, needs, unstable, words

if TYPE_CHECKING:
    from pathlib import Path


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


@needs("prompt_capabilities.image")
class ImageContent(Model, tag_field="type", tag="image"):
    """An image, encoded in base64."""

    data: str
    mime_type: MediaType
    uri: Tolerant[str | None] = None
    annotations: Tolerant[Annotations | None] = None

    @classmethod
    def from_bytes(cls, data: bytes, mime_type: str, *, uri: str | None = None) -> ImageContent:
        return cls(_base64(data), mime_type, uri)

    @classmethod
    def from_file(cls, path: str | Path) -> ImageContent:
        """Read the file now; its type follows from its name."""
        path = _file(path)
        return cls.from_bytes(path.read_bytes(), _mime_type_of(path) or "image/png", uri=path.as_uri())


@needs("prompt_capabilities.audio")
class AudioContent(Model, tag_field="type", tag="audio"):
    """A sound, encoded in base64."""

    data: str
    mime_type: MediaType
    annotations: Tolerant[Annotations | None] = None

    @classmethod
    def from_bytes(cls, data: bytes, mime_type: str) -> AudioContent:
        return cls(_base64(data), mime_type)

    @classmethod
    def from_file(cls, path: str | Path) -> AudioContent:
        """Read the file now; its type follows from its name."""
        path = _file(path)
        return cls.from_bytes(path.read_bytes(), _mime_type_of(path) or "audio/wav")


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
    def to(cls, path: str | Path, *, title: str | None = None, description: str | None = None) -> ResourceLink:
        """A link to a file, with its type and, where the file exists, its size."""
        path = _file(path)
        size = path.stat().st_size if path.is_file() else None
        return cls(path.name, path.as_uri(), title, description, _mime_type_of(path), size)


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
    if not isinstance(value, dict) or not value.keys() & {"text", "blob"}:  # pyright: ignore[reportUnknownMemberType]
        return None
    return TextResourceContents if isinstance(value.get("text"), str) else BlobResourceContents  # pyright: ignore[reportUnknownMemberType]


if TYPE_CHECKING:
    EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents
else:
    EmbeddedResourceResource = choice(
        "EmbeddedResourceResource", _text_or_blob, TextResourceContents, BlobResourceContents
    )


@needs("prompt_capabilities.embedded_context")
class EmbeddedResource(Model, tag_field="type", tag="resource"):
    """A resource together with its contents."""

    resource: EmbeddedResourceResource
    annotations: Tolerant[Annotations | None] = None

    @classmethod
    def from_text(cls, text: str, uri: str, mime_type: str | None = None) -> EmbeddedResource:
        return cls(TextResourceContents(text, uri, mime_type))

    @classmethod
    def from_bytes(cls, data: bytes, uri: str, mime_type: str | None = None) -> EmbeddedResource:
        return cls(BlobResourceContents(_base64(data), uri, mime_type))

    @classmethod
    def from_file(cls, path: str | Path) -> EmbeddedResource:
        """Reads the file now: as text where it is UTF-8, else as bytes."""
        path = _file(path)
        data, mime_type = path.read_bytes(), _mime_type_of(path)
        try:
            return cls.from_text(data.decode("utf-8"), path.as_uri(), mime_type)
        except UnicodeDecodeError:
            return cls.from_bytes(data, path.as_uri(), mime_type)


@unstable
@needs("session.prompt.skill")  # in the words of version 2, as version 1 has no skills
class SkillReference(Model, tag_field="type", tag="skill"):
    """A skill for the agent to use in this prompt, by its name among the session's commands."""

    name: str


ContentBlock: TypeAlias = Open[
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | SkillReference
]
"""One content block."""


def as_block(content: str | ContentBlock) -> ContentBlock:
    """Return content as a block; a plain string is text."""
    return TextContent(content) if isinstance(content, str) else content


def _file(path: str | Path) -> Path:
    from pathlib import Path  # here, so that a program with only plain text does not load it

    return Path(path).absolute()


def _mime_type_of(path: Path) -> str | None:
    """The media type that the file's name suggests."""
    import mimetypes  # likewise

    return mimetypes.guess_type(path.name)[0]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
