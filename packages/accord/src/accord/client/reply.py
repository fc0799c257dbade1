"""`Reply`: the reply to one prompt: iterate it for the updates, await it for the `Outcome`.

    session/update ──▶ RemoteSession ──▶ UpdateBuffer ──▶ `__anext__`
    answer         ──▶ `_answered` ──▶ Outcome ──▶ `__await__`

The session owns the Reply, so the turn continues whether or not the caller iterates, awaits or holds it. Updates are
buffered on arrival, so the answer never waits for a reader.

Cancelling follows the specification's rules for clients: `session/cancel` is sent, open permission requests of the
session are answered `cancelled`, unfinished tool calls are marked, and updates are accepted until the agent answers.

`UpdateBuffer`: updates that have arrived and were not read yet, in order, counted in bytes.

    put ──▶ [update, update, ...] ──▶ get      the count goes into the connection's `ReadPause`, which may stop reading

Past the connection's mark, adjacent text chunks of one message are merged, so that a slow reader costs no more than the
text itself. Past the hard limit all updates are dropped, and the reader gets an Overflow.

While a reader waits, the connection keeps reading even if other readers are slow. The same holds while a task awaits
the end without reading; updates past the mark are then dropped.
"""

# The private members of a session and a reply are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, cast

import msgspec

from accord._internal.tasks import LightEvent, within as in_time
from accord.engine.flow_control import ReadPause
from accord.engine.lanes import WEIGHT
from accord.engine.outgoing_requests import PendingRequest
from accord.errors import AccordError, Overflow, PeerError, Timeout
from accord.mistakes import shortened
from accord.schema import codec, v1
from accord.schema.base import JsonObject
from accord.schema.sendable import check_meta
from accord.session import Message, Speaker, ToolCallState, updates
from accord.session.values import JoinedText, whole_part

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent
    from accord.client.remote_session import RemoteSession
    from accord.client.remote_subagent import RemoteSubagent
    from accord.engine.spans import SpanEnd


log = logging.getLogger("accord")


LEAVE_WITHIN = 5.0
"""Seconds that leaving an `async with` block waits for the answer to the prompt that it cancels."""

BudgetField: TypeAlias = Literal["max_cost", "max_turns", "max_time"]
"""A limit of a `Budget`, by the name of its field."""


class SubagentSaid(NamedTuple):
    """An update of a subagent, for readers of the updates of a turn and its subagents."""

    subagent: RemoteSubagent
    update: updates.Update


class Outcome(msgspec.Struct, frozen=True):
    """The end of a turn, and its results."""

    stop_reason: str
    """Why the agent stopped, in the protocol's words: `end_turn`, `cancelled`, `max_tokens`, `refusal`, ..."""
    text: str
    """The agent's whole text in the turn."""
    tool_calls: list[ToolCallState]
    """The tool calls that began in the turn."""
    usage: v1.Usage | None = None
    """The tokens that the turn used; None if the agent does not report them."""
    meta: JsonObject | None = None
    """The `_meta` of the agent's answer."""
    exceeded: BudgetField | None = None
    """The limit of the prompt's `Budget` that ended the turn; None if none did."""

    def __repr__(self) -> str:
        return f"Outcome({self.stop_reason!r}, text={shortened(self.text)!r}, tool_calls={len(self.tool_calls)})"

    def _repr_markdown_(self) -> str:
        """Return the tool calls and the text for a notebook, without raw HTML and images."""
        from accord.client.markdown import safe, turn_markdown

        return safe(turn_markdown(self.tool_calls, self.text, self.stop_reason))


