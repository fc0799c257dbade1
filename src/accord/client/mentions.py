"""Files in a prompt, in the best form that the agent accepts.

An image is sent as an image and a sound as a sound if the agent accepts them; another file, if it is not large, by its
contents if the agent accepts embedded resources. Everything else is sent as a link, which every agent accepts.
"""

from __future__ import annotations

import mimetypes
import os
import re
from pathlib import Path

from accord.arguments import shown
from accord.project.roots import Roots
from accord.schema import v1

MOST_EMBEDDED = 256 * 1024
"""Bytes of the largest file whose contents are sent; a larger file is sent as a link."""

MOST_PICTURED = 10 * 1024 * 1024
"""Bytes of the largest image or sound that is sent; a larger one is sent as a link."""

MENTION = re.compile(r"(?<![\w@])@(?:\"([^\"\n]+)\"|([^\s\"@]+))")


def given(path: Path, cwd: Path, takes: v1.PromptCapabilities, *, must_exist: bool) -> v1.ContentBlock:
    """A path of a prompt as a block; raises ValueError for one that does not exist, where it has to."""
    found = cwd / path
    if must_exist and not os.path.lexists(found):
        relative = "" if path.is_absolute() else f", which is relative to the session's folder {cwd}"
        raise ValueError(
            f"session.prompt() got {shown(path)}{relative}: there is no such file or folder; for a file that only the "
            "agent has, pass v1.ResourceLink.to(path)"
        )
    return block_for(found, takes)


def block_for(path: Path, takes: v1.PromptCapabilities) -> v1.ContentBlock:
    """This file as a block that the agent accepts."""
    path = path.absolute()
    size = path.stat().st_size if path.is_file() else None
    kind = (mimetypes.guess_type(path.name)[0] or "").partition("/")[0]
    if kind == "image" and takes.image and size is not None and size <= MOST_PICTURED:
        return v1.ImageContent.from_file(path)
    if kind == "audio" and takes.audio and size is not None and size <= MOST_PICTURED:
        return v1.AudioContent.from_file(path)
    if takes.embedded_context and size is not None and size <= MOST_EMBEDDED:
        return v1.EmbeddedResource.from_file(path)
    return v1.ResourceLink.to(path)


def files_in(text: str, cwd: Path, roots: Roots) -> list[Path]:
    """The files and folders of a session that a text names: `@src/main.py`, or `@"with a space"`.

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
