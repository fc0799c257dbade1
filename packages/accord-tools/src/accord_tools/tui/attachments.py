"""The attachments of a prompt: files, named by a command, dropped on the terminal, or an image of the clipboard.

A file that is dropped on a terminal is pasted as its path, in quotes, with backslashes or as a URL. Terminals paste no
images, so the clipboard is read by the program of the system.

A prompt may also mention the changes of the working tree, and lines of a file:

    @diff             what git sees as changed since the last commit, and the names of new files
    @src/a.py:10-40   lines of a file; @src/a.py:10 is one line
    @https://…        a link

An agent that accepts embedded context gets a resource, another one the same as text. A file of the folder with such a
name takes precedence.
"""

from __future__ import annotations

import mimetypes
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from accord import v1
from accord.paths import is_file_uri, path_of_uri, replace_file, state_folder
from accord.printable import fenced, label, printable
from accord.project.git import FolderNotTrusted, Git, Repository
from accord.project.project import CHUNK, SKIPPED, Project, read_named
from accord.services import LineRange, NotText, texts
from accord.session.placeholders import png_size
from accord_tools.presentation.session_words import MENTION

MOST_FILES = 100_000
_SKIPPED = SKIPPED | {"target", "dist", "build", "venv"}


def files_of(folder: Path, trusts: Callable[[Repository], bool]) -> list[str]:
    """Return the relative paths below a folder, those that can be shown unchanged.

    Git is used only if `trusts` allows it for the folder's repository.
    """
    try:
        files = Git(folder, trusts).files()
    except (ValueError, FolderNotTrusted):
        files = _found(folder)
    folders = {f"{parent}/" for file in files[:MOST_FILES] for parent in _parents(file)}
    return [path for path in (*files[:MOST_FILES], *sorted(folders)) if printable(path) == path and "\n" not in path]


def _found(folder: Path) -> list[str]:
    def skip(name: str) -> bool:
        return name.startswith(".") or name in _SKIPPED

    walk = Project([folder]).walk(folder, skip=skip, links=True)
    shown = (path for path in walk if not path.rpartition("/")[2].startswith("."))
    return list(islice(shown, MOST_FILES))


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]


WITHIN = 5.0
"""Seconds for the program that reads the clipboard."""
LONGEST = 4096
"""Characters of a pasted text that may be a path."""
MOST_PASTED = 20
"""Images of the clipboard that are kept, the newest."""
PROGRAMS: Sequence[Sequence[str]] = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
"""The programs that read an image from the clipboard: Wayland, X11, macOS."""


def pasted_path(text: str) -> Path | None:
    """Return the file that a pasted text names; None for any other text.

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
    """Return the image in the clipboard as a file; raises ValueError if there is none, or no program that reads it."""
    tried: list[str] = []
    for command in PROGRAMS:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        tried.append(command[0])
        if png_size(done.stdout) is not None:
            return _stored(done.stdout)
    if tried:
        raise ValueError("the clipboard holds no image; /image FILE attaches a file")
    raise ValueError(
        "no program here can read images from the clipboard (wl-paste, xclip, pngpaste); /image FILE attaches a file"
    )


def _stored(content: bytes) -> Path:
    folder = state_folder() / "chat" / "pasted"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in sorted(folder.glob("*.png"))[: -(MOST_PASTED - 1)]:
        old.unlink(missing_ok=True)
    path = folder / f"{time.time_ns()}.png"
    replace_file(path, content)
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
    """Describe how an attached file is sent whose contents are not sent as an image; empty if they are."""
    if path in project and project.size(path) is None:
        return "it leads out of the session's folder, so the agent gets a link to it; attach the file that it leads to"
    if not is_image(path) or takes.image:
        return ""
    return "this agent takes no images: it gets " + ("the file" if takes.embedded_context else "a link to the file")


DIFF = "diff"
"""The mention of the changes of the working tree."""
OUTPUT = "out"
"""The mention of the output of the user's latest command."""
MOST = 256 * 1024
"""Characters of a diff or of lines that are sent."""
NAMED = 200
"""New files that a diff names."""