class ReplyText(Awaitable[str]):
    """The text of a reply, which is complete when the turn has ended: await it."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def __await__(self) -> Generator[Any, None, str]:
        """Wait for the end of the turn; raises the error that it failed with."""
        return self._whole().__await__()

    async def _whole(self) -> str:
        return (await self._reply).text

    def __repr__(self) -> str:
        return "<the text of a reply: write `await reply.text`, or `async for text in reply.iter_text()`>"


class PromptPlace(Awaitable["str | None"]):
    """The moment when a prompt gets its place in the conversation: await it for the id of its message."""

    def __init__(self, until_inserted: Callable[[], Coroutine[Any, Any, str | None]]) -> None:
        self._until_inserted = until_inserted

    def __await__(self) -> Generator[Any, None, str | None]:
        """Wait for the place; raises the error that refused the prompt."""
        return self._until_inserted().__await__()

    def __repr__(self) -> str:
        return "<the place of a prompt in the conversation: write `await reply.inserted`>"


class Reply:
    """The reply to one prompt: iterate it for the updates, await it for the `Outcome`.

        reply = session.prompt("What is in here?")
        async for text in reply.iter_text():
            print(text, end="")
        print((await reply).stop_reason)

    Cancelling a task that waits for the Reply cancels the turn, and so does leaving a block of
    `async with session.prompt(...) as reply`. If several tasks read one Reply, each update goes to one of them.
    """

    def __init__(
        self,
        session: RemoteSession,
        prompt: list[v1.ContentBlock],
        *,
        keeps_wire: bool = False,
        keeps_subagents: bool = False,
        meta: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        self._idempotency_key = idempotency_key
        self._prompt = prompt
        self._meta = meta
        self._session = session
        self._keeps_wire = keeps_wire
        """Whether updates are kept as the JSON that arrived."""
        self._keeps_subagents = keeps_subagents
        """Whether updates of subagents are read with those of the turn."""
        self._unread: UpdateBuffer
        """The updates that were not read yet, from the moment when the prompt is sent."""
        self._cancelled = False
        self._posted: PendingRequest[Any] | None = None
        self._end_span: SpanEnd | None = None
        self._progress: LightEvent | None = None
        """Set when the prompt is sent, gets its place, or has ended; made for tasks that wait for one of them."""
        self._result: v1.PromptResponse | Exception | None = None
        self._message_id: str | None = None
        """The id of the prompt's message; None before the agent has sent it, and in version 1."""
        self._begins_at: int | None = None
        self._ends_at: int | None = None
        self._outcome: Outcome | None = None
        self._exceeded: BudgetField | None = None
        """The limit of the budget for which the turn was cancelled."""

    def __repr__(self) -> str:
        state = "done" if self.done else "cancelled" if self._cancelled else "running"
        return f"Reply({state})"

    @property
    def prompt(self) -> Sequence[v1.ContentBlock]:
        """The blocks that were sent."""
        return self._prompt

    @property
    def idempotency_key(self) -> str | None:
        """The key under which the prompt is sent: with it, another attempt does not insert the prompt again.

        None for an agent of version 1 if none was given: version 1 has no keys.
        """
        return self._idempotency_key

    @property
    def inserted(self) -> PromptPlace:
        """The prompt's place in the conversation: `await reply.inserted` returns the id of its message.

        An agent of version 2 may delay a prompt while it works on another one. The id is None if the prompt was
        cancelled before, and from agents of version 1, which do not report it: with them this waits for nothing.
        """
        return PromptPlace(self._until_inserted)

    async def _until_inserted(self) -> str | None:
        if self._posted is None:
            await self._until_sent()
        if self._session._answers_are_receipts and self._posted is not None:
            await self._until_receipt(self._posted)
        if self._message_id is None and isinstance(self._result, Exception):
            raise self._result
        return self._message_id

    async def _until_receipt(self, posted: PendingRequest[Any]) -> None:
        with posted.awaited():
            while self._message_id is None and self._result is None:
                await self._next_step()

    async def _until_sent(self) -> None:
        """Wait until the prompt is sent, or has failed before."""
        while self._posted is None and self._result is None:
            await self._next_step()

    def _next_step(self) -> Coroutine[Any, Any, None]:
        self._progress = self._progress or LightEvent()
        return self._progress.wait()

    def _has_progressed(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None:
            progress.set()

    # Reading

    def __aiter__(self) -> AsyncIterator[updates.Update]:
        """Iterate over the updates of the turn, in order; ends when the agent is done with it.

        They are of the classes of `accord.updates`, whichever version the agent speaks.
        """
        return self

    async def __anext__(self) -> updates.Update:
        update = await self._next_update()
        while isinstance(update, SubagentSaid):
            update = await self._next_update()
        typed: updates.Update = codec.decode(update, self._session._update_type) if self._keeps_wire else update
        return typed

    async def _next_update(self) -> Any:
        """Return the next update, as JSON bytes if they are kept; raises StopAsyncIteration after the last."""
        if self._posted is None or (update := self._unread.now()) is None:
            try:
                if self._posted is None:
                    await self._until_sent()
                update = None if self._posted is None else await self._unread.get(self._posted)
            except asyncio.CancelledError:
                self.request_cancel()
                raise
            if update is None:
                if isinstance(self._result, Exception):
                    raise self._failure(self._result)
                raise StopAsyncIteration
        return update

    async def wire(self) -> AsyncGenerator[bytes]:
        """Iterate over the updates as JSON, byte for byte as they arrived; the prompt must be sent with `wire=True`."""
        if not self._keeps_wire:
            raise ValueError("wire() needs a prompt that was sent with wire=True; without it the JSON is not kept")
        while True:
            try:
                update = await self._next_update()
            except StopAsyncIteration:
                return
            yield cast("bytes", update)

    async def with_subagents(self) -> AsyncGenerator[tuple[RemoteSubagent | None, updates.Update]]:
        """Iterate over the updates of the turn and its subagents, each with its subagent, None for the turn's own.

        The prompt must be sent with `subagents=True`.
        """
        if not self._keeps_subagents:
            raise ValueError("with_subagents() needs a prompt that was sent with subagents=True")
        while True:
            try:
                update = await self._next_update()
            except StopAsyncIteration:
                return
            if isinstance(update, SubagentSaid):
                yield update.subagent, update.update
            else:
                yield None, update

    @property
    def text(self) -> ReplyText:
        """The agent's whole text in the turn, once it has ended: `await session.prompt("Hi").text` is a string."""
        return ReplyText(self)

    async def iter_text(self) -> AsyncGenerator[str]:
        """Iterate over the agent's text as it arrives; other updates are skipped.

        An emoji that the agent split between two chunks is delivered whole. A replacement by an agent of version 2 is
        not repeated here: `outcome.text` has the final text, and `changes` reports replacements.
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
        return self._result is not None

    def __await__(self) -> Generator[Any, None, Outcome]:
        """Wait for the end of the turn; raises the error that it failed with."""
        return self._wait().__await__()

    async def _wait(self) -> Outcome:
        try:
            await self._wait_for_end()
        except asyncio.CancelledError:
            self.request_cancel()
            raise
        if isinstance(self._result, Exception):
            raise self._failure(self._result)
        if self._outcome is None:
            self._outcome = self._outcome_of(cast("v1.PromptResponse", self._result))
        return self._outcome

    async def _wait_for_end(self) -> None:
        if self._posted is None:
            await self._until_sent()
        if self._result is None and self._posted is not None:
            with self._posted.awaited(), self._unread.awaiting_end():
                await self._until_finished()

    async def _until_finished(self) -> None:
        while self._result is None:
            await self._next_step()

    def _outcome_of(self, response: v1.PromptResponse) -> Outcome:
        entries = [] if self._begins_at is None else self._session.state.between(self._begins_at, self._ends_at)
        text = "".join(it.text for it in entries if isinstance(it, Message) and it.speaker == "agent")
        calls = [it for it in entries if isinstance(it, ToolCallState)]
        exceeded = None if response.stop_reason == "end_turn" else self._exceeded
        return Outcome(response.stop_reason, text, calls, response.usage, response.meta, exceeded)

    def _failure(self, error: Exception) -> Exception:
        """Return the error that the turn ended with, and the turn's results so far."""
        if isinstance(error, PeerError) and error.outcome is None:
            error.outcome = self._outcome_of(v1.PromptResponse(cast("Any", "error")))
        return error

    # Cancelling

    @property
    def cancelled(self) -> bool:
        """Whether `session/cancel` was sent for this turn."""
        return self._cancelled

    async def cancel(self, *, within: float | None = None, meta: JsonObject | None = None) -> Outcome:
        """Cancel the turn, and wait until the agent has ended it.

        `within` is how many seconds the agent has for that. After them it is ended and restarted, its sessions are
        resumed or loaded if possible, and the outcome is `cancelled` all the same. `meta` is the `_meta` of the
        cancellation.
        """
        self.request_cancel(meta=meta)
        if within is not None and not await in_time(within, self._wait_for_end()):
            self._answered(v1.PromptResponse("cancelled"))
            await self._session._remote._restarter.restart(f"{self._session.id}: the agent ignored session/cancel")
        return await self

    def request_cancel(self, *, meta: JsonObject | None = None) -> None:
        """Ask the agent to stop, without waiting; does nothing the second time or after the end."""
        check_meta("reply.cancel(meta=...)", meta)
        if self._cancelled or (self.done and not self._session._is_turn(self)):
            return
        self._cancelled = True
        self._session._cancel_turn(self, meta)

    async def __aenter__(self) -> Self:
        """Enter a block; leaving it cancels the turn if it still runs."""
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self.done:
            self.request_cancel()
            await in_time(LEAVE_WITHIN, self._until_finished())

    # Reports of the session

    def _sent(self, posted: PendingRequest[Any], unread: UpdateBuffer) -> None:
        """Note that the prompt was sent: at once, unless the agent is being restarted."""
        self._posted, self._unread = posted, unread
        self._end_span, posted.end_span = posted.end_span, None
        if self._progress is not None:
            self._has_progressed()

    def _overflowed(self, overflow: Overflow) -> None:
        """Fail, because the reader fell too far behind, and ask the agent to stop."""
        self._answered(overflow)
        self.request_cancel()

    def _was_inserted(self, message_id: str) -> None:
        """Note that the prompt has its place in the conversation, and its message this id."""
        self._message_id = message_id
        self._has_progressed()

    def _withdraw(self) -> None:
        """Ask the agent not to begin with the prompt, if it has not answered it."""
        if self._posted is not None:
            self._posted.withdraw()

    def _answered(self, result: v1.PromptResponse | Exception, ends_at: int | None = None) -> None:
        """Finish with the agent's answer, or with the reason why none will be waited for. Only the first one counts.

        `ends_at` is the place in the timeline where the turn ended, if that is not its present end.
        """
        if self._result is None:
            self._result = result
            self._ends_at = len(self._session.state) if ends_at is None else ends_at
            if self._end_span is not None:
                self._end_span(result, self._session.state.usage)
            if self._posted is not None:
                self._unread.finish()
            self._has_progressed()

    async def _watch(self, total: float | None, idle: float | None) -> None:
        """Fail when a deadline passes."""
        assert self._posted is not None
        until = asyncio.ensure_future(self._until_finished()) if self._session._answers_are_receipts else None
        try:
            await self._posted.within(total, idle, until)
        except Timeout as timeout:
            if not self.done:
                self._answered(timeout)
                self.request_cancel()
        except AccordError:
            pass  # `_answered` was called with it
        finally:
            if until is not None:
                until.cancel()


_APPENDS: dict[str, Speaker] = {
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
    "user_message_chunk": "user",
}
"""The chunks of messages, by their tags."""
_REPLACES: dict[str, Speaker] = {"agent_message": "agent", "agent_thought": "thought", "user_message": "user"}
"""The whole messages of version 2, by their tags."""


class Change(msgspec.Struct, frozen=True):
    """An update of a turn, with its effect on the message that it belongs to."""

    update: updates.Update
    """The update."""
    speaker: Speaker | None = None
    """The speaker of the message it changes; None if it changes no message."""
    message_id: str | None = None
    """The id of the message, from agents that send one."""
    text: str = ""
    """The text to append to the message; all of its text, if it is replaced."""
    replaced: bool = False
    """Whether the message's earlier text was replaced: render it again."""

    @classmethod
    def of(cls, update: Any) -> Change:
        """The change that an update of a Reply makes."""
        if (speaker := _APPENDS.get(_tag_of(update))) is not None:
            return cls(update, speaker, update.message_id, _text_of([update.content]))
        if (speaker := replaced_by(update)) is not None:
            return cls(update, speaker, update.message_id, _text_of(update.content or ()), replaced=True)
        return cls(update)


def replaced_by(update: Any) -> Speaker | None:
    """Return the speaker of the message that an update replaces; None for any other update."""
    speaker = _REPLACES.get(_tag_of(update))
    return None if speaker is None or getattr(update, "content", msgspec.UNSET) is msgspec.UNSET else speaker


def _tag_of(update: Any) -> str:
    """Return the kind of an update; None for an unknown one."""
    return str(update.__struct_config__.tag) if isinstance(update, msgspec.Struct) else ""


def _text_of(blocks: Sequence[Any]) -> str:
    return "".join(block.text for block in blocks if _is_text(block))


def _is_text(block: Any) -> bool:
    """Whether this is text, of either version."""
    return isinstance(block, msgspec.Struct) and block.__struct_config__.tag == "text"


class PromptsDuringRestart:
    """The prompts of one session that wait for its agent."""

    def __init__(self, remote: RemoteAgent, send: Callable[[Reply], None]) -> None:
        self.waiting: list[Reply] = []
        """The prompts in the order in which they will be sent."""
        self._remote = remote
        self._send = send

    def add(self, turn: Reply, total: float | None, idle: float | None) -> None:
        """Send this prompt when the agent is ready; the deadlines are those of `RemoteSession.prompt`."""
        self.waiting.append(turn)
        self._remote._tasks.start(self._send_in_time(turn, total, idle), "a prompt that waits for the agent's restart")

    def end(self, result: v1.PromptResponse | Exception) -> None:
        """Finish all of them with this result: they will not be sent."""
        taken, self.waiting = self.waiting, []
        for turn in taken:
            turn._answered(result)

    async def _send_in_time(self, turn: Reply, total: float | None, idle: float | None) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(total):
                await self._remote._restarter.ready()
        except TimeoutError:
            turn._answered(Timeout(f"session/prompt: the agent was not restarted within {total:g} seconds"))
        if turn not in self.waiting:
            return
        self.waiting.remove(turn)
        if turn.done:
            return
        try:
            self._send(turn)
        except AccordError as error:
            turn._answered(error)
            return
        if total is not None or idle is not None:
            await turn._watch(None if total is None else max(0.0, began + total - loop.time()), idle)


CHUNKS = (updates.AgentMessageChunk, updates.AgentThoughtChunk, updates.UserMessageChunk)


class _Merged:
    """Adjacent chunks of one message, merged because the reader is slow."""

    __slots__ = ("cls", "message_id", "text")

    def __init__(self, first: updates.ContentChunk) -> None:
        self.cls: Any = type(first)
        self.message_id = first.message_id
        self.text = JoinedText()

    def chunk(self) -> updates.ContentChunk:
        chunk: updates.ContentChunk = self.cls.of(self.text.read(), self.message_id)
        return chunk


class UpdateBuffer:
    """A queue for one reader."""

    __slots__ = (
        "_awaiting",
        "_checked_from",
        "_dropped",
        "_finished",
        "_has_reader",
        "_intake",
        "_items",
        "_limit",
        "_news",
        "_reads_on",
        "_waiting",
        "size",
    )

    def __init__(self, intake: ReadPause, limit: int) -> None:
        self.size = 0
        self._items: deque[tuple[Any, int]] = deque()
        self._intake = intake
        """Pauses reading."""
        self._limit = limit
        self._checked_from = min(intake.mark, limit)
        """Unread bytes of the connection past which this buffer may be too large."""
        self._news: asyncio.Future[None] | None = None
        self._finished = False
        self._dropped: str | None = None
        self._waiting = 0
        self._has_reader = False
        self._awaiting = 0
        """How many tasks wait for the end without reading."""
        self._reads_on = False

    def put(self, update: Any, size: int) -> None:
        """Add an update of this many bytes; raises Overflow past the limit."""
        if self._finished or self._dropped:
            return
        size += WEIGHT
        intake = self._intake
        if self.size > intake.mark and (size := self._merge(update, size)) == 0:
            return
        self._items.append((update, size))
        self.size += size
        intake.unread += size
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        if intake.unread > self._checked_from or intake.paused:
            intake.decide()
            if self.size > self._limit:
                self._overflow()
            elif self._reads_on and self.size > intake.mark:
                self.drop(
                    "the updates of a Reply that was awaited instead of read were dropped; read it before awaiting it"
                )

    def _merge(self, update: Any, size: int) -> int:
        """Merge this text into the last one if both are plain chunks of one message; returns the size left to add."""
        if not _is_plain(update):
            return size
        last, last_size = self._items[-1]
        if isinstance(last, _Merged):
            if last.cls is not type(update) or last.message_id != update.message_id:
                return size
        elif not _is_plain(last) or type(last) is not type(update) or last.message_id != update.message_id:
            return size
        else:
            first, last = last, _Merged(last)
            last.text.add(first.content.text)
        last.text.add(update.content.text)
        added = len(update.content.text.encode("utf-8", "surrogatepass"))
        self._items[-1] = (last, last_size + added)
        self._resize(added)
        if self.size > self._limit:
            self._overflow()
        return 0

    def _overflow(self) -> None:
        self.drop(f"more than {self._limit:,} bytes of updates were not read; read faster, or raise Limits.reply")
        raise Overflow(self._dropped)

    def drop(self, why: str) -> None:
        """Drop all updates; the reader gets an Overflow with this text."""
        self._dropped = why
        self._items.clear()
        self._resize(-self.size)
        if self._news is not None:
            self._wake()

    def finish(self) -> None:
        """Note that no more updates will come. The remaining ones no longer pause reading."""
        if not self._finished:
            self._finished = True
            self._has_reader = True
            if self._reads_on:
                self._balance()
            self._intake.unread_resized(-self.size)
            if self._news is not None:
                self._wake()

    def now(self) -> Any:
        """The next update if there is one, else None; raises Overflow if updates were dropped."""
        if not self._items:
            if self._dropped is not None:
                raise Overflow(self._dropped)
            return None
        item, size = self._items.popleft()
        self.size -= size
        if not self._finished:
            self._intake.unread_resized(-size)
        return item.chunk() if isinstance(item, _Merged) else item

    async def get(self, pending: PendingRequest[Any] | None = None) -> Any:
        """Wait for the next update; None after the last. A handler that called this waits for it."""
        self._has_reader = True
        if self._reads_on:
            self._balance()
        while not (self._items or self._finished or self._dropped):
            if self._news is None or self._news.done():
                self._news = asyncio.get_running_loop().create_future()
            self._waiting += 1
            self._intake.wait()
            if pending is not None and pending.holding_up is not None:
                pending.holding_up.begins_to_wait(pending)
            try:
                await asyncio.shield(self._news)
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._news = None
                self._intake.waited()
                if pending is not None and pending.holding_up is not None:
                    pending.holding_up.no_longer_waits(pending)
        return self.now()

    @contextmanager
    def awaiting_end(self) -> Generator[None]:
        """Count a task that waits for the end; while it does so without a reader, unread updates do not pause the
        connection.
        """
        self._awaiting += 1
        self._balance()
        try:
            yield
        finally:
            self._awaiting -= 1
            self._balance()

    def _balance(self) -> None:
        reads_on = self._awaiting > 0 and not self._has_reader
        if reads_on != self._reads_on:
            self._reads_on = reads_on
            (self._intake.wait if reads_on else self._intake.waited)()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _resize(self, by: int) -> None:
        self.size += by
        self._intake.unread_resized(by)


def _is_plain(update: Any) -> bool:
    if not isinstance(update, CHUNKS) or update.meta is not None or not isinstance(update.content, updates.TextContent):
        return False
    return update.content.annotations is None and update.content.meta is None


class UpdateListeners:
    """The readers of the updates of one session or subagent outside of turns, each with a buffer."""

    def __init__(self, limit: int) -> None:
        self.buffers: list[UpdateBuffer] = []
        self._limit = limit

    def put(self, update: Any, size: int) -> None:
        """Give all readers an update of this many bytes."""
        for buffer in list(self.buffers):
            try:
                buffer.put(update, size)
            except Overflow:
                self.buffers.remove(buffer)  # it raises the error to its reader

    async def read(self, earlier: Iterable[tuple[Any, int]] = (), *, is_open: bool) -> AsyncGenerator[Any]:
        """Iterate over these updates and those to come, until `finish`."""
        buffer = UpdateBuffer(ReadPause(lambda: None, lambda: None, self._limit), self._limit)  # pauses nothing
        for update, size in earlier:
            buffer.put(update, size)
        if not is_open:
            buffer.finish()
        self.buffers.append(buffer)
        try:
            while (update := await buffer.get()) is not None:
                yield update
        finally:
            if buffer in self.buffers:
                self.buffers.remove(buffer)

    def finish(self) -> None:
        """Note that no more updates will come."""
        for buffer in list(self.buffers):
            buffer.finish()
