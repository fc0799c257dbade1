"""`SessionActivity`: what a session does, what runs beside its turns, and telling the client of both.

A state is a snapshot: it is told when it changes, and repeated when the list of background work changes. In version 1
the dialect makes nothing of it, so nothing is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from accord.agent.record import SessionUpdates
from accord.dialects.dialect import Activity, Background, Dialect, End, Kind


class Cancellations:
    """The single things of one session that the client may cancel now."""

    def __init__(self) -> None:
        self._offered: dict[tuple[str, str], Callable[[], None]] = {}

    def offer(self, kind: str, id: str, cancel: Callable[[], None]) -> None:  # noqa: A002
        """Let the client cancel this `tool_call` or `terminal`; `cancel` must return at once."""
        self._offered[kind, id] = cancel

    def withdraw(self, kind: str, id: str) -> None:  # noqa: A002
        """It has ended."""
        self._offered.pop((kind, id), None)

    def cancel(self, kind: str, id: str) -> bool:  # noqa: A002
        """Cancel this thing; False if it is unknown, has ended, or cannot be cancelled."""
        cancel = self._offered.get((kind, id))
        if cancel is None:
            return False
        cancel()
        return True


class SessionActivity:
    """What one session does."""

    def __init__(self, updates: SessionUpdates) -> None:
        self._updates = updates
        self._activity: Activity = "idle"
        self._background: dict[tuple[str, str], Background] | None = None
        """What runs beside the turns; None until something has."""
        self._followers: tuple[Callable[[End | None], None], ...] = ()
        """Called with each new state, and with the end of the work before if that has ended."""

    @property
    def now(self) -> Activity:
        """What the session does in the foreground."""
        return self._activity

    @property
    def background(self) -> list[Background]:
        """What runs beside the turns."""
        return list((self._background or {}).values())

    def follow(self, follower: Callable[[End | None], None]) -> Callable[[], None]:
        """Call `follower` with each state from now on, until the returned function is called."""
        self._followers = (*self._followers, follower)

        def stop() -> None:
            self._followers = tuple(it for it in self._followers if it is not follower)

        return stop

    def state_in(self, dialect: Dialect, end: End | None = None) -> Any | None:
        """The update that tells the present state in this dialect; None if it tells no states."""
        return dialect.state(self._activity, None if self._background is None else self.background, end)

    def rest(self) -> None:
        """A turn of version 1 has ended, as the answer to its prompt says."""
        self._activity = "idle"
        for follow in self._followers:
            follow(None)

    def idle(self, end: End) -> None:
        """Foreground work has ended."""
        self._activity = "idle"
        self.tell(end)
        self._updates.flush()

    @contextmanager
    def waiting_for_user(self) -> Generator[None]:
        """Foreground work cannot go on without the user while this lasts."""
        if self._activity != "running":
            yield
            return
        self.become("requires_action")
        try:
            yield
        finally:
            self._resume()

    def _resume(self) -> None:
        if self._activity == "requires_action":  # it may be idle by now: the work was cancelled and did not end
            self.become("running")

    @contextmanager
    def beside_turns(self, work: Background) -> Generator[None]:
        """List this as background work while this lasts; the client knows of its beginning and its end already."""
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
        """Tell the client whether it may cancel this by itself."""
        update = self._updates.dialect.cancellable(kind, id, offered=offered)
        if update is not None:
            self._updates.report(update)

    def tell(self, end: End | None = None) -> None:
        """Tell the client what the session does now."""
        for follow in self._followers:
            follow(end)
        if self._background is None and (end is None or end.is_plain):
            encoded = self._updates.dialect.plain_state(self._activity, None if end is None else end.stop_reason)
            if encoded is not None:
                self._updates.report_encoded(encoded)
            return
        if (update := self.state_in(self._updates.dialect, end)) is not None:
            self._updates.report(update)

    def become(self, activity: Activity) -> None:
        """Foreground work begins, waits for the user, or goes on."""
        if self._activity != activity:
            self._activity = activity
            self.tell()


# A tool call that outlives its turn, or that the client may cancel by itself, needs more than its own updates.
# Background work is listed in every state of the session, from after its announcement until after its last update. A
# cancellable tool call offers its cancelling to the client, and its block then ends as if it had been left: the code
# after it goes on, and `tool.is_cancelled` is true.


TOOL_CALL: Final = "tool_call"


class DetachedTool:
    """What a tool call is to its session, beside its updates."""

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
        """Its block has ended: it can no longer be cancelled."""
        if self._cancellable:
            self._cancels.withdraw(TOOL_CALL, self._tool_call_id)
            self._task = None

    def ends(self) -> None:
        """Its last update was sent."""
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