_LINES = re.compile(r"(.+?):(\d{1,7})(?:-(\d{1,7}))?")
_URL = re.compile(r"https?://[^\s/]+\S*")
_AFTER = ".,;:!?)]}'"


class Part(NamedTuple):
    """A part of something that a prompt mentions."""

    title: str
    """Its description, for an agent that gets it as text."""
    uri: str
    text: str
    mime_type: str

    def block(self, takes: v1.PromptCapabilities) -> v1.ContentBlock:
        """The part as content that the agent accepts."""
        if takes.embedded_context:
            return v1.EmbeddedResource(v1.TextResourceContents(self.text, self.uri, self.mime_type))
        return v1.TextContent(f"{self.title}:\n{fenced(self.text)}\n")


def mentions_parts(text: str) -> bool:
    """Whether a prompt may mention something besides whole files, which requires reading files or asking git."""
    return any(name in (DIFF, OUTPUT) or _LINES.fullmatch(name) or _URL.fullmatch(name) for name in _names(text))


def mentioned(
    text: str,
    folder: Path,
    takes: v1.PromptCapabilities,
    trusts: Callable[[Repository], bool],
    output: Callable[[], Part] | None = None,
) -> list[v1.ContentBlock]:
    """Return the mentions in a prompt besides whole files; raises ValueError for unreadable ones.

    `output` returns the output of the user's latest command; None if there was none. `@diff` raises FolderNotTrusted
    unless `trusts` allows git to run in the folder's repository.

    `@diff` raises FolderNotTrusted unless `trusts` says of the folder's repository that git may run.
    """
    project = Project([folder])
    blocks: list[v1.ContentBlock] = []
    for name in dict.fromkeys(_names(text)):
        if _URL.fullmatch(name):
            blocks.append(v1.ResourceLink(name, name))
        elif name == OUTPUT and not os.path.lexists(folder / name):
            if output is None:
                raise ValueError("@out: there is no output yet; run a command with ! before its name")
            blocks.append(output().block(takes))
        elif not os.path.lexists(folder / name) and (part := _part(name, folder, project, trusts)) is not None:
            blocks.append(part.block(takes))
    return blocks


def _names(text: str) -> Iterator[str]:
    for quoted, plain in MENTION.findall(text):
        yield quoted or plain.rstrip(_AFTER)


def _part(name: str, folder: Path, project: Project, trusts: Callable[[Repository], bool]) -> Part | None:
    if name == DIFF:
        return Part("The changes of the working tree", "git:diff", working_diff(folder, trusts), "text/x-diff")
    found = _LINES.fullmatch(name)
    if found is None:
        return None
    path, first, last = folder / found[1], int(found[2]), int(found[3] or found[2])
    if project.size(path) is None:
        return None
    uri = f"{path.absolute().as_uri()}#L{first}-L{last}"
    return Part(f"Lines {first} to {last} of {found[1]}", uri, _lines(project, path, first, last), "text/plain")


def _lines(project: Project, path: Path, first: int, last: int) -> str:
    name = f"@{path.name}:{first}-{last}"
    if not 1 <= first <= last:
        raise ValueError(f"{name}: the first line must be from 1 to the last one, {last}")
    wanted = LineRange(first, last - first + 1)
    try:
        with project.open(path) as fd:
            for text in texts(iter(lambda: os.read(fd, CHUNK), b"")):
                if wanted.add(text) or wanted.length > MOST:
                    break
    except NotText as error:
        raise ValueError(f"{name}: the file is not text: {error}") from None
    if not wanted.text:
        raise ValueError(f"{name}: the file has fewer than {first} lines")
    return _short(wanted.text)


def working_diff(folder: Path, trusts: Callable[[Repository], bool]) -> str:
    """The changes of the working tree since the last commit; raises ValueError without git or without changes."""
    try:
        git = Git(folder, trusts)
        changed, untracked = git.diff(), git.new_files()
    except ValueError as error:
        raise ValueError(f"@diff: {error}") from error
    if not changed and not untracked:
        raise ValueError("@diff: the working tree has no changes since the last commit")
    new = "".join(f"new file, not in git: {name}\n" for name in untracked[:NAMED])
    return _short(f"{changed}{new}")


def _short(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}\n({len(text) - MOST:,} more characters are left out)\n"
