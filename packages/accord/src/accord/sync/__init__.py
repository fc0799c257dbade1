"""Accord without `async`: what clients and agents are written with, as plain functions and objects.

    with accord.sync.connect(["gemini", "--acp"]) as remote:
        session = remote.new_session("/home/me/project")
        for text in session.prompt("What is in here?").iter_text():
            print(text, end="")

A client's objects live on an event loop in a thread of their own. Those of an agent and a proxy, such as
`accord.sync.Turn` and `accord.sync.Hop`, are what their plain functions hold. The classes have the names and members of
those in `accord`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord.agent.plain_turn import (
        ElicitedUrl as ElicitedUrl,
        Login as Login,
        PlanDocument as PlanDocument,
        RemoteClient as RemoteClient,
        RemoteTerminal as RemoteTerminal,
        RunningCompaction as RunningCompaction,
        SentMessage as SentMessage,
        Session as Session,
        Subagent as Subagent,
        Task as Task,
        Tool as Tool,
        Turn as Turn,
        TurnPlan as TurnPlan,
    )
    from accord.proxy.plain_hop import Hop as Hop, Neighbour as Neighbour
    from accord.sync.faces import (
        OpenDocument as OpenDocument,
        RemoteAgent as RemoteAgent,
        RemoteSession as RemoteSession,
        RemoteSubagent as RemoteSubagent,
        Reply as Reply,
        SessionState as SessionState,
        Suggestion as Suggestion,
        Suggestions as Suggestions,
    )
    from accord.sync.sync_connect import (
        ConnectionBlock as ConnectionBlock,
        connect as connect,
        open as open,  # noqa: A004
    )

_HOMES = {
    ".agent.plain_turn": (
        "ElicitedUrl Login PlanDocument RemoteClient RemoteTerminal RunningCompaction SentMessage Session Subagent "
        "Task Tool Turn TurnPlan"
    ),
    ".proxy.plain_hop": "Hop Neighbour",
    "faces": "OpenDocument RemoteAgent RemoteSession RemoteSubagent Reply SessionState Suggestion Suggestions",
    "sync_connect": "ConnectionBlock connect open",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
