"""`SharedSession`: one session of a shared agent: its clients, its messages so far, its prompts. PURE."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from accord.jsonrpc.wire_messages import RequestFrame

MOST_LOG = 16 * 1024 * 1024
"""Bytes of a session's updates that are kept for clients that join; past it, the agent replays the session to them."""

MOST_EARLY, MOST_EARLY_BYTES = 1_000, 64 * 1024
"""Updates of unknown sessions that are kept, and the bytes of one of them."""

_TOLD_IN_RESULTS = {
    "current_mode_update": ("modes", "currentModeId"),
    "config_option_update": ("configOptions",),
    "available_commands_update": ("availableCommands",),
}
"""Updates whose values stand in the answer to the request that opens a session, too, and where."""


class Waiting(NamedTuple):
    """A request of a client that waits for its turn."""

    client: int
    call: RequestFrame


class SharedSession:
    """A session that is open at the agent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clients: dict[int, bool] = {}
        """The clients that have opened it, and whether each may only watch."""
        self.result: dict[str, Any] = {}
        """The agent's answer to the request that opened it, with later changes, for clients that join."""
        self.opener: int | None = None
        """The client for which the agent opens it now."""
        self.openers: deque[Waiting] = deque()
        """Requests to open it that wait until the agent has opened it, or its turn is over."""
        self.prompts: deque[Waiting] = deque()
        """Prompts that wait until the running turn is over."""
        self.running: int | None = None
        """The number of the prompt whose turn is running."""
        self.is_watched = False
        """Whether the agent itself only follows it, because no client has asked to control it."""
        self.replays_all = False
        """Whether the agent was asked to replay it from its first update when it opens it again."""
        self.log: list[bytes] | None = []
        """All updates from the first; None if some are missing."""
        self._size = 0

    def note(self, updates: Iterable[bytes]) -> None:
        """Keep these updates for clients that join."""
        for update in updates:
            self._size += len(update)
            if self.log is None or self._size > MOST_LOG:
                self.log = None
                return
            self.log.append(update)

    def changed(self, update: dict[str, Any]) -> None:
        """An update has changed what the answer to a client that joins says."""
        *path, name = _TOLD_IN_RESULTS.get(str(update.get("sessionUpdate")), ("",))
        place = self.result
        for step in path:
            place = place.get(step)  # type: ignore[assignment]
        if isinstance(place, dict) and name in place and name in update:
            place[name] = update[name]

    def begin_log(self, *, is_whole: bool) -> None:
        """The agent opens the session, and replays it from its first update if `is_whole`."""
        self.log = [] if is_whole else None
        self._size = 0

    @property
    def controllers(self) -> list[int]:
        """The clients that may do more than watch."""
        return [client for client, watches in self.clients.items() if not watches]

    @property
    def receivers(self) -> list[int]:
        """The clients that get what the agent tells: all, or the one for which it replays the session."""
        return list(self.clients) if self.opener is None or self.is_watched else [self.opener]

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running or waits."""
        return self.running is not None or bool(self.prompts)


class EarlyUpdates:
    """Updates of sessions that the agent has not announced yet: it may tell some before it answers `session/new`."""

    def __init__(self) -> None:
        self._kept: deque[tuple[str, bytes]] = deque(maxlen=MOST_EARLY)

    def add(self, session: str, update: bytes) -> None:
        """Keep an update of an unknown session."""
        if len(update) <= MOST_EARLY_BYTES:
            self._kept.append((session, update))

    def take(self, session: str) -> list[bytes]:
        """The updates of a session, which are forgotten here."""
        found = [update for named, update in self._kept if named == session]
        if found:
            self._kept = deque((it for it in self._kept if it[0] != session), MOST_EARLY)
        return found
