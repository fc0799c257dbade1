"""Updates of sessions that nobody here knows yet: kept until the session is known, but not without bound.

Agents send them before the answer to `session/new`, and some sessions never become known. Past the bound the session
that has waited longest loses its updates.
"""

from __future__ import annotations

import logging

from msgspec import Raw

from accord.engine.lanes import WEIGHT
from accord.schema import v1

log = logging.getLogger("accord")


class Early:
    """What came too soon, by session."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._kept: dict[v1.SessionId, list[tuple[v1.SessionUpdate, bytes | Raw, int]]] = {}

    def keep(self, session_id: v1.SessionId, update: v1.SessionUpdate, params: bytes | Raw) -> None:
        size = len(memoryview(params)) + WEIGHT
        self._kept.setdefault(session_id, []).append((update, params, size))
        self.size += size
        while self.size > self._limit:
            oldest = next(iter(self._kept))
            log.warning("%d updates of a session that nobody opened were given up: %s", len(self.take(oldest)), oldest)

    def take(self, session_id: v1.SessionId) -> list[tuple[v1.SessionUpdate, bytes | Raw]]:
        """What was kept for this session, in the order in which it came."""
        kept = self._kept.pop(session_id, [])
        self.size -= sum(size for _, _, size in kept)
        return [(update, params) for update, params, _ in kept]
