"""Words that stand for content which is not text, and the size of a PNG. PURE."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from accord.printable import label
from accord.schema import v1


class PngSize(NamedTuple):
    """Pixels of an image."""

    width: int
    height: int


def placeholder(block: object) -> str:
    """What a block that is not text holds, in words.

    >>> placeholder(v1.ImageContent.from_bytes(b"not a picture", "image/png"))
    '[image: image/png, 13 bytes]'
    """
    match block:
        case v1.ImageContent(data=data, mime_type=kind):
            size = png_size(from_base64(data[:64]) or b"")
            pixels = "" if size is None else f", {size.width} x {size.height}"
            return f"[image: {label(kind, 40)}{pixels}, {_length(data):,} bytes]"
        case v1.AudioContent(data=data, mime_type=kind):
            return f"[audio: {label(kind, 40)}, {_length(data):,} bytes]"
        case v1.ResourceLink(name=name, uri=uri):
            return f"[link: {label(name, 60)} {label(uri, 200)}]"
        case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
            return f"[file: {label(uri, 200)}, {len(text):,} characters]"
        case v1.EmbeddedResource(resource=v1.BlobResourceContents(uri=uri, blob=blob)):
            return f"[file: {label(uri, 200)}, {_length(blob):,} bytes]"
        case _:
            return "[content of an unknown type]"


def png_size(data: bytes) -> PngSize | None:
    """The width and height of a PNG; None for other data.

    >>> png_size(b"GIF89a") is None
    True
    """
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 24:
        return None
    return PngSize(int.from_bytes(data[16:20]), int.from_bytes(data[20:24]))


def from_base64(text: str) -> bytes | None:
    """The bytes of base64; None for other text."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _length(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")
