"""`RemoteTool`: an ACP agent that another framework's agent calls as a tool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeAlias, TypedDict, cast

from accord import RemoteAgent, RemoteSession
from accord.client.connect import ConnectionBlock
from accord.mistakes import check_text, wrong_type

Callee: TypeAlias = ConnectionBlock | RemoteAgent
"""An agent to call: `accord.connect(...)`, or the agent in its block."""

DESCRIPTION = "Ask another agent to do a task. It sees nothing of this conversation: say all that it needs."


class ToolOptions(TypedDict, total=False):
    """The options of every `tool` beside the agent."""

    name: str
    """The tool's name for the model; `ask_agent` if left out."""
    description: str
    """The description of the tool for the model."""
    cwd: str | Path
    """The folder of the sessions; the program's own if left out."""
    one_session: bool
    """Whether all calls are one session, which remembers the calls before."""


class RemoteTool:
    """Gives a task to an agent, and returns the agent's text.

    With a `RemoteAgent` the caller owns the connection. With `accord.connect(...)` the first call opens it, in a
    separate task, because the framework may run each call in another task; the end of the event loop closes it. Each
    call is a session of its own, unless `one_session` requests one that remembers earlier calls.
    """

    def __init__(
        self,
        callee: Callee,
        *,
        name: str = "ask_agent",
        description: str = DESCRIPTION,
        cwd: str | Path | None = None,
        one_session: bool = False,
    ) -> None:
        if not isinstance(cast("object", callee), ConnectionBlock | RemoteAgent):
            raise wrong_type("tool(agent)", "accord.connect(...), or the RemoteAgent of its block", callee)
        check_text("tool(name)", name)
        check_text("tool(description)", description)
        self.name = name
        self.description = description
        self._callee = callee
        self._cwd = Path.cwd() if cwd is None else Path(cwd)
        self._one_session = one_session
        self._lock = asyncio.Lock()
        self._holder: asyncio.Task[None] | None = None
        self._session: RemoteSession | None = None

    async def __call__(self, task: str) -> str:
        """Run this task; raises AccordError when the agent fails."""
        if not self._one_session:
            return (await (await self.new_session()).prompt(task)).text
        async with self._lock:
            self._session = self._session or await self.new_session()
            return (await self._session.prompt(task)).text

    async def new_session(self) -> RemoteSession:
        """Open a session; raises AccordError when the agent fails."""
        return await (await self._connected()).new_session(self._cwd)

    async def _connected(self) -> RemoteAgent:
        if isinstance(self._callee, RemoteAgent):
            return self._callee
        if self._holder is None:
            self._opened: asyncio.Future[RemoteAgent] = asyncio.get_running_loop().create_future()
            self._holder = asyncio.create_task(self._hold(), name=f"accord tool {self.name}")
        return await asyncio.shield(self._opened)

    async def _hold(self) -> None:
        """Keep the connection open until this task is cancelled, which the end of the event loop does."""
        assert isinstance(self._callee, ConnectionBlock)
        try:
            async with self._callee as remote:
                self._opened.set_result(remote)
                await asyncio.Event().wait()
        except Exception as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)
