"""`accord.ask`: one question to an agent, in one line."""

from __future__ import annotations

from pathlib import Path

from accord.client.client import Client
from accord.client.pending_turn import Outcome
from accord.client.remote_session import Content
from accord.connecting import Where
from accord.sync.connecting import connect


def ask(
    *content: Content,
    agent: Where,
    client: Client | None = None,
    cwd: str | Path | None = None,
    timeout: float | None = None,
    idle_timeout: float | None = None,
    mentions: bool = False,
) -> Outcome:
    """Start an agent, send it one prompt, end it, and return the outcome of the turn; without `await`.

        print(accord.ask("What is in here?", agent="gemini --acp").text)

    `agent` is what `accord.connect` accepts: a command, a URL, or an `Agent`. The session is in the folder `cwd`, by
    default the current one. `client` lends files, terminals and permission; without it, the agent gets none. The other
    parameters are those of `RemoteSession.prompt`. For a second question, use `accord.sync.connect`.
    """
    with connect(agent, client) as remote:
        reply = remote.new_session(cwd).prompt(*content, timeout=timeout, idle_timeout=idle_timeout, mentions=mentions)
        return reply.outcome()
