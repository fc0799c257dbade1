"""What an author's function holds while it works on one prompt."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from accord.agent.content import text_of
from accord.agent.remote_client import RemoteClient
from accord.agent.session import Session
from accord.handlers import Context
from accord.schema import v1
from accord.schema.base import Json, Request
from accord.schema.v1.content import ContentBlock

T = TypeVar("T")
ResultT = TypeVar("ResultT")


class Turn:
    """One prompt being worked on.

    >>> async def reply(turn: Turn) -> None:
    ...     await turn.say(f"You said: {turn.text}")
    """

    def __init__(self, session: Session, request: v1.PromptRequest, context: Context, tasks: asyncio.TaskGroup) -> None:
        self.session = session
        self.prompt = request.prompt
        """The prompt as it came: blocks of text, links, images and so on."""
        self.meta: dict[str, Json] = request.meta or {}
        """The `_meta` of the prompt."""
        self.answer_meta: dict[str, Json] = {}
        """What the answer's `_meta` will hold."""
        self.context = context
        """The low level's: the peer, and the request's id."""
        self.client = RemoteClient(session.service.client, session, self.request)
        """What the client lends: files and terminals."""
        self._tasks = tasks
        self._asking: set[asyncio.Task[Any]] = set()
        self._send = session.send
        self._message_id = v1.MessageId("")
        self._speaker: type[object] | None = None
        self._messages = 0
        self._name = secrets.token_hex(4)

    @property
    def text(self) -> str:
        """The prompt's text."""
        return text_of(self.prompt)

    @property
    def cwd(self) -> Path:
        return self.session.cwd

    # Speaking

    async def say(self, content: str | ContentBlock) -> None:
        """Say something to the user: text, in Markdown, or any other content.

        What is said without anything between is one message.
        """
        if self._speaker is not v1.AgentMessageChunk:
            self._begin_message(v1.AgentMessageChunk)
        block = v1.TextContent(content) if isinstance(content, str) else content
        await self._send(v1.AgentMessageChunk(block, self._message_id))

    async def think(self, content: str | ContentBlock) -> None:
        """Think aloud."""
        if self._speaker is not v1.AgentThoughtChunk:
            self._begin_message(v1.AgentThoughtChunk)
        await self._send(v1.AgentThoughtChunk.of(content, self._message_id))

    async def say_as_user(self, content: str | ContentBlock) -> None:
        """Say something in the user's name."""
        if self._speaker is not v1.UserMessageChunk:
            self._begin_message(v1.UserMessageChunk)
        await self._send(v1.UserMessageChunk.of(content, self._message_id))

    def end_message(self) -> None:
        """What is said next is another message."""
        self._speaker = None

    def _begin_message(self, speaker: type[object]) -> None:
        # prompt-turn, Message IDs: the chunks of one message share an id, and the next message has another.
        self._speaker = speaker
        self._messages += 1
        self._message_id = v1.MessageId(f"{self._name}-{self._messages}")

    # Asking

    async def request(self, request: Request[ResultT]) -> ResultT:
        """Ask the client anything; given up when the turn ends, in whichever task it was asked."""
        return await self._while_it_lasts(self.session.service.peer.request(request))

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do this beside what the turn does. The turn ends only when it is done, and a cancel ends both."""
        return self._tasks.create_task(work)

    async def _while_it_lasts(self, asking: Awaitable[T]) -> T:
        task = asyncio.current_task()
        if task is None or task in self._asking:
            return await asking
        self._asking.add(task)
        try:
            return await asking
        finally:
            self._asking.discard(task)

    def end(self) -> None:
        """Nothing that this turn has asked is waited for any more."""
        left = [task for task in self._asking if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
