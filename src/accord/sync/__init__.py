"""Accord without `async`: a client's objects as plain ones, on an event loop in a thread of its own.

    with accord.sync.connect(["gemini", "--acp"]) as remote:
        session = remote.new_session("/home/me/project")
        for text in session.prompt("What is in here?").iter_text():
            print(text, end="")

The classes have the names and members of those in `accord`; `tools/sync_faces.py` writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loading import on_first_use

if TYPE_CHECKING:
    from accord.sync.block import ConnectionBlock as ConnectionBlock
    from accord.sync.connecting import connect as connect, open as open  # noqa: A004
    from accord.sync.open_document import OpenDocument as OpenDocument
    from accord.sync.remote_agent import RemoteAgent as RemoteAgent
    from accord.sync.remote_session import RemoteSession as RemoteSession
    from accord.sync.remote_subagent import RemoteSubagent as RemoteSubagent
    from accord.sync.reply import Reply as Reply
    from accord.sync.session_state import SessionState as SessionState
    from accord.sync.suggestion import Suggestion as Suggestion
    from accord.sync.suggestions import Suggestions as Suggestions

_HOMES = {
    "ConnectionBlock": "block",
    "OpenDocument": "open_document",
    "RemoteAgent": "remote_agent",
    "RemoteSession": "remote_session",
    "RemoteSubagent": "remote_subagent",
    "Reply": "reply",
    "SessionState": "session_state",
    "Suggestion": "suggestion",
    "Suggestions": "suggestions",
    "connect": "connecting",
    "open": "connecting",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
