"""`Reply`: what comes back for one prompt: iterate it for the updates, await it for the outcome.

It is the face of a `PendingTurn`, which does the work.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Sequence
from typing import Any, Self, cast

from accord.arguments import check_meta
from accord.client.change import Change, replaced_by
from accord.client.pending_turn import Outcome, PendingTurn
from accord.client.remote_subagent import RemoteSubagent, face_of
from accord.client.subagents import SubagentSaid
from accord.schema import codec, v1
from accord.schema.base import Json
from accord.session.values import whole_part

log = logging.getLogger("accord")


class ReplyText(Awaitable[str]):
    """The text of a reply, which is complete when the turn has ended: await it."""

    def __init__(self, turn: PendingTurn) -> None:
        self._turn = turn

    def __await__(self) -> Generator[Any, None, str]:
        """Wait for the end of the turn; raises the error that it failed with."""
        return self._whole().__await__()

    async def _whole(self) -> str:
        return (await self._turn.wait()).text

    def __repr__(self) -> str:
        return "<the text of a reply: write `await reply.text`, or `async for text in reply.iter_text()`>"


class Insertion(Awaitable["str | None"]):
    """The moment when a prompt gets its place in the conversation: await it for the id of its message."""

    def __init__(self, turn: PendingTurn) -> None:
        self._turn = turn

    def __await__(self) -> Generator[Any, None, str | None]:
        """Wait for the place; raises the error that the prompt was refused with."""
        return self._turn.until_inserted().__await__()

    def __repr__(self) -> str:
        return "<the place of a prompt in the conversation: write `await reply.inserted`>"


class Reply:
    """What comes back for one prompt: iterate it for the updates, await it for the `Outcome`.

        reply = session.prompt("What is in here?")
        async for text in reply.iter_text():
            print(text, end="")
        print((await reply).stop_reason)

    Cancelling a task that waits for the Reply cancels the turn, and so does leaving a block of
    `async with session.prompt(...) as reply`. If several tasks read one Reply, each update goes to one of them.
    """

    def __init__(self, turn: PendingTurn) -> None:
        self._turn = turn

    def __repr__(self) -> str:
        turn = self._turn
        state = "done" if turn.done else "cancelled" if turn.cancelled else "running"
        return f"Reply({state})"

    @property
    def prompt(self) -> Sequence[v1.ContentBlock]:
        """The blocks that were sent."""
        return self._turn.prompt

    @property
    def inserted(self) -> Insertion:
        """The prompt's place in the conversation: `await reply.inserted` gives the id of its message.

        An agent of version 2 may hold a prompt while it works on another one. The id is None if the prompt was
        cancelled before, and from agents of version 1, which do not tell it: with them this waits for nothing.
        """
        return Insertion(self._turn)

    # Reading

    def __aiter__(self) -> AsyncIterator[v1.SessionUpdate]:
        """Iterate over the updates of the turn, in order; ends when the agent is done with it.

        Updates of version 2 come in the classes of version 1, where it has them; `accord.v2` has the others.
        """
        return self

    async def __anext__(self) -> v1.SessionUpdate:
        update = await self._turn.next_update()
        while isinstance(update, SubagentSaid):
            update = await self._turn.next_update()
        typed: v1.SessionUpdate = codec.decode(update, self._turn.update_type) if self._turn.keeps_wire else update
        return typed

    async def wire(self) -> AsyncGenerator[bytes]:
        """Iterate over the updates as JSON, byte for byte as they came; the prompt must be sent with `wire=True`."""
        if not self._turn.keeps_wire:
            raise ValueError("wire() needs a prompt that was sent with wire=True; without it the JSON is not kept")
        while True:
            try:
                update = await self._turn.next_update()
            except StopAsyncIteration:
                return
            yield cast("bytes", update)

    async def with_subagents(self) -> AsyncGenerator[tuple[RemoteSubagent | None, v1.SessionUpdate]]:
        """Iterate over the updates of the turn and its subagents, each with its subagent, None for the turn's own.

        The prompt must be sent with `subagents=True`.
        """
        if not self._turn.keeps_subagents:
            raise ValueError("with_subagents() needs a prompt that was sent with subagents=True")
        while True:
            try:
                update = await self._turn.next_update()
            except StopAsyncIteration:
                return
            if isinstance(update, SubagentSaid):
                yield face_of(update.subagent, self._turn.face), update.update
            else:
                yield None, update

    @property
    def text(self) -> ReplyText:
        """All that the agent says in the turn, once it has ended: `await session.prompt("Hi").text` is a string."""
        return ReplyText(self._turn)

    async def iter_text(self) -> AsyncGenerator[str]:
        """Iterate over the text that the agent says, as it comes; other updates are skipped.

        An emoji that the agent split between two chunks is delivered whole. What an agent of version 2 replaces is not
        told again: `outcome.text` has the text as it is in the end, and `changes` tells of replacements.
        """
        half = ""
        async for update in self:
            said = update.content if isinstance(update, v1.AgentMessageChunk) else None
            if isinstance(said, v1.TextContent):
                text, half = whole_part(half, said.text)
                if text:
                    yield text
            elif replaced_by(update) == "agent":
                log.warning("the agent replaced a message whose text was read already; `outcome.text` has the new text")
        if half:
            yield half

    async def changes(self) -> AsyncGenerator[Change]:
        """Iterate over the updates, each with the text that it adds to a message, or that replaces the message's text.

        It is for programs that render messages: agents of version 2 may replace a message that was read before.
        """
        async for update in self:
            yield Change.of(update)

    # The end

    @property
    def done(self) -> bool:
        """Whether the agent has answered, or the turn has failed."""
        return self._turn.done

    def __await__(self) -> Generator[Any, None, Outcome]:
        """Wait for the end of the turn; raises the error that it failed with."""
        return self._turn.wait().__await__()

    # Cancelling

    @property
    def cancelled(self) -> bool:
        """Whether `session/cancel` was sent for this turn."""
        return self._turn.cancelled

    async def cancel(self, *, within: float | None = None, meta: dict[str, Json] | None = None) -> Outcome:
        """Cancel the turn, and wait until the agent has ended it.

        `within` is how many seconds the agent has for that. After them it is ended and restarted, its sessions are
        resumed or loaded if it can, and the outcome is `cancelled` all the same. `meta` is the `_meta` of the
        cancellation.
        """
        check_meta("reply.cancel(meta=...)", meta)
        return await self._turn.cancel(within, meta)

    def request_cancel(self) -> None:
        """Ask the agent to stop, without waiting; does nothing the second time or after the end."""
        self._turn.request_cancel()

    async def __aenter__(self) -> Self:
        """Enter a block; leaving it cancels the turn if it still runs."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._turn.leave()
