"""Updates of sessions that are not known yet: kept until the session is known, within a limit.

Agents send updates before the answer to `session/new`, and some sessions never become known. Past the limit the session
that has waited longest loses its updates.
"""

from __future__ import annotations

import logging

from msgspec import Raw

from accord.engine.lanes import WEIGHT
from accord.schema import v1

log = logging.getLogger("accord")


class Early:
    """Updates that came too soon, by session."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._kept: dict[v1.SessionId, list[tuple[v1.SessionUpdate, bytes | Raw, int]]] = {}

    def keep(self, session_id: v1.SessionId, update: v1.SessionUpdate, params: bytes | Raw) -> None:
        """Keep an update, and drop those of the oldest session while there are too many."""
        size = len(memoryview(params)) + WEIGHT
        self._kept.setdefault(session_id, []).append((update, params, size))
        self.size += size
        while self.size > self._limit:
            oldest = next(iter(self._kept))
            log.warning("dropped %d updates of session %s, which is not open here", len(self.take(oldest)), oldest)

    def take(self, session_id: v1.SessionId) -> list[tuple[v1.SessionUpdate, bytes | Raw]]:
        """Remove and return the updates of this session, in the order in which they came."""
        kept = self._kept.pop(session_id, [])
        self.size -= sum(size for _, _, size in kept)
        return [(update, params) for update, params, _ in kept]
