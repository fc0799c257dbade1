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
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from accord.client.mentions import MENTION
from accord.fences import fenced
from accord.project.roots import Roots
from accord.schema import v1
from accord.tui.git import git, has_commit

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


def mentioned(text: str, folder: Path, takes: v1.PromptCapabilities) -> list[v1.ContentBlock]:
    """What a prompt mentions besides whole files; raises ValueError for what cannot be read."""
    roots = Roots([folder])
    blocks: list[v1.ContentBlock] = []
    for name in dict.fromkeys(_names(text)):
        if _URL.fullmatch(name):
            blocks.append(v1.ResourceLink(name, name))
        elif not os.path.lexists(folder / name) and (part := _part(name, folder, roots)) is not None:
            blocks.append(part.block(takes))
    return blocks


def _names(text: str) -> Iterator[str]:
    for quoted, plain in MENTION.findall(text):
        yield quoted or plain.rstrip(_AFTER)


def _part(name: str, folder: Path, roots: Roots) -> Part | None:
    if name == DIFF:
        return Part("The changes of the working tree", "git:diff", working_diff(folder), "text/x-diff")
    found = _LINES.fullmatch(name)
    if found is None:
        return None
    path, first, last = folder / found[1], int(found[2]), int(found[3] or found[2])
    if path not in roots or not path.is_file():
        return None
    uri = f"{path.absolute().as_uri()}#L{first}-L{last}"
    return Part(f"Lines {first} to {last} of {found[1]}", uri, _lines(path, first, last), "text/plain")


def _lines(path: Path, first: int, last: int) -> str:
    if not 1 <= first <= last:
        raise ValueError(f"@{path.name}:{first}-{last}: the first line must be from 1 to the last one, {last}")
    try:
        with path.open(encoding="utf-8") as file:
            lines = [line for number, line in enumerate(file, 1) if first <= number <= last]
    except UnicodeDecodeError:
        raise ValueError(f"@{path.name}:{first}-{last}: the file is not text in UTF-8") from None
    if not lines:
        raise ValueError(f"@{path.name}:{first}-{last}: the file has fewer than {first} lines")
    return _short("".join(lines))


def working_diff(folder: Path) -> str:
    """The changes of the working tree since the last commit; raises ValueError without git or without changes."""
    # In a repository without a commit there is no HEAD: the index is compared with nothing.
    since = "HEAD" if has_commit(folder) else "--cached"
    try:
        listed = git(folder, "ls-files", "-z", "--others", "--exclude-standard")
        changed = git(folder, "diff", "--no-color", "--no-ext-diff", "--no-textconv", since, "--", ".")
    except ValueError as error:
        raise ValueError(f"@diff: {error}") from error
    untracked = [name for name in listed.split("\0") if name]
    if not changed and not untracked:
        raise ValueError("@diff: the working tree has no changes since the last commit")
    new = "".join(f"new file, not in git: {name}\n" for name in untracked[:NAMED])
    return _short(f"{changed}{new}")


def _short(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}\n({len(text) - MOST:,} more characters are left out)\n"
