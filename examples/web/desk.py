"""A user's connection to the agent, and what of a turn goes to the user's browser."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import accord
from accord import updates, v1

Event = dict[str, Any]


class Desk:
    """One user's side of the agent: only this user's sessions are visible here."""

    def __init__(self, agent: accord.Agent[Any], user: str, folder: Path) -> None:
        self._agent = agent
        self._user = user
        self._folder = folder
        self._remote: accord.RemoteAgent | None = None
        self._opening = asyncio.Lock()
        self._streams: dict[str, asyncio.Queue[Event | None]] = {}
        self._questions: dict[int, asyncio.Future[bool]] = {}
        self._numbers = itertools.count(1)

    async def remote(self) -> accord.RemoteAgent:
        """The connection, which is opened when it is first needed."""
        async with self._opening:
            if self._remote is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                client = accord.Client(files=True, permissions=self._ask)
                self._remote = await accord.open(self._agent, client, owner=self._user)
            return self._remote

    async def close(self) -> None:
        if self._remote is not None:
            await self._remote.close()

    async def new_session(self) -> accord.RemoteSession:
        return await (await self.remote()).new_session(self._folder)

    async def sessions(self) -> list[v1.SessionInfo]:
        """The sessions in the user's folder: those of editors elsewhere are not for the page, which lends its files."""
        return [info async for info in (await self.remote()).sessions(self._folder)]

    async def session(self, session_id: str) -> accord.RemoteSession:
        """A session of this user; raises PeerError if there is none with this id."""
        remote = await self.remote()
        async with self._opening:  # two requests of a browser may open it at the same time
            known = remote.open_sessions.get(v1.SessionId(session_id))
            return known or await remote.load(session_id, self._folder)

    async def turn(self, session: accord.RemoteSession, text: str) -> AsyncGenerator[Event]:
        """Send a prompt, and iterate over what the browser shows; leaving early cancels the turn."""
        events = self._streams[session.id] = asyncio.Queue()
        async with session.prompt(text) as reply:
            telling = asyncio.create_task(tell(reply, events))
            try:
                while event := await events.get():
                    yield event
            finally:
                telling.cancel()
                self._streams.pop(session.id, None)

    async def _ask(self, question: accord.PermissionQuestion) -> bool:
        stream = self._streams.get(question.session.id)
        if stream is None:
            return False
        number = next(self._numbers)
        self._questions[number] = asyncio.get_running_loop().create_future()
        diffs = [diff.unified() for diff in question.tool_call.diffs]
        stream.put_nowait({"type": "question", "number": number, "title": question.title, "diffs": diffs})
        try:
            return await self._questions[number]
        finally:
            del self._questions[number]

    def answer(self, number: int, *, allow: bool) -> bool:
        """Answer a question of the agent; False if it is not open."""
        question = self._questions.get(number)
        if question is None or question.done():
            return False
        question.set_result(allow)
        return True


async def tell(reply: accord.Reply, events: asyncio.Queue[Event | None]) -> None:
    """Put what the browser shows of a turn into a queue; None is its end."""
    try:
        async for update in reply:
            match update:
                case updates.AgentMessageChunk(content=updates.TextContent(text)):
                    events.put_nowait({"type": "text", "text": text})
                case updates.ToolCallUpdate(title=str(title), kind=kind):
                    events.put_nowait({"type": "tool", "title": title, "kind": kind})
                case _:
                    pass
        events.put_nowait({"type": "end", "reason": (await reply).stop_reason})
    except accord.AccordError as error:
        events.put_nowait({"type": "error", "message": str(error)})
    events.put_nowait(None)
