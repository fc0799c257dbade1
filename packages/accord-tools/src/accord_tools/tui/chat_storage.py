"""The chat's data between runs: drafts that were not sent, earlier prompts, and previews of sessions.

Each is a file of the user. Drafts are stored by program and folder, so that a chat that ends in any way finds its text
again. The first and last words of a session are its preview in the list: agents list titles at most.

A conversation can also be exported, as Markdown, HTML or JSON.

The sessions of an agent as entries of a list: the agent's list, combined with the chat's own data about them.

A session may work in a new git worktree, a copy of the repository on its own branch. The chat never removes one: it
contains the work. The user learns where it is, and how to keep or remove it.
"""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from accord.paths import locked, replace_file, state_folder
from accord.printable import label
from accord.project.git import Git, Repository, find_repository
from accord.schema import codec
from accord.session import Message
from accord_tools.configuration.last_sessions import KnownSession, known_sessions, latest_opened
from accord_tools.configuration.trust import trust_folder
from accord_tools.presentation.quantities import counted, minute_of
from accord_tools.presentation.session_words import prompt_title
from accord_tools.state_file import StateFile
from accord_tools.tui.chat_conversation import Conversation
from accord_tools.tui.pickers import Entry

if TYPE_CHECKING:
    from accord_tools.tui.connection import AgentChoice

MOST_DRAFTS, MOST_PROMPTS, MOST_SESSIONS = 200, 1_000, 500
LONGEST = 100_000
"""Characters of a stored prompt."""


class _Draft(msgspec.Struct):
    place: str
    text: str


class SessionWords(msgspec.Struct, frozen=True):
    """The first words of the user in a session, and the last ones of the agent."""

    program: str
    session_id: str
    first: str
    last: str
    title: str = ""
    """The substitute for the session's title in lists."""

    @property
    def preview(self) -> str:
        """Return both, each on its line."""
        return "\n".join(it for it in (self.first and f"> {self.first}", self.last and f"  {self.last}") if it)


_DRAFTS = StateFile("chat/drafts.json", list[_Draft])
_WORDS = StateFile("chat/sessions.json", list[SessionWords])


def place_of(program: str, folder: str | Path) -> str:
    """The key of a draft."""
    return f"{program}\n{os.path.realpath(folder)}"


def draft(place: str) -> str:
    """Return the stored draft; empty if there is none."""
    return next((it.text for it in _DRAFTS.read() if it.place == place), "")


def keep_draft(place: str, text: str) -> None:
    """Store a draft, or delete it if it is empty. If the folder cannot be written, the chat continues without."""
    with suppress(OSError), _DRAFTS.changed() as drafts:
        others = [it for it in drafts if it.place != place]
        drafts[:] = [*others, *([_Draft(place, text[:LONGEST])] if text.strip() else [])][-MOST_DRAFTS:]


def prompts() -> list[str]:
    """Return earlier prompts, the oldest first."""
    with suppress(OSError):
        lines = _prompts_file().read_bytes().splitlines()[-MOST_PROMPTS:]
        return [text for line in lines if (text := _text(line)) is not None]
    return []


def keep_prompt(text: str) -> None:
    """Add a prompt to the earlier ones."""
    path = _prompts_file()
    with suppress(OSError), locked(path):
        line = msgspec.json.encode(text[:LONGEST]) + b"\n"
        before = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        replace_file(path, b"".join([*before[-(MOST_PROMPTS - 1) :], line]))


def _text(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=str)
    except msgspec.DecodeError:
        return None


MOST_LAST = 6
"""Last sessions that the list of agents offers."""


def last_entries(agents: Sequence[AgentChoice]) -> list[Entry]:
    """The last sessions of these agents as entries of a list, the latest first."""
    names = {it.program: it.name for it in agents if it.program}
    words = {(it.program, it.session_id): it.title or it.first for it in _WORDS.read()}
    last = [it for it in latest_opened(5 * MOST_LAST) if it.program in names][:MOST_LAST]
    return [
        Entry(
            label(words.get((it.program, it.id), "") or it.id, 50),
            it,
            f"{names[it.program]}  {minute_of(it.at)}  {it.folder}",
            group="Last sessions",
        )
        for it in last
    ]


def keep_words(words: SessionWords) -> None:
    """Store the preview of a session, replacing an earlier one."""
    with suppress(OSError), _WORDS.changed() as kept:
        key = (words.program, words.session_id)
        kept[:] = [*(it for it in kept if (it.program, it.session_id) != key), words][-MOST_SESSIONS:]


