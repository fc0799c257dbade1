"""Whether the store of a served agent answers, for `/readyz`.

Everyone may ask for `/readyz`, without a token. So the store is asked once for all who ask within `PERIOD`. They learn
that it does not answer; its error, which may name machines and files, goes to the log.
"""

from __future__ import annotations

import asyncio
import logging

from accord.errors import AccordError
from accord.store import Store

PERIOD = 1.0
"""Seconds for which an answer holds."""

PATIENCE = 2.0
"""Seconds that the store has to answer."""

log = logging.getLogger("accord.http")


class StoreCheck:
    """Asks a store whether it can be read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asking: asyncio.Task[str] | None = None
        self._asked = 0.0
        self._logged = ""

    async def problem(self) -> str:
        """Return why sessions cannot be read now; empty if they can."""
        now = asyncio.get_running_loop().time()
        if self._asking is None or (self._asking.done() and now - self._asked > PERIOD):
            self._asked = now
            self._asking = asyncio.create_task(self._ask(), name="accord http: ask the store")
        return await asyncio.shield(self._asking)

    async def _ask(self) -> str:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.find("readyz")
        except (AccordError, TimeoutError) as error:
            problem = str(error) or f"it did not answer within {PATIENCE:g} seconds"
            if problem != self._logged:
                log.warning("not ready, because the session store does not answer: %s", problem)
            self._logged = problem
            return "the session store does not answer; the server's log says why"
        self._logged = ""
        return ""

    async def close(self) -> None:
        """Close the store if it was asked; an agent that still uses it opens it again."""
        if self._asking is not None:
            await asyncio.wait([self._asking])
            await self._store.close()
