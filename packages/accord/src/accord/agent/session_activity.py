"""A session's activity: its turns, one at a time, what happens to a second prompt, cancelling, and work beside turns.

Each prompt has a `QueuedPrompt` from its arrival until its answer. The first in the queue runs in the task of its
prompt; the others wait. A cancelled turn is answered with `cancelled`, whatever its function returns or raises. If it
does not end within the grace period, it is answered anyway, and the next prompt in the queue runs.

With `steer`, a waiting prompt can join the running turn: the turn takes it, and both end together. A prompt that no
turn takes becomes a turn of its own. Work that the agent begins itself has a place in the same line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Final, Literal, Self

import msgspec

from accord.agent.record import SessionUpdates
from accord.agent.remote_client import RemoteClient, Requester, SessionClient
from accord.agent.user_questions import PermissionMemory
from accord.dialects import Activity, ActivityEnd, Background, Dialect, Kind
from accord.errors import RequestError

log = logging.getLogger("accord")

PromptWhileWorking = Literal["queue", "reject", "cancel_first", "steer"]
"""What happens to a prompt in a session that is working on another.

It waits, is refused, replaces the other, or joins the running turn. Only version 1 can refuse it.
"""

CANCELLED: Final = "cancelled"


class QueuedPrompt:
    """One prompt's place in the queue, from its arrival to its answer.

    place = queue.place()
    with place:
        if await place.comes():
            place.stop_reason = await work()
    answer(place.stop_reason)
    """

    __slots__ = (
        "_finished",
        "_joined",
        "_timer",
        "_turn_comes",
        "_turns",
        "at_end",
        "is_cancelled",
        "is_own",
        "joins",
        "on_overdue",
        "on_taken",
        "stop_reason",
        "task",
    )

    def __init__(self, turns: PromptQueue, *, is_own: bool, waits: bool) -> None:
        self.is_own = is_own
        """Whether it is not a prompt, but work that the agent begins itself."""
        self.joins: QueuedPrompt | None = None
        """The running turn that has taken this prompt."""
        self.on_taken: Callable[[], Awaitable[Any]] | None = None
        """Makes the prompt part of a running turn's conversation, and returns it for the turn; None if it cannot."""
        self._joined: list[QueuedPrompt] = []
        """The prompts that this turn has taken."""
        self._finished: asyncio.Future[tuple[str, BaseException | None]] | None = None
        """The result of the turn that has taken this prompt."""
        self.is_cancelled = False
        self.stop_reason = CANCELLED
        """The stop reason of the prompt's answer: `cancelled`, unless its work ended differently."""
        self._turns = turns
        self._turn_comes = asyncio.get_running_loop().create_future() if waits else None
        """The future for which it waits until it is the first."""
        self.task: asyncio.Task[Any] | None = None
        """The task that works on it."""
        self._timer: asyncio.TimerHandle | None = None
        self.on_overdue: Callable[[], None] | None = None
        """Called if cancelled work does not end within the grace: the prompt has to be answered without it."""
        self.at_end: Callable[[BaseException | None], bool] | None = None
        """Called before the next prompt comes, with the error that ended the work, or None.

        It returns whether that error is handled; else it is raised.
        """

    def come(self) -> None:
        """Start this prompt's turn."""
        if self._turn_comes is not None and not self._turn_comes.done():
            self._turn_comes.set_result(None)

    def cancel(self) -> None:
        """Stop, or do not begin. A second time does nothing."""
        if self.is_cancelled:
            return
        if self.joins is not None:
            self.joins.cancel()
            return
        self.is_cancelled = True
        self.come()
        if self.task is not None:
            self.task.cancel()
            self._timer = asyncio.get_running_loop().call_later(self._turns.grace, self._grace_is_over)

    # Joining a running turn

    async def taken(self) -> Any | None:
        """Take the next waiting prompt into the running turn of this place; None if there is none."""
        other = self._turns.next_to_join(self)
        if other is None:
            return None
        self._joined.append(other)
        self._turns.leave(other)
        return await other.join_turn(self)

    async def join_turn(self, running: QueuedPrompt) -> Any:
        """Join this turn."""
        assert self.on_taken is not None, "this prompt cannot join a turn"
        self.joins = running
        self._finished = asyncio.get_running_loop().create_future()
        try:
            return await self.on_taken()
        finally:
            self.come()

    @property
    def can_join(self) -> bool:
        """Whether a running turn may take this prompt."""
        return self.on_taken is not None and self.joins is None and not self.is_cancelled

    async def ended(self) -> str:
        """Return the stop reason of the turn that has taken this prompt; raises the turn's error."""
        assert self._finished is not None, "no turn has taken this prompt"
        stop_reason, error = await self._finished
        if error is not None:
            raise error
        return stop_reason

    def _finish_joined(self, error: BaseException | None) -> None:
        for other in self._joined:
            if other._finished is not None and not other._finished.done():
                other._finished.set_result((self.stop_reason, error))

    async def is_first(self) -> None:
        """Wait until all prompts before this one have ended, or it is cancelled."""
        if self._turn_comes is not None:
            await self._turn_comes

    async def comes(self) -> bool:
        """Wait until it is this prompt's turn. Returns False if the prompt was cancelled meanwhile."""
        if self._turn_comes is not None:
            await self._turn_comes
        if self.is_cancelled or self.joins is not None:
            return False
        self.task = asyncio.current_task()
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Leave the queue. An error caused by cancelling is dropped: the client need not know it."""
        self.task = None
        if self._timer is not None:
            self._timer.cancel()
        if self.is_cancelled:
            self.stop_reason = CANCELLED
        dropped = error is not None and self._is_dropped(error)
        try:
            if self.at_end is not None:
                dropped = self.at_end(None if dropped else error) or dropped
        finally:
            if self._joined:
                self._finish_joined(None if dropped else error)
            self._turns.leave(self)
        return dropped

    def _is_dropped(self, error: BaseException) -> bool:
        # prompt-turn, Cancellation: errors that cancelling causes are answered with the stop reason all the same.
        if isinstance(error, asyncio.CancelledError):
            # Also when the agent is ended; a cancel by the author himself is an error like any other.
            task = asyncio.current_task()
            return self.is_cancelled or (task is not None and task.cancelling() > 0)
        if self.is_cancelled and isinstance(error, Exception):
            log.info("a cancelled turn ended with an error", exc_info=error)
            return True
        return False

    def _grace_is_over(self) -> None:
        log.warning("a cancelled turn did not end within its grace period; its prompt was answered without it")
        self._turns.leave(self)
        self._finish_joined(None)
        if self.on_overdue is not None:
            self.on_overdue()


class PromptQueue:
    """The queue of one session's prompts."""

    def __init__(self, prompt_while_working: PromptWhileWorking, grace: float) -> None:
        self._prompt_while_working: PromptWhileWorking = prompt_while_working
        self.grace = grace
        """Seconds that a cancelled turn may take to end."""
        self._line: list[QueuedPrompt] = []
        self._empty: asyncio.Future[None] | None = None
        """Done when the queue is empty; None unless something waits for that."""

    @property
    def running(self) -> bool:
        """Whether a prompt is being worked on."""
        return bool(self._line)

    def cancel(self) -> None:
        """Cancel the running turn and the waiting prompts: all of them came before this.

        The agent's own work that has not begun still begins.
        """
        for place in list(self._line):
            if not place.is_own or place.task is not None:
                place.cancel()

    async def end(self) -> None:
        """Cancel every prompt and all work, and wait until each has its answer."""
        for place in list(self._line):
            place.cancel()
        if self._line:
            self._empty = self._empty or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._empty)

    def place(self, *, is_own: bool = False) -> QueuedPrompt:
        """Return a place at the end of the queue; raises RequestError if a second prompt is refused.

        Work that the agent begins itself (`is_own`) is never refused.
        """
        way = None if is_own else self._prompt_while_working
        if self._line and way == "reject":
            raise RequestError.invalid_request(
                "this session is working on another prompt; wait for its answer, or cancel it"
            )
        if way == "cancel_first":
            self.cancel()
        place = QueuedPrompt(self, is_own=is_own, waits=bool(self._line))
        self._line.append(place)
        return place

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None]:
        """Wait until everything in the queue now has ended, and make later prompts wait for the end of this block.

        Cancelling ends the wait like any other, and never the block.
        """
        place = self.place(is_own=True)
        try:
            await place.is_first()
            yield
        finally:
            self.leave(place)

    def runs_in(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether this task works on the running turn."""
        return bool(self._line) and task is not None and self._line[0].task is task

    def next_to_join(self, running: QueuedPrompt) -> QueuedPrompt | None:
        """Return the prompt that has waited longest and may join this turn, if it runs and prompts steer turns."""
        if (
            self._prompt_while_working != "steer"
            or not self._line
            or self._line[0] is not running
            or running.is_cancelled
        ):
            return None
        return next((place for place in list(self._line)[1:] if place.can_join), None)

    def leave(self, place: QueuedPrompt) -> None:
        """Remove this prompt from the queue; a second time does nothing."""
        if place not in self._line:
            return
        was_first = self._line[0] is place
        self._line.remove(place)
        if self._line and was_first:
            self._line[0].come()
        elif not self._line and self._empty is not None:
            self._empty.set_result(None)
            self._empty = None


# `SessionActivity`: the session's state, what runs beside its turns, and reporting both to the client.
#
# A state is a snapshot: it is sent when it changes, and repeated when the list of background work changes. In version
# 1 the dialect drops it, so nothing is sent.


class Cancellations:
    """The parts of a session's work that the client may cancel now, one by one."""

    def __init__(self) -> None:
        self._offered: dict[tuple[str, str], Callable[[], None]] = {}

    def offer(self, kind: str, id: str, cancel: Callable[[], None]) -> None:  # noqa: A002
        """Let the client cancel this `tool_call` or `terminal`; `cancel` must return at once."""
        self._offered[kind, id] = cancel

    def withdraw(self, kind: str, id: str) -> None:  # noqa: A002
        """Note that it has ended."""
        self._offered.pop((kind, id), None)

    def cancel(self, kind: str, id: str) -> bool:  # noqa: A002
        """Cancel this thing; False if it is unknown, has ended, or cannot be cancelled."""
        cancel = self._offered.get((kind, id))
        if cancel is None:
            return False
        cancel()
        return True


class SessionActivity:
    """The activity of one session."""

    def __init__(self, updates: SessionUpdates) -> None:
        self._updates = updates
        self.now: Activity = "idle"
        """The session's activity in the foreground."""
        self._background: dict[tuple[str, str], Background] | None = None
        """The work beside the turns; None until there is some."""
        self._followers: tuple[Callable[[ActivityEnd | None], None], ...] = ()
        """Called with each new state, and with the end of the previous work if that has ended."""

    @property
    def background(self) -> list[Background]:
        """The tasks that run beside the turns."""
        return list((self._background or {}).values())

    def follow(self, follower: Callable[[ActivityEnd | None], None]) -> Callable[[], None]:
        """Call `follower` with each state from now on, until the returned function is called."""
        self._followers = (*self._followers, follower)

        def stop() -> None:
            self._followers = tuple(it for it in self._followers if it is not follower)

        return stop

    def state_in(self, dialect: Dialect, end: ActivityEnd | None = None) -> Any | None:
        """Return the update for the present state in this dialect; None if it has no states."""
        return dialect.state(self.now, None if self._background is None else self.background, end)

    def rest(self) -> None:
        """Note that a turn of version 1 has ended, which the answer to its prompt reports."""
        self.now = "idle"
        for follow in self._followers:
            follow(None)

    def idle(self, end: ActivityEnd) -> None:
        """Note that foreground work has ended."""
        self.now = "idle"
        self.tell(end)
        self._updates.peer.connection.flush()

    @contextmanager
    def waiting_for_user(self) -> Generator[None]:
        """Mark that foreground work waits for the user while this block lasts."""
        if self.now != "running":
            yield
            return
        self.become("requires_action")
        try:
            yield
        finally:
            self._resume()

    def _resume(self) -> None:
        # the session may be idle by now: the work was cancelled and did not end
        if self.now == "requires_action":
            self.become("running")

    @contextmanager
    def beside_turns(self, work: Background) -> Generator[None]:
        """List this as background work during this block; the client already knows its beginning and its end."""
        if self._background is None:
            self._background = {}
        running = self._background
        running[work.kind, work.id] = work
        self.tell()
        try:
            yield
        finally:
            del running[work.kind, work.id]
            self.tell()

    def tell_cancellable(self, kind: Kind, id: str, *, offered: bool) -> None:  # noqa: A002
        """Notify the client whether it may cancel this individually."""
        update = self._updates.dialect.cancellable(kind, id, offered=offered)
        if update is not None:
            self._updates.report(update)

    def tell(self, end: ActivityEnd | None = None) -> None:
        """Report the session's activity to the client."""
        for follow in self._followers:
            follow(end)
        dialect = self._updates.dialect
        if not dialect.tells_states:
            return
        is_plain = end is None or (end.usage is None and end.failure is None and end.meta is None)
        if is_plain and self._background is None:
            stop_reason = None if end is None else end.stop_reason
            self._updates.report_encoded(dialect.plain_state(self.now, stop_reason))
        else:
            self._updates.report(self.state_in(dialect, end))

    def become(self, activity: Activity) -> None:
        """Note that foreground work begins, waits for the user, or continues."""
        if self.now != activity:
            self.now = activity
            if self._followers or self._updates.dialect.tells_states:
                self.tell()


# A tool call that outlives its turn, or that the client may cancel individually, needs more than its own updates.
# Background work is listed in every state of the session, from after its announcement until after its last update. A
# cancellable tool call offers its cancelling to the client, and its block then ends without an error: the code after
# it continues, and `tool.is_cancelled` is true.


TOOL_CALL: Final = "tool_call"


class DetachedTool:
    """The session's view of a tool call, beside its updates."""

    def __init__(
        self, activity: SessionActivity, cancels: Cancellations, *, in_background: bool, cancellable: bool
    ) -> None:
        self.is_cancelled = False
        """Whether the client has cancelled the tool call."""
        self._activity = activity
        self._cancels = cancels
        self._in_background = in_background
        self._cancellable = cancellable
        self._task: asyncio.Task[object] | None = None
        self._open = ExitStack()
        self._tool_call_id = ""

    def begins(self, tool_call_id: str) -> None:
        """The client knows the tool call now."""
        self._tool_call_id = tool_call_id
        if self._cancellable:
            self._task = asyncio.current_task()
            self._cancels.offer(TOOL_CALL, tool_call_id, self._cancel)
            self._activity.tell_cancellable(TOOL_CALL, tool_call_id, offered=True)
        if self._in_background:
            self._open.enter_context(self._activity.beside_turns(Background(TOOL_CALL, tool_call_id)))

    def stops(self) -> None:
        """Note that its block has ended: it can no longer be cancelled."""
        if self._cancellable:
            self._cancels.withdraw(TOOL_CALL, self._tool_call_id)
            self._task = None

    def ends(self) -> None:
        """Note that its last update was sent."""
        if self._cancellable:
            self._activity.tell_cancellable(TOOL_CALL, self._tool_call_id, offered=False)
        self._open.close()

    def takes(self, error: type[BaseException] | None) -> bool:
        """Whether this error is only how the client's cancelling reached the block."""
        task = asyncio.current_task()
        if not self.is_cancelled or task is None or error is None or not issubclass(error, asyncio.CancelledError):
            return False
        return task.uncancel() == 0  # else something has cancelled more than this tool call

    def _cancel(self) -> None:
        if self._task is not None and not self.is_cancelled:
            self.is_cancelled = True
            self._task.cancel()


class ToolSurroundings(msgspec.Struct, frozen=True):
    """The parts of the turn and the session that a tool call and its commands need."""

    session: SessionClient
    client: RemoteClient
    """The client, for the tool call's questions and commands."""
    requester: Requester
    """Sends requests that end with the turn."""
    permissions: PermissionMemory
    end_message: Callable[[], None]
    """Ends the message before the tool call."""
    send: Callable[[Any], Awaitable[None]]
    """Sends updates, and raises RuntimeError once the turn is over."""
    updates: SessionUpdates
    """Sends updates also when the turn is over."""
    cancels: Cancellations
    detached: DetachedTool | None = None
    """Set if the tool call may continue without its turn; None for most."""