def words_by_session(program: str) -> dict[str, SessionWords]:
    """Return the stored previews of a program's sessions, by their ids."""
    return {it.session_id: it for it in _WORDS.read() if it.program == program}


def _prompts_file() -> Path:
    return state_folder() / "chat" / "prompts.jsonl"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{max-width:60em;margin:2em auto;font:16px/1.5 sans-serif}}pre{{white-space:pre-wrap;overflow-wrap:anywhere}}
.user{{background:#eef;padding:.5em 1em}}.thought,.tool{{color:#666}}</style></head><body><h1>{title}</h1>
{body}</body></html>
"""


def export(conversation: Conversation, path: Path) -> Path:
    """Write a conversation; returns the file. Raises ValueError for a name without a known ending, or an
    existing one.
    """
    writers = {".md": _markdown, ".html": _html, ".json": _json}
    path = path.expanduser()
    if path.suffix not in writers:
        raise ValueError(f"cannot export to {path.name!r}: the name must end with {', '.join(writers)}")
    if path.exists():
        raise ValueError(f"{path} exists; name another file")
    replace_file(path, writers[path.suffix](conversation).encode("utf-8", "replace"))
    return path


def _markdown(conversation: Conversation) -> str:
    return "" if conversation.session is None else conversation.session.markdown()


def _html(conversation: Conversation) -> str:
    """Return the texts escaped: nothing of an agent is active in the page."""
    parts: list[str] = []
    for entry in conversation.state.timeline:
        if isinstance(entry, Message):
            parts.append(f'<pre class="{entry.speaker}">{html.escape(entry.text)}</pre>')
        else:
            text = "\n".join(it for it in (f"{entry.title} ({entry.status})", entry.text) if it)
            parts.append(f'<pre class="tool">{html.escape(text)}</pre>')
    return _PAGE.format(title=html.escape(conversation.title), body="\n".join(parts))


def _json(conversation: Conversation) -> str:
    entries = [
        {"type": "message" if isinstance(entry, Message) else "tool_call", **cast("dict[str, Any]", codec.plain(entry))}
        for entry in conversation.state.timeline
    ]
    said = {"title": conversation.title, "folder": str(conversation.folder), "entries": entries}
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


PREVIEWED = 200
"""Characters of the first and last words that the list shows."""


def program_of(conversation: Conversation) -> str:
    """Return the key under which the sessions of a conversation's agent are stored."""
    choice = conversation.connection.choice
    return choice.program or choice.name


def words_of(conversation: Conversation) -> SessionWords | None:
    """Return the first words of the user and the last ones of the agent; None before there are any."""
    if conversation.session is None:
        return None
    said = [it for it in conversation.state.messages if it.speaker in ("user", "agent") and it.text.strip()]
    first = next((it.text for it in said if it.speaker == "user"), "")
    last = next((it.text for it in reversed(said) if it.speaker == "agent"), "")
    if not first:
        return None
    shown = (label(first, PREVIEWED), label(last[-4 * PREVIEWED :], PREVIEWED), prompt_title(first))
    return SessionWords(program_of(conversation), conversation.session.id, *shown)


async def session_entries(
    conversation: Conversation, open_here: Iterable[Conversation], folder: str | None = None
) -> list[Entry]:
    """Return the agent's listed sessions, the latest first; if it lists none, those that we opened."""
    remote = await conversation.connection.ready()
    program = program_of(conversation)
    kept = await asyncio.to_thread(words_by_session, program)
    for one in open_here:
        if one.connection is conversation.connection and (words := words_of(one)) is not None:
            kept[words.session_id] = words

    def entry(session: KnownSession) -> Entry:
        words = kept.get(session.id)
        title = session.title or (words.title or words.first if words is not None else "") or session.id
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
    """The folder in it that corresponds to the user's folder."""
    branch: str
    """Its branch, which is new."""
    repository: Path
    """The top folder of the working tree that it was made from."""
    left_out: int
    """How many files of that tree have uncommitted changes, and so are not in it."""
    unfiltered: int = 0
    """How many files are as git stores them, because a filter, such as that of Git LFS, would make them."""

    def described(self) -> str:
        """Describe where it is, and how it is kept or removed."""
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

    Raises ValueError if that is not possible, and FolderNotTrusted unless `trusts` allows git to run.
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
