"""`accord.sync.connect`, `accord.sync.open` and `accord.ask`: how a program without `async` reaches an agent."""

# ruff: noqa: A001

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, overload

from accord.client import connect as async_connect, remote_agent
from accord.client.client import Client
from accord.client.connect import Where, with_parameters_of
from accord.client.remote_session import Content, T
from accord.client.reply import Outcome
from accord.sync.faces import RemoteAgent
from accord.sync.portal import Portal


class ConnectionBlock:
    """The block in which an agent is connected: `with accord.sync.connect(...) as remote`."""

    def __init__(self, block: AbstractAsyncContextManager[remote_agent.RemoteAgent]) -> None:
        self._block = block
        self._portal: Portal | None = None

    def __enter__(self) -> RemoteAgent:
        """Connect; raises one clear error when that fails."""
        portal = Portal(self._block)
        remote = RemoteAgent(portal, portal.open())
        self._portal = portal
        return remote

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the connection, the agent's process if it has one, and the thread, in bounded time."""
        if self._portal is not None:
            self._portal.close(interrupted=isinstance(error, KeyboardInterrupt))


@overload
def ask(
    *content: Content,
    agent: Where,
    client: Client | None = None,
    cwd: str | Path | None = None,
    timeout: float | None = None,
    idle_timeout: float | None = None,
    mentions: bool = False,
    output: None = None,
) -> Outcome: ...
@overload
def ask(
    *content: Content,
    agent: Where,
    client: Client | None = None,
    cwd: str | Path | None = None,
    timeout: float | None = None,
    idle_timeout: float | None = None,
    mentions: bool = False,
    output: type[T],
) -> T: ...
@overload
def ask(
    *content: Content,
    agent: Where,
    client: Client | None = None,
    cwd: str | Path | None = None,
    timeout: float | None = None,
    idle_timeout: float | None = None,
    mentions: bool = False,
    output: Any,
) -> Any: ...
def ask(
    *content: Content,
    agent: Where,
    client: Client | None = None,
    cwd: str | Path | None = None,
    timeout: float | None = None,
    idle_timeout: float | None = None,
    mentions: bool = False,
    output: Any = None,
) -> Any:
    """Start an agent, send it one prompt, end it, and return the outcome of the turn; without `await`.

        print(accord.ask("What is in here?", agent="gemini --acp").text)

    `agent` is what `accord.connect` accepts: a command, a URL, or an `Agent`. The session is in the folder `cwd`, by
    default the current one. `client` lends files, terminals and permission; without it, the agent gets none. The other
    parameters are those of `RemoteSession.prompt`. With `output`, a type, the answer is returned as a value of it:

        names = accord.ask("Which files are here?", agent="gemini --acp", output=list[str])

    For a second question, use `accord.sync.connect`.
    """
    with connect(agent, client) as remote:
        reply: Any = remote.new_session(cwd).prompt(
            *content, timeout=timeout, idle_timeout=idle_timeout, mentions=mentions, output=output
        )
        return reply.outcome() if output is None else reply


@with_parameters_of(async_connect.connect)
def connect(*args: Any, **kwargs: Any) -> ConnectionBlock:
    """Connect to an agent, and end it when the block is left.

        with accord.sync.connect(["gemini", "--acp"]) as remote:
            session = remote.new_session("/home/me/project")
            print(session.prompt("What is in here?").text)

    The parameters are those of `accord.connect`. Raises one clear error when the agent cannot be started or does not
    speak the protocol.
    """
    return ConnectionBlock(async_connect.connect(*args, **kwargs))


@with_parameters_of(async_connect.connect)
def open(*args: Any, **kwargs: Any) -> RemoteAgent:
    """Connect to an agent until `close` is called on it: for notebooks, where a connection outlives its cell.

        remote = accord.sync.open(["gemini", "--acp"])
        session = remote.new_session("/home/me/project")
        ...
        remote.close()

    The parameters are those of `accord.connect`. An agent that was not closed is ended when nothing refers to it or its
    sessions any more, or when the program ends, with a ResourceWarning. Everywhere else use `accord.sync.connect`,
    whose block cannot be forgotten.
    """
    return connect(*args, **kwargs).__enter__()
