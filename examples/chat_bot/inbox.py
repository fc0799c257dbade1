"""The bot's own queue: messages that wait, and the session of each conversation, in one SQLite file.

A message is stored before the chat is told that it arrived, and it is done when its answer is complete. So a bot that
was killed finds after its start what waits, and what it had begun. Chats deliver a message again when they are unsure:
the second time it is known.
"""

import sqlite3
from pathlib import Path

from room import Message

KEPT = 10_000
"""Messages that are remembered after they are done, to recognise them."""

TABLES = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, conversation TEXT NOT NULL, author TEXT NOT NULL,
    text TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'waits');
CREATE TABLE IF NOT EXISTS sessions (conversation TEXT PRIMARY KEY, session TEXT NOT NULL);
"""


class Inbox:
    """The queue of one bot."""

    def __init__(self, path: str | Path) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.executescript(TABLES)

    def put(self, message: Message) -> bool:
        """Store a message; False if it is known already."""
        row = (message.id, message.conversation, message.author, message.text)
        done = self._file.execute(
            "INSERT OR IGNORE INTO messages (id, conversation, author, text) VALUES (?,?,?,?)", row
        )
        return done.rowcount == 1

    def waiting(self) -> list[Message]:
        """The messages that are not begun, in their order."""
        return self._in_state("waits")

    def interrupted(self) -> list[Message]:
        """The messages whose answer was begun and not completed, because the bot was killed."""
        return self._in_state("begun")

    def _in_state(self, state: str) -> list[Message]:
        wanted = "SELECT id, conversation, author, text FROM messages WHERE state = ? ORDER BY number"
        return [Message(*row) for row in self._file.execute(wanted, (state,))]

    def begin(self, message: Message) -> None:
        """The answer to this message begins."""
        self._file.execute("UPDATE messages SET state = 'begun' WHERE id = ?", (message.id,))

    def done(self, message: Message) -> None:
        """The answer to this message is complete."""
        self._file.execute("UPDATE messages SET state = 'done', text = '' WHERE id = ?", (message.id,))
        oldest = "SELECT max(number) - ? FROM messages"
        self._file.execute(f"DELETE FROM messages WHERE state = 'done' AND number < ({oldest})", (KEPT,))

    def session_of(self, conversation: str) -> str | None:
        """The id of the conversation's session; None if it has none yet."""
        row = self._file.execute("SELECT session FROM sessions WHERE conversation = ?", (conversation,)).fetchone()
        return None if row is None else str(row[0])

    def keep_session(self, conversation: str, session: str) -> None:
        """This is the conversation's session from now on."""
        self._file.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (conversation, session))
