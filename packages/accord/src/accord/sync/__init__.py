"""Accord without `async`: a client's objects as plain ones, on an event loop in a thread of its own.

    with accord.sync.connect(["gemini", "--acp"]) as remote:
        session = remote.new_session("/home/me/project")
        for text in session.prompt("What is in here?").iter_text():
            print(text, end="")

The classes have the names and members of those in `accord`; `tools/sync_faces.py` writes them.
"""

from __future__ import annotations

from accord.sync.faces import (
    OpenDocument,
    RemoteAgent,
    RemoteSession,
    RemoteSubagent,
    Reply,
    SessionState,
    Suggestion,
    Suggestions,
)
from accord.sync.sync_connect import ConnectionBlock, connect, open  # noqa: A004

__all__ = [
    "ConnectionBlock",
    "OpenDocument",
    "RemoteAgent",
    "RemoteSession",
    "RemoteSubagent",
    "Reply",
    "SessionState",
    "Suggestion",
    "Suggestions",
    "connect",
    "open",
]


def __dir__() -> list[str]:
    return __all__
