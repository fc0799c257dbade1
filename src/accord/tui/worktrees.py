"""New git worktrees: a session works in a copy of the repository, on a branch of its own.

A worktree is never removed by the chat: it holds the work. The user is told where it is, and what keeps or removes it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from accord.configuration.trust import trust_folder
from accord.folders import state_folder
from accord.project.git import Git, Repository, find_repository

_NAME = re.compile(r"[\w][\w.-]{0,60}", re.ASCII)


class Worktree(NamedTuple):
    """A git worktree that was made for a session."""

    path: Path
    """Its top folder."""
    folder: Path
    """The folder in it that stands for the one in which the user was."""
    branch: str
    """Its branch, which is new."""
    repository: Path
    """The top folder of the working tree that it was made from."""
    left_out: int
    """How many files of that tree have changes that are not committed, and so are not in it."""
    unfiltered: int = 0
    """How many files are as git stores them, because a filter, such as that of Git LFS, would make them."""

    def described(self) -> str:
        """Where it is, and how it is kept or removed."""
        there, tree = shlex.quote(str(self.repository)), shlex.quote(str(self.path))
        lines = [
            f"folder:  {self.folder}",
            f"branch:  {self.branch}",
            f"keep:    commit in it, then  git -C {there} merge {self.branch}",
            f"remove:  git -C {there} worktree remove {tree} && git -C {there} branch -D {self.branch}",
        ]
        if self.left_out:
            files = "1 file has" if self.left_out == 1 else f"{self.left_out:,} files have"
            lines.append(f"{files} changes that are not committed: they are not in it.")
        if self.unfiltered:
            files = "1 file has" if self.unfiltered == 1 else f"{self.unfiltered:,} files have"
            lines.append(f"{files} a filter that did not run; for Git LFS: git -C {tree} lfs pull")
        return "\n".join(lines)


def new_worktree(folder: Path, trusts: Callable[[Repository], bool], name: str = "") -> Worktree:
    """Make a worktree from the last commit of the repository of a folder.

    Raises ValueError if that is not possible, and FolderNotTrusted unless `trusts` says that git may run.
    """
    if name and (_NAME.fullmatch(name) is None or ".." in name or name.endswith((".", ".lock"))):
        raise ValueError(f"a worktree's name must be letters, digits, '.', '_' or '-', got {name!r}")
    name = name or f"{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    try:
        git = Git(folder, trusts)
        repository = git.repository.root
        path, branch = state_folder() / "worktrees" / f"{repository.name}-{name}", f"accord/{name}"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        left_out = git.count_changes()
        unfiltered = git.add_worktree(path, branch)
    except ValueError as error:
        raise ValueError(f"no worktree can be made from {folder}: {error}") from error
    if (made := find_repository(path)) is not None:
        trust_folder(made)  # it holds what the folder holds
    inside = path / folder.resolve().relative_to(repository)
    return Worktree(path, inside if inside.is_dir() else path, branch, repository, left_out, len(unfiltered))
