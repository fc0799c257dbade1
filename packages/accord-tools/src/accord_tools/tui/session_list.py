"""The sessions of an agent as entries of a list: what the agent lists, and what the chat has kept of them.

A session may work in a new git worktree, a copy of the repository on a branch of its own. The chat never removes one:
it holds the work. The user is told where it is, and what keeps or removes it.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from accord.paths import state_folder
from accord.printable import label
from accord.project.git import Git, Repository, find_repository
from accord_tools.configuration.last_sessions import KnownSession, known_sessions
from accord_tools.configuration.trust import trust_folder
from accord_tools.presentation.quantities import counted, minute_of
from accord_tools.tui import chat_storage
from accord_tools.tui.chat_conversation import Conversation
from accord_tools.tui.chat_storage import SessionWords
from accord_tools.tui.pickers import Entry

PREVIEWED = 200
"""Characters of the first and last words that the list shows."""


def program_of(conversation: Conversation) -> str:
    """What the sessions of a conversation's agent are kept by."""
    choice = conversation.connection.choice
    return choice.program or choice.name


def words_of(conversation: Conversation) -> SessionWords | None:
    """The first words of the user and the last ones of the agent; None before there are any."""
    if conversation.session is None:
        return None
    said = [it for it in conversation.state.messages if it.speaker in ("user", "agent") and it.text.strip()]
    first = next((it.text for it in said if it.speaker == "user"), "")
    last = next((it.text for it in reversed(said) if it.speaker == "agent"), "")
    if not first:
        return None
    shown = (label(first, PREVIEWED), label(last[-4 * PREVIEWED :], PREVIEWED))
    return SessionWords(program_of(conversation), conversation.session.id, *shown)


async def session_entries(
    conversation: Conversation, open_here: Iterable[Conversation], folder: str | None = None
) -> list[Entry]:
    """The sessions that the agent lists, the latest first; of one that lists none, those that we opened."""
    remote = await conversation.connection.ready()
    program = program_of(conversation)
    kept = await asyncio.to_thread(chat_storage.words_of, program)
    for one in open_here:
        if one.connection is conversation.connection and (words := words_of(one)) is not None:
            kept[words.session_id] = words

    def entry(session: KnownSession) -> Entry:
        words = kept.get(session.id)
        title = session.title or (words.first if words is not None else "") or session.id
        where = "" if session.folder == str(conversation.folder) else f"{session.folder}  "
        about = f"{minute_of(session.updated)}  {where}{session.id}"
        return Entry(title, session.id, about, preview="" if words is None else words.preview)

    return [entry(it) for it in await known_sessions(remote, program, folder)]


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
            files = counted(self.left_out, "file has", "files have")
            lines.append(f"{files} changes that are not committed: they are not in it.")
        if self.unfiltered:
            files = counted(self.unfiltered, "file has", "files have")
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
