"""What runs beside the turns of a session: tasks that outlive a turn, and end with the session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from accord.errors import ConnectionClosed

T = TypeVar("T")

log = logging.getLogger("accord")


class BackgroundTasks:
    """The tasks of one session that no turn waits for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do this until it is done or the session is closed."""
        task = asyncio.get_running_loop().create_task(work, name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ConnectionClosed):
            log.info("background work of %s ended with its connection: %s", self._name, error)
        elif error is not None:
            log.error("background work of %s failed", self._name, exc_info=error)

    async def end(self, grace: float) -> None:
        """Cancel all tasks, and wait for them as long as the grace allows."""
        current = asyncio.current_task()
        left = {task for task in self._tasks if task is not current}
        for task in left:
            task.cancel()
        if left:
            _, stuck = await asyncio.wait(left, timeout=grace)
            if stuck:
                log.warning("%d background tasks of %s did not end when they were cancelled", len(stuck), self._name)
