"""Lanes: the order in which messages are handled, without deadlocks.

A lane is a session's queue of notifications; messages that name no session share one more lane. Lanes do not wait for
each other. An idle lane does not exist: most notifications are handled where they arrive, and no lane is made for them.

A lane holds three kinds of items, in the order of arrival:

- a *notification*, handled alone: the next one starts when the handler of this one is done;
- an *answer*, held until the notifications that arrived before it are handled, so that the caller who awaits a prompt
  has seen all of its updates;
- a *start*, the place of a request among the notifications: it starts once those before it have started.

**The danger.** A handler may make requests of its own. The answer to such a request may be held in the handler's own
lane, after notifications that wait for this very handler. Then the handler waits for the answer, and the answer for the
handler.

**The rule.** While the lane's handler waits for an answer, two kinds of answers are not held: the one that it waits
for, and each answer to a request that was made *inside* a handler that still runs. That may be a handler of this lane,
of another lane, or of a request: the chain of waits may lead through the peer, where we cannot see it. The rule is
applied when an answer arrives and whenever a handler begins to wait.

**Why it works.** Each cycle of waits passes through a handler that waits, so the rule breaks every cycle. An answer to
an ordinary caller, outside any handler, never overtakes a notification.

**The exception.** Some waits cannot be seen: a handler may await an event that needs the answer. So a lane that makes
no progress until a deadline releases its answers, and a warning names the handler.

`Inside`, `HoldingUp` and `Held` are the interfaces through which lanes see other parts: `IncomingRequest` and
`_Notification` are handlers inside which requests are made, `_Notification` delays a lane, and `PendingRequest` is an
answer that may be held.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Protocol

import msgspec

from accord._internal.tasks import give_up, is_awaitable, pass_on
from accord.engine.routes import Route

log = logging.getLogger("accord")

WEIGHT = 350
"""Bytes of memory that a waiting notification takes apart from its text."""

YIELD_EVERY = 1_000
"""Notifications after which a lane lets other tasks run, even if its handlers never suspend."""


class Inside(Protocol):
    """A handler that may make requests of its own."""

    running: bool

    @property
    def holding_up(self) -> HoldingUp | None:
        """Return what must be notified when the handler waits, because notifications wait for it; None if none do."""
        ...

    @property
    def owner(self) -> object:
        """Return the part of a connection that runs the handler, so that a connection recognises its own handlers."""
        ...


class HoldingUp(Protocol):
    """The handler of a notification: later notifications of its lane wait for it."""

    def begins_to_wait(self, answer: Held) -> None:
        """The handler awaits this answer from now on."""
        ...

    def no_longer_waits(self, answer: Held) -> None:
        """The handler has stopped awaiting this answer."""
        ...


inside: ContextVar[Inside | None] = ContextVar("accord_inside", default=None)
"""The handler that this code runs in, its child tasks included."""


class Held(Protocol):
    """An answer that may be held in a lane."""

    maker: Inside | None
    """The handler inside which its request was made."""

    def release(self) -> None:
        """Give the answer to its caller; a second time does nothing."""
        ...

    def fail(self, error: Exception) -> None:
        """Give the caller this error instead; does nothing if the answer was released before."""
        ...


class _Notification(msgspec.Struct, eq=False):
    """A notification in its lane and, while that runs, its handler."""

    lane: Lane
    route: Route
    params: Any
    size: int
    begun: Awaitable[Any] | None
    """The awaitable that a `def` handler returned; None if the handler has not been called."""
    running: bool = True

    @property
    def owner(self) -> object:
        return self.lane.owner

    @property
    def holding_up(self) -> HoldingUp:
        return self

    # A task that the handler started may wait longer than the handler itself. That does not delay the lane.

    def begins_to_wait(self, answer: Held) -> None:
        if self.running:
            self.lane.begins_to_wait(answer)

    def no_longer_waits(self, answer: Held) -> None:
        if self.running:
            self.lane.no_longer_waits(answer)


class _Start(msgspec.Struct, eq=False):
    """The place of a request among the notifications of its lane."""

    begin: Callable[[], None]


class Lanes:
    """The lanes of one connection that have something in them."""

    def __init__(self, *, stuck_after: float, on_size: Callable[[int], None]) -> None:
        self.busy: dict[str | None, Lane] = {}
        self.stuck_after = stuck_after
        self.size = 0
        self._on_size = on_size
        self._tasks: dict[asyncio.Task[None], None] = {}

    def enter(self, key: str | None) -> Lane:
        """The lane of this session, made if it was idle."""
        lane = self.busy.get(key)
        if lane is None:
            lane = self.busy[key] = Lane(key, self)
        return lane

    def hold(self, key: str | None, answer: Held) -> None:
        """Release this answer after the notifications of its lane, or at once if it need not wait."""
        lane = self.busy.get(key)
        if lane is None:
            answer.release()
        else:
            lane.hold(answer)

    def mark_start(self, key: str | None, begin: Callable[[], None]) -> bool:
        """Mark a request's place among the notifications of its session; returns False if there are none."""
        lane = self.busy.get(key)
        if lane is None:
            return False
        lane.queue.append(_Start(begin))
        return True

    def is_between(self, key: str | None) -> bool:
        """Whether this lane is not empty, runs no handler, and continues in the next iteration of the loop."""
        lane = self.busy.get(key)
        return lane is not None and lane.handling is None

    def fullest(self) -> Lane:
        """Return the lane whose notifications take the most memory."""
        return max(self.busy.values(), key=lambda lane: lane.size)

    def resized(self, by: int) -> None:
        """The notifications of a lane take this many more bytes, or fewer."""
        self.size += by
        self._on_size(self.size)

    def spawn(self, lane: Lane) -> None:
        """Start the task of this lane."""
        task = asyncio.create_task(lane.run(), name=f"accord lane {lane.key or ''}")
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def idle(self) -> None:
        """Wait until every lane is empty."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self, because: Callable[[], Exception], *, within: float) -> None:
        """Empty the lanes, and cancel and await their handlers, except the one that calls this."""
        for lane in list(self.busy.values()):
            lane.end(because)
        me = asyncio.current_task()
        others = {task for task in self._tasks if task is not me}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=within)


class Lane(msgspec.Struct, eq=False):
    """The messages that wait for one session's handlers, and the task that handles them."""

    key: str | None
    owner: Lanes
    queue: deque[_Notification | _Start | Held] = msgspec.field(default_factory=deque[Any])
    size: int = 0
    """Bytes of the notifications that have not started."""
    handling: str | None = None
    """The method whose handler is running."""
    running: bool = True
    ended: bool = False
    _held: dict[Held, None] = {}
    _awaited: list[Held] = []
    _handled: int = 0
    _timer: asyncio.TimerHandle | None = None
    _working: bool = False

    def notify(self, route: Route, params: Any, size: int, begun: Awaitable[Any] | None = None) -> None:
        """Add a notification: it is handled when all earlier ones are."""
        size += WEIGHT
        self.queue.append(_Notification(self, route, params, size, begun))
        if not self._working:
            self._working = True
            self.owner.spawn(self)
        self._resized(size)

    def hold(self, answer: Held) -> None:
        """Add an answer, or release it if it need not wait."""
        if self._may_pass(answer):
            answer.release()
            return
        self.queue.append(answer)
        self._held[answer] = None
        if self._timer is None:
            self._watch()

    def begins_to_wait(self, answer: Held) -> None:
        """Release the answers that must not wait for this lane's handler, which now waits for an answer."""
        self._awaited.append(answer)
        for held in [held for held in self._held if self._may_pass(held)]:
            self._release(held)

    def no_longer_waits(self, answer: Held) -> None:
        """Note that this lane's handler has stopped waiting for this answer."""
        self._awaited.remove(answer)

    def _release(self, answer: Held) -> None:
        self._held.pop(answer, None)
        answer.release()

    def _may_pass(self, answer: Held) -> bool:
        if not self._awaited:
            return False
        return (answer.maker is not None and answer.maker.running) or answer in self._awaited

    async def run(self) -> None:
        """Handle everything in the queue, then remove the lane."""
        task = asyncio.current_task()
        while self.queue:
            item = self.queue.popleft()
            if isinstance(item, _Notification):
                await self._handle(item)
                if task is not None and task.cancelling() and not self.ended:
                    # The handler cancelled the task it ran in. Later notifications must still be handled.
                    self.owner.spawn(self)
                    return
                if self._handled % YIELD_EVERY == 0:
                    await self._let_others_run()
            elif isinstance(item, _Start):
                item.begin()
            else:
                self._release(item)
        self._leave()

    async def _handle(self, notification: _Notification) -> None:
        self.handling = notification.route.method
        inside.set(notification)
        self._resized(-notification.size)
        try:
            result = notification.begun or notification.route.tell(notification.params)
            if is_awaitable(result):
                await result
        except asyncio.CancelledError:
            if self.ended:
                raise
            log.warning("the handler of %s cancelled its own task", notification.route.method)
        except BaseException as error:
            log.exception("the handler of %s failed", notification.route.method)
            pass_on(error)
        finally:
            self.handling = notification.params = None
            notification.running = False
            self._awaited.clear()
            self._handled += 1

    async def _let_others_run(self) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if self.ended:
                raise
            log.warning("a handler of session %s cancelled its task after it had returned", self.key)

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.running = self._working = False
        if self.owner.busy.get(self.key) is self:
            del self.owner.busy[self.key]

    def end(self, because: Callable[[], Exception]) -> None:
        """Empty the lane at the end of the connection; its task is cancelled next."""
        self.ended = True
        self.drop(because)
        self._leave()

    def drop(self, because: Callable[[], Exception]) -> None:
        """Drop the notifications that have not started; the answers held after them fail with this error."""
        waiting, self.queue = list(self.queue), deque()
        self._resized(-self.size)
        for item in waiting:
            if isinstance(item, _Notification):
                give_up(item.begun)
            elif not isinstance(item, _Start):
                item.fail(because())
                self._release(item)

    def _resized(self, by: int) -> None:
        self.size += by
        self.owner.resized(by)

    def _watch(self) -> None:
        """Check after the deadline whether this lane has made progress."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.owner.stuck_after, self._check_progress, self._handled)

    def _check_progress(self, handled_then: int) -> None:
        self._timer = None
        if not self._held:
            return
        if self._handled == handled_then:
            log.warning(
                "the handler of %s has not returned for %g seconds; %d later answer(s) no longer wait for it",
                self.handling,
                self.owner.stuck_after,
                len(self._held),
            )
            for answer in list(self._held):
                self._release(answer)
        else:
            self._watch()
