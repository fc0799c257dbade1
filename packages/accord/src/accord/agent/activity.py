"""`SessionActivity`: what a session does, what runs beside its turns, and telling the client of both.

A state is a snapshot: it is told when it changes, and repeated when the list of background work changes. In version 1
the dialect makes nothing of it, so nothing is told.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from accord.agent.updates import SessionUpdates
from accord.dialects.dialect import Activity, Background, End, Kind


class SessionActivity:
    """What one session does."""

    def __init__(self, updates: SessionUpdates) -> None:
        self._updates = updates
        self._activity: Activity = "idle"
        self._background: dict[tuple[str, str], Background] | None = None
        """What runs beside the turns; None until something has."""

    @property
    def now(self) -> Activity:
        """What the session does in the foreground."""
        return self._activity

    @property
    def background(self) -> list[Background]:
        """What runs beside the turns."""
        return list((self._background or {}).values())

    def working(self) -> None:
        """Foreground work begins, or goes on after it waited for the user."""
        self._become("running")

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
        self._become("requires_action")
        try:
            yield
        finally:
            self._resume()

    def _resume(self) -> None:
        if self._activity == "requires_action":  # it may be idle by now: the work was cancelled and did not end
            self._become("running")

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
        if self._background is None and (end is None or end.is_plain):
            encoded = self._updates.dialect.plain_state(self._activity, None if end is None else end.stop_reason)
            if encoded is not None:
                self._updates.report_encoded(encoded)
            return
        background = None if self._background is None else self.background
        update = self._updates.dialect.state(self._activity, background, end)
        if update is not None:
            self._updates.report(update)

    def _become(self, activity: Activity) -> None:
        if self._activity != activity:
            self._activity = activity
            self.tell()
