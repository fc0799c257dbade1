"""What the chat keeps between runs: drafts that were not sent, earlier prompts, and the words of sessions.

Each is a file of the user. Drafts stand by program and folder, so that a chat that ends in any way finds its words
again. The first and last words of a session are its preview in the list: agents list titles at most.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from accord.folders import locked, state_folder
from accord.services.files.atomic import replace_own

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


def place_of(program: str, folder: str | Path) -> str:
    """What a draft is kept by."""
    return f"{program}\n{os.path.realpath(folder)}"


def draft(place: str) -> str:
    """The draft that was kept; empty if there is none."""
    return next((it.text for it in _drafts() if it.place == place), "")


def keep_draft(place: str, text: str) -> None:
    """Keep a draft, or forget it if it is empty. If the folder cannot be written, the chat goes on without."""
    with suppress(OSError), locked(_file("drafts.json")):
        others = [it for it in _drafts() if it.place != place]
        kept = [*others, *([_Draft(place, text[:LONGEST])] if text.strip() else [])][-MOST_DRAFTS:]
        replace_own(_file("drafts.json"), msgspec.json.encode(kept) + b"\n")


def prompts() -> list[str]:
    """Earlier prompts, the oldest first."""
    with suppress(OSError):
        lines = _file("prompts.jsonl").read_bytes().splitlines()[-MOST_PROMPTS:]
        return [text for line in lines if (text := _text(line)) is not None]
    return []


def keep_prompt(text: str) -> None:
    """Add a prompt to the earlier ones."""
    path = _file("prompts.jsonl")
    with suppress(OSError), locked(path):
        line = msgspec.json.encode(text[:LONGEST]) + b"\n"
        before = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        replace_own(path, b"".join([*before[-(MOST_PROMPTS - 1) :], line]))


def _text(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=str)
    except msgspec.DecodeError:
        return None


def _drafts() -> list[_Draft]:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(_file("drafts.json").read_bytes(), type=list[_Draft])
    return []


def keep_words(words: SessionWords) -> None:
    """Keep the words of a session, in place of earlier ones."""
    path = _file("sessions.json")
    with suppress(OSError), locked(path):
        key = (words.program, words.session_id)
        others = [it for it in _all_words() if (it.program, it.session_id) != key]
        replace_own(path, msgspec.json.encode([*others, words][-MOST_SESSIONS:]) + b"\n")


def words_of(program: str) -> dict[str, SessionWords]:
    """The words that were kept of a program's sessions, by their ids."""
    return {it.session_id: it for it in _all_words() if it.program == program}


def _all_words() -> list[SessionWords]:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(_file("sessions.json").read_bytes(), type=list[SessionWords])
    return []


def _file(name: str) -> Path:
    return state_folder() / "chat" / name
