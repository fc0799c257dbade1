"""What the chat keeps between runs: drafts that were not sent, earlier prompts, and the words of sessions.

Each is a file of the user. Drafts stand by program and folder, so that a chat that ends in any way finds its words
again. The first and last words of a session are its preview in the list: agents list titles at most.

A conversation can also be exported, as Markdown, HTML or JSON.
"""

from __future__ import annotations

import html
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from accord.paths import locked, replace_file, state_folder
from accord.schema import codec
from accord.session import Message
from accord_tools.state_file import StateFile

if TYPE_CHECKING:
    from accord_tools.tui.chat_conversation import Conversation

MOST_DRAFTS, MOST_PROMPTS, MOST_SESSIONS = 200, 1_000, 500
LONGEST = 100_000
"""Characters of a prompt that is kept."""


class _Draft(msgspec.Struct):
    place: str
    text: str


class SessionWords(msgspec.Struct, frozen=True):
    """The first words of the user in a session, and the last ones of the agent."""

    program: str
    session_id: str
    first: str
    last: str

    @property
    def preview(self) -> str:
        """Both, each on its line."""
        return "\n".join(it for it in (self.first and f"> {self.first}", self.last and f"  {self.last}") if it)


_DRAFTS = StateFile("chat/drafts.json", list[_Draft])
_WORDS = StateFile("chat/sessions.json", list[SessionWords])


def place_of(program: str, folder: str | Path) -> str:
    """What a draft is kept by."""
    return f"{program}\n{os.path.realpath(folder)}"


def draft(place: str) -> str:
    """The draft that was kept; empty if there is none."""
    return next((it.text for it in _DRAFTS.read() if it.place == place), "")


def keep_draft(place: str, text: str) -> None:
    """Keep a draft, or forget it if it is empty. If the folder cannot be written, the chat goes on without."""
    with suppress(OSError), _DRAFTS.changed() as drafts:
        others = [it for it in drafts if it.place != place]
        drafts[:] = [*others, *([_Draft(place, text[:LONGEST])] if text.strip() else [])][-MOST_DRAFTS:]


def prompts() -> list[str]:
    """Earlier prompts, the oldest first."""
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


def keep_words(words: SessionWords) -> None:
    """Keep the words of a session, in place of earlier ones."""
    with suppress(OSError), _WORDS.changed() as kept:
        key = (words.program, words.session_id)
        kept[:] = [*(it for it in kept if (it.program, it.session_id) != key), words][-MOST_SESSIONS:]


def words_of(program: str) -> dict[str, SessionWords]:
    """The words that were kept of a program's sessions, by their ids."""
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
    """Write a conversation; returns the file. Raises ValueError for a name whose end says no format, or that exists."""
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
    """The texts as they are, escaped: nothing of an agent acts in the page."""
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
        {"type": "message" if isinstance(entry, Message) else "tool_call", **_plain(entry)}
        for entry in conversation.state.timeline
    ]
    said = {"title": conversation.title, "folder": str(conversation.folder), "entries": entries}
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


def _plain(entry: object) -> dict[str, object]:
    value = codec.plain(entry)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
