"""Files in a prompt, in the best form that the agent accepts.

An image is sent as an image and a sound as a sound if the agent accepts them; another file, if it is not large, by its
contents if the agent accepts embedded resources. Everything else is sent as a link, which every agent accepts.
"""

from __future__ import annotations

import mimetypes
import os
import re
from pathlib import Path

from accord.mistakes import shown
from accord.project.confined import Roots
from accord.project.project import Project, read_named
from accord.schema import v1

MOST_EMBEDDED = 256 * 1024
"""Bytes of the largest file whose contents are sent; a larger file is sent as a link."""

MOST_PICTURED = 10 * 1024 * 1024
"""Bytes of the largest image or sound that is sent; a larger one is sent as a link."""

MENTION = re.compile(r"(?<![\w@])@(?:\"([^\"\n]+)\"|([^\s\"@]+))")


def block_of_file(
    path: Path, cwd: Path, roots: Roots, takes: v1.PromptCapabilities, *, must_exist: bool
) -> v1.ContentBlock:
    """Return the block for a path in a prompt. Raises ValueError if the file must exist and does not."""
    found = cwd / path
    if must_exist and not os.path.lexists(found):
        relative = "" if path.is_absolute() else f", which is relative to the session's folder {cwd}"
        raise ValueError(
            f"session.prompt() got {shown(path)}{relative}: there is no such file or folder; for a file that only the "
            "agent has, pass v1.ResourceLink.to(path)"
        )
    return block_for(found, roots, takes)


def block_for(path: Path, roots: Roots, takes: v1.PromptCapabilities) -> v1.ContentBlock:
    """Return this file as a block that the agent accepts; a link if it is not a file, or leads out of the roots."""
    path = path.absolute()
    mime_type = mimetypes.guess_type(path.name)[0]
    kind = (mime_type or "").partition("/")[0]
    if kind == "image" and takes.image and (data := _content(path, roots, MOST_PICTURED)) is not None:
        return v1.ImageContent.from_bytes(data, mime_type or "image/png", uri=path.as_uri())
    if kind == "audio" and takes.audio and (data := _content(path, roots, MOST_PICTURED)) is not None:
        return v1.AudioContent.from_bytes(data, mime_type or "audio/wav")
    if takes.embedded_context and (data := _content(path, roots, MOST_EMBEDDED)) is not None:
        try:
            return v1.EmbeddedResource.from_text(data.decode(), path.as_uri(), mime_type)
        except UnicodeDecodeError:
            return v1.EmbeddedResource.from_bytes(data, path.as_uri(), mime_type)
    size = Project(roots).size(path) if path in roots else path.stat().st_size if path.is_file() else None
    return v1.ResourceLink(path.name, path.as_uri(), mime_type=mime_type, size=size)


def _content(path: Path, roots: Roots, most: int) -> bytes | None:
    """Return the bytes of a file up to this size; None for anything else.

    A file of the session's folders is not trusted, so no link in it leads out. One elsewhere was named by the user.
    """
    try:
        return Project(roots).read(path, most) if path in roots else read_named(path, most)
    except (OSError, ValueError):
        return None


def files_in(text: str, cwd: Path, roots: Roots) -> list[Path]:
    """Return the files and folders of a session that a text names: `@src/main.py`, or `@"with a space"`.

    >>> [path.name for path in files_in("see @/tmp, mail me@example.org", Path("/"), Roots(["/"]))]
    ['tmp']
    """
    found: dict[Path, None] = {}
    for quoted, plain in MENTION.findall(text):
        for name in [quoted] if quoted else [plain, plain.rstrip(".,;:!?)]}'")]:
            path = cwd / name
            if name and path in roots and os.path.lexists(path):
                found[path] = None
                break
    return list(found)
