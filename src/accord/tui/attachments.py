"""Files that go with a prompt: named by a command, dropped on the terminal, or an image of the clipboard.

A file that is dropped on a terminal is pasted as its path, in quotes, with backslashes or as a URL. Terminals paste no
images, so the clipboard is read by the program of the system.
"""

from __future__ import annotations

import mimetypes
import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from accord.file_uris import is_file_uri, path_of_uri
from accord.folders import state_folder
from accord.printable import label
from accord.project.project import Project, read_named
from accord.schema import v1
from accord.services.files.atomic import replace_own
from accord.state.placeholders import png_size

WITHIN = 5.0
"""Seconds for the program that reads the clipboard."""
LONGEST = 4096
"""Characters of a pasted text that may be a path."""
KEPT = 20
"""Images of the clipboard that are kept, the newest."""
PROGRAMS: Sequence[Sequence[str]] = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
"""What reads an image from the clipboard: Wayland, X11, macOS."""


def pasted_path(text: str) -> Path | None:
    """The file that a pasted text names; None for any other text.

    >>> pasted_path("words of a prompt") is None
    True
    """
    text = text.strip()
    if not text or len(text) > LONGEST or "\n" in text:
        return None
    if is_file_uri(text):
        path = path_of_uri(text)
        words = [] if path is None else [str(path)]
    else:
        try:
            words = [text] if text.startswith(os.sep) and Path(text).exists() else shlex.split(text)
        except ValueError:
            return None
    if len(words) != 1 or "\0" in words[0] or not Path(words[0]).is_absolute():
        return None
    path = Path(words[0])
    return path if path.is_file() else None


def is_image(path: Path) -> bool:
    """Whether a file is an image, by its name."""
    return (mimetypes.guess_type(path.name)[0] or "").startswith("image/")


def clipboard_image() -> Path:
    """The image in the clipboard as a file; raises ValueError if there is none, or no program that reads it."""
    tried: list[str] = []
    for command in PROGRAMS:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        tried.append(command[0])
        if png_size(done.stdout) is not None:
            return _kept(done.stdout)
    if tried:
        raise ValueError("the clipboard holds no image; /image FILE attaches a file")
    raise ValueError(
        "no program here reads images of the clipboard (wl-paste, xclip, pngpaste); /image FILE attaches a file"
    )


def _kept(content: bytes) -> Path:
    folder = state_folder() / "chat" / "pasted"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in sorted(folder.glob("*.png"))[: -(KEPT - 1)]:
        old.unlink(missing_ok=True)
    path = folder / f"{time.time_ns()}.png"
    replace_own(path, content)
    return path


def described(path: Path) -> str:
    """A file in a few words: its name, and how large it is."""
    try:
        size = png_size(read_named(path, 32, cut=True))
        length = path.stat().st_size
    except (OSError, ValueError):
        return label(path.name, 60)
    pixels = "" if size is None else f"{size.width} x {size.height}, "
    return f"{label(path.name, 60)} ({pixels}{length:,} bytes)"


def sent_as(path: Path, project: Project, takes: v1.PromptCapabilities) -> str:
    """What becomes of an attached file whose contents are not sent as an image; empty if they are."""
    if path in project and project.size(path) is None:
        return "it leads out of the session's folder, so the agent gets a link to it; attach the file that it leads to"
    if not is_image(path) or takes.image:
        return ""
    return "this agent takes no images: it gets " + ("the file" if takes.embedded_context else "a link to the file")
