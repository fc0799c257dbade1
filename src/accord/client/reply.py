"""`Reply`: what comes back for one prompt, from sending it until the agent is done.

    session/update ──▶ RemoteSession ──▶ Unread ──▶ async for update in reply
    answer         ──▶ Reply.answered ──▶ Outcome                 await reply

The connection owns it: it goes on whether or not somebody iterates or awaits. Updates are buffered where they arrive,
so the answer never waits for a reader.

Cancelling follows the specification's rules for clients: `session/cancel` goes out, permission requests of the session
that are still open are answered `cancelled`, tool calls that are not finished are marked, and updates are taken until
the agent answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from accord.client.unread import Unread
from accord.errors import AccordError, Overflow, Timeout
from accord.schema import codec, v1
from accord.schema.base import Json
from accord.state import Message, ToolCallState
from accord.text import whole_part
from accord.transports.closing import within

if TYPE_CHECKING:
    from accord.client.remote_session import RemoteSession
    from accord.engine.peer import Posted

LEAVE_WITHIN = 5.0
"""Seconds that an `async with` waits for the answer of the prompt it cancels."""


class Outcome(msgspec.Struct, frozen=True):
    """How a turn ended, and what came of it."""

    stop_reason: str
    text: str
    """All that the agent said in it."""
    tool_calls: list[ToolCallState]
    """The tool calls that began in it."""
    usage: v1.Usage | None = None
    """Tokens, from agents that tell."""
    meta: dict[str, Json] | None = None


class Reply:
    """What comes back for one prompt.

    reply = session.prompt("What is in here?")
    async for text in reply.text():
        print(text, end="")
    print((await reply).stop_reason)

    Cancelling the task that waits for it cancels the turn, and so does leaving `async with session.prompt(...) as
    reply`. Several may read one Reply; each update goes to one of them.
    """

    def __init__(self, session: RemoteSession, unread: Unread, *, wire: bool) -> None:
        self.session = session
        self.unread = unread
        self.keeps_wire = wire
        """Whether its updates are kept as the JSON they came as."""
        self.prompt: list[v1.ContentBlock] = []
        """What was sent."""
        self._begins_at: int | None = None
        self._prompted: Posted[v1.PromptResponse] | None = None
        self._result: v1.PromptResponse | Exception | None = None
        self._finished = asyncio.Event()
        self._ends_at: int | None = None
        self._outcome: Outcome | None = None
        self.cancelled = False
        """Whether `session/cancel` was sent for it."""

    # What the session tells it

    def sent(self, prompted: Posted[v1.PromptResponse], prompt: list[v1.ContentBlock]) -> None:
        self._prompted = prompted
        self.prompt = prompt

    def begin(self) -> None:
        """The agent has no earlier prompt of this session to work on: what comes now belongs to this one."""
        self._begins_at = len(self.session.state)

    def overflowed(self, overflow: Overflow) -> None:
        """Its reader is too far behind."""
        self.fail(overflow)
        self.request_cancel()

    def answered(self, result: v1.PromptResponse | Exception) -> None:
        """The agent is done, or nothing will come any more."""
        if self._result is None:
            self._result = result
            self._ends_at = len(self.session.state)
            self.unread.finish()
            self._finished.set()

    def fail(self, error: Exception) -> None:
        """End it here with this error, although the agent is not done."""
        self.answered(error)

    # Reading

    def __aiter__(self) -> AsyncIterator[v1.SessionUpdate]:
        return self

    async def __anext__(self) -> v1.SessionUpdate:
        update = await self._next()
        typed: v1.SessionUpdate = codec.decode(update, v1.SessionUpdate) if self.keeps_wire else update
        return typed

    async def wire(self) -> AsyncGenerator[bytes]:
        """The updates as JSON, byte for byte as they came; for a prompt that was sent with `wire=True`."""
        if not self.keeps_wire:
            raise ValueError("the updates' JSON is not kept unless the prompt is sent with wire=True")
        while True:
            try:
                update = await self._next()
            except StopAsyncIteration:
                return
            yield cast("bytes", update)

    async def text(self) -> AsyncGenerator[str]:
        """What the agent says, as it comes; an emoji that was cut in two is whole."""
        half = ""
        async for update in self:
            said = update.content if isinstance(update, v1.AgentMessageChunk) else None
            if isinstance(said, v1.TextContent):
                text, half = whole_part(half, said.text)
                if text:
                    yield text
        if half:
            yield half

    async def _next(self) -> Any:
        unread = self.unread
        if (update := unread.now()) is None:
            try:
                update = await unread.get(self._awaited())
            except asyncio.CancelledError:
                self.request_cancel()
                raise
            if update is None:
                if isinstance(self._result, Exception):
                    raise self._result
                raise StopAsyncIteration
        return update

    # The end

    @property
    def done(self) -> bool:
        """Whether the agent is done, or the Reply has failed."""
        return self._result is not None

    def __await__(self) -> Generator[Any, None, Outcome]:
        return self._wait().__await__()

    async def _wait(self) -> Outcome:
        try:
            await self._wait_for_end()
        except asyncio.CancelledError:
            self.request_cancel()
            raise
        if isinstance(self._result, Exception):
            raise self._result
        return self._made_outcome()

    async def _wait_for_end(self) -> None:
        if self._finished.is_set():
            return
        with self._awaited() or nullcontext(), self.unread.awaiting_end():
            await self._finished.wait()

    def _awaited(self) -> AbstractContextManager[None] | None:
        return None if self._prompted is None else self._prompted.awaited()

    def _made_outcome(self) -> Outcome:
        if self._outcome is None:
            response = cast("v1.PromptResponse", self._result)
            entries = [] if self._begins_at is None else self.session.state.between(self._begins_at, self._ends_at)
            text = "".join(it.text for it in entries if isinstance(it, Message) and it.speaker == "agent")
            calls = [it for it in entries if isinstance(it, ToolCallState)]
            self._outcome = Outcome(response.stop_reason, text, calls, response.usage, response.meta)
        return self._outcome

    # Cancelling

    async def cancel(self, *, within: float | None = None) -> Outcome:
        """Cancel the turn, and wait until the agent says that it has ended.

        An agent that does not say so `within` these seconds is ended, started anew, and takes up its sessions where it
        can; the outcome is then `cancelled` all the same.
        """
        self.request_cancel()
        if within is None:
            return await self._wait()
        return await self._cancel_or_restart(within)

    def request_cancel(self) -> None:
        """Ask the agent to stop, without waiting; a second time, or after the end, does nothing."""
        if self.cancelled or self._prompted is None or (self.done and not self.session.is_turn(self)):
            return
        self.cancelled = True
        self.session.send_cancel()

    async def _cancel_or_restart(self, deadline: float) -> Outcome:
        if not await within(deadline, self._wait_for_end()):
            self.answered(v1.PromptResponse("cancelled"))
            await self.session.remote.restart(f"{self.session.id}: the agent ignored session/cancel")
        return await self._wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self.done:
            self.request_cancel()
            await within(LEAVE_WITHIN, self._finished.wait())

    async def watch(self, total: float | None, idle: float | None) -> None:
        """Fail it when a deadline passes."""
        assert self._prompted is not None
        try:
            await self._prompted.within(total, idle)
        except Timeout as timeout:
            if not self.done:
                self.fail(timeout)
                self.request_cancel()
        except AccordError:
            pass  # `answered` was told
