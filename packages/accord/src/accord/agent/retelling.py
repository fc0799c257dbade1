"""`Retelling`: the replays of a session and of its subagents, as one. PURE.

A subagent's words follow its announcement. A fork does not have the subagents of its source: their words are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from accord.agent.replay import Replay
from accord.agent.subagent_updates import belongs_to, ended_by_a_crash, opened
from accord.capabilities import Capabilities
from accord.session.replay_scan import Survey, Version, read


class Told(NamedTuple):
    """An update of a replay."""

    subagent: str | None
    """The subagent that it is of; None for the session itself."""
    update: Any


class Retelling:
    """One replay of a session's record: `look` at each entry first, then `add` each, and tell what comes."""

    def __init__(self, session_id: str, version: Version, capabilities: Capabilities) -> None:
        self._session_id = session_id
        self._version: Version = version
        self._capabilities = capabilities
        self._surveys: dict[str | None, Survey] = {}
        self._replays: dict[str | None, Replay] = {}
        self._announced: list[str | None] = [None]
        """Whose words may be told: the session's, and those of subagents that were announced."""

    def look(self, kept: bytes) -> None:
        """Look at the next entry for the first time."""
        subagent, entry = opened(kept)
        self._surveys.setdefault(subagent, Survey()).add(entry)

    def add(self, kept: bytes) -> None:
        """Read the next entry."""
        subagent, entry = opened(kept)
        if (replay := self._replays.get(subagent)) is None:
            replay = self._replays[subagent] = Replay(self._surveys[subagent], self._version, self._capabilities)
        replay.add(read(entry))

    def now(self) -> Iterator[Told]:
        """What is final by now."""
        yield from self._each(Replay.now)

    def rest(self) -> Iterator[Told]:
        """The rest, after the last entry."""
        yield from self._each(Replay.rest)

    def closing(self) -> list[Told]:
        """What closes what a crash has left open, after the rest."""
        return [
            Told(teller, update)
            for teller in self._announced
            if (replay := self._replays.get(teller)) is not None
            for update in (*replay.closing(), *ended_by_a_crash(replay.state))
            if self._is_ours(update)
        ]

    def _each(self, tell: Callable[[Replay], Iterator[Any]]) -> Iterator[Told]:
        for teller in tuple(self._announced):
            yield from self._of(teller, tell)

    def _of(self, teller: str | None, tell: Callable[[Replay], Iterator[Any]]) -> Iterator[Told]:
        if (replay := self._replays.get(teller)) is None:
            return
        for update in filter(self._is_ours, tell(replay)):
            yield Told(teller, update)
            subagent = getattr(update, "session_id", None)
            if subagent is not None and subagent not in self._announced:
                self._announced.append(subagent)
                yield from self._of(subagent, tell)

    def _is_ours(self, update: Any) -> bool:
        told_of = getattr(update, "session_id", None)
        return told_of is None or belongs_to(told_of, self._session_id)
