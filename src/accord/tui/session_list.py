"""The sessions of an agent as entries of a list: what the agent lists, and what the chat has kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from accord.configuration import last_sessions
from accord.printable import label
from accord.tui import keeping
from accord.tui.conversation import Conversation
from accord.tui.keeping import SessionWords
from accord.tui.pickers import Entry

LISTED = 2_000
"""Sessions of an agent that are listed."""
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
    kept = await asyncio.to_thread(keeping.words_of, program)
    for one in open_here:
        if one.connection is conversation.connection and (words := words_of(one)) is not None:
            kept[words.session_id] = words

    def entry(session_id: str, title: str | None, about: str) -> Entry:
        words = kept.get(session_id)
        named = title or (words.first if words is not None else "") or session_id
        return Entry(named, session_id, about, preview="" if words is None else words.preview)

    if not remote.capabilities.sessions.list:
        ours = last_sessions.last_sessions(program, folder)
        return [entry(it.id, None, f"{it.at[:16].replace('T', ' ')}  {it.folder}  {it.id}") for it in ours]
    found: list[tuple[str, Entry]] = []
    async for info in remote.sessions(folder):
        when = (info.updated_at or "")[:16].replace("T", " ")
        where = "" if info.cwd == str(conversation.folder) else f"{info.cwd}  "
        about = f"{when}  {where}{info.session_id}"
        found.append((info.updated_at or "", entry(info.session_id, info.title, about)))
        if len(found) == LISTED:
            break
    return [entry for _, entry in sorted(found, key=lambda it: it[0], reverse=True)]
