"""What a prompt mentions besides whole files: `@diff`, the changes of the working tree, and lines of a file.

    @diff             what git sees as changed since the last commit, and the names of new files
    @src/a.py:10-40   lines of a file; @src/a.py:10 is one line
    @https://…        a link

An agent that takes embedded context gets a resource, another one the same as text. A file of the folder that has such
a name counts as the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from accord.client.mentions import MENTION
from accord.printable import fenced
from accord.project.git import Git, Repository
from accord.project.project import CHUNK, Project
from accord.schema import v1
from accord.services.files.encoding import Lines, NotText, texts

DIFF = "diff"
"""The mention that stands for the changes of the working tree."""
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
    """What it is, for an agent that gets it as text."""
    uri: str
    text: str
    mime_type: str

    def block(self, takes: v1.PromptCapabilities) -> v1.ContentBlock:
        """The part as content that the agent accepts."""
        if takes.embedded_context:
            return v1.EmbeddedResource(v1.TextResourceContents(self.text, self.uri, self.mime_type))
        return v1.TextContent(f"{self.title}:\n{fenced(self.text)}\n")


def mentions_parts(text: str) -> bool:
    """Whether a prompt may mention something besides whole files, which takes a look at files or at git."""
    return any(name == DIFF or _LINES.fullmatch(name) or _URL.fullmatch(name) for name in _names(text))


def mentioned(
    text: str, folder: Path, takes: v1.PromptCapabilities, trusts: Callable[[Repository], bool]
) -> list[v1.ContentBlock]:
    """What a prompt mentions besides whole files; raises ValueError for what cannot be read.

    `@diff` raises FolderNotTrusted unless `trusts` says of the folder's repository that git may run.
    """
    project = Project([folder])
    blocks: list[v1.ContentBlock] = []
    for name in dict.fromkeys(_names(text)):
        if _URL.fullmatch(name):
            blocks.append(v1.ResourceLink(name, name))
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
    wanted = Lines(first, last - first + 1)
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
