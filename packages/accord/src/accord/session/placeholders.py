"""Words that represent content which is not text, and the size of a PNG. PURE."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from accord.paths import path_of_uri
from accord.printable import label
from accord.schema import content as blocks


class PngSize(NamedTuple):
    """Pixels of an image."""

    width: int
    height: int


def placeholder(block: object, folder: str = "") -> str:
    """Describe a block that is not text. Files are named relative to this folder, if they are in it.

    >>> placeholder(blocks.ImageContent.from_bytes(b"not a picture", "image/png"))
    '[image: image/png, 13 bytes]'
    """
    match block:
        case blocks.ImageContent(data=data, mime_type=kind):
            size = png_size(from_base64(data[:64]) or b"")
            pixels = "" if size is None else f", {size.width} x {size.height}"
            return f"[image: {label(kind, 40)}{pixels}, {_length(data):,} bytes]"
        case blocks.AudioContent(data=data, mime_type=kind):
            return f"[audio: {label(kind, 40)}, {_length(data):,} bytes]"
        case blocks.SkillReference(name=name):
            return f"[skill: {label(name, 60)}]"
        case blocks.ResourceLink(name=name, uri=uri):
            shown = _from_folder(uri, folder)
            return f"[link: {label(name, 60)} {label(uri, 200)}]" if shown is None else f"[link: {label(shown, 200)}]"
        case blocks.EmbeddedResource(resource=blocks.TextResourceContents(uri=uri, text=text)):
            return f"[file: {label(_from_folder(uri, folder) or uri, 200)}, {len(text):,} characters]"
        case blocks.EmbeddedResource(resource=blocks.BlobResourceContents(uri=uri, blob=blob)):
            return f"[file: {label(_from_folder(uri, folder) or uri, 200)}, {_length(blob):,} bytes]"
        case _:
            return "[content of an unknown type]"


def _from_folder(uri: str, folder: str) -> str | None:
    """Return the path of a `file:` URI relative to this folder, with its fragment; None if it is not in the folder."""
    path = path_of_uri(uri) if folder else None
    if path is None or not path.is_relative_to(folder) or path == Path(folder):
        return None
    place = urlsplit(uri).fragment
    return f"{path.relative_to(folder)}{f' {place}' if place else ''}"


def png_size(data: bytes) -> PngSize | None:
    """The width and height of a PNG; None for other data.

    >>> png_size(b"GIF89a") is None
    True
    """
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 24:
        return None
    return PngSize(int.from_bytes(data[16:20]), int.from_bytes(data[20:24]))


def from_base64(text: str) -> bytes | None:
    """Return the bytes of base64; None for other text."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _length(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")
