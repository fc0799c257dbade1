"""One connection to PostgreSQL, with a deadline for each call.

A connection is opened when it is needed. It is discarded whenever anything but an answer comes: after a deadline or a
cancelled call its state is unknown. It is discarded with `terminate`, because an orderly close may wait for a server
that is silent. There is no pool for the same reason: a pool resets a connection before it takes it back.

`postgres_driver`, which loads asyncpg, is imported with the first connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from accord.errors import StoreError
from accord.redaction import mask_urls
from accord.store.postgres_statements import AsyncpgConnection

T = TypeVar("T")

Work: TypeAlias = "Callable[[AsyncpgConnection], Awaitable[T]]"

FIRST_PAUSE = 0.05
"""Seconds before a call is repeated for the first time."""

LONGEST_PAUSE = 1.0


class Deadline:
    """The deadline of a call that may be repeated."""

    def __init__(self, seconds: float) -> None:
        self._at = asyncio.get_running_loop().time() + seconds
        self._pause = FIRST_PAUSE
        self.may_be_done = False
        """Whether an earlier attempt was cut off, so that the database may have done its work."""

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._at - asyncio.get_running_loop().time()

    async def wait(self, error: StoreError) -> None:
        """Wait before the next attempt; raises this error if repeating does not help or the time is over."""
        from accord.store import postgres_driver

        if postgres_driver.is_lost(error.__cause__):
            self.may_be_done = True
        elif not postgres_driver.was_undone(error.__cause__):
            raise error
        if self.left <= self._pause:
            raise error
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


class PostgresConnection:
    """One connection, used by one call at a time."""

    def __init__(self, url: str, settings: dict[str, str]) -> None:

        from accord.store import postgres_driver

        self._driver = postgres_driver
        self._url = url
        self._settings = settings
        self._connection: AsyncpgConnection | None = None
        self._busy = asyncio.Lock()
        self.was_connected = False
        """Whether the database was ever reached. A URL that never worked is likely wrong, so retries are useless."""

    @property
    def is_busy(self) -> bool:
        """Whether a call uses the connection at this moment."""
        return self._busy.locked()

    async def run(self, work: Work[T], seconds: float) -> T:
        """The result of this work with the connection; raises StoreError if it cannot be done within these seconds."""
        try:
            async with asyncio.timeout(seconds), self._busy:
                return await self._run(work)
        except self._driver.FAILURES as error:
            raise self._driver.trouble(error, self._url) from error

    async def _run(self, work: Work[T]) -> T:
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._driver.connect(self._url, server_settings=self._settings)
                self.was_connected = True
            return await work(self._connection)
        except BaseException as error:
            if not self._driver.is_answer(error):
                self.drop()
            raise

    def drop(self) -> None:
        """Discard the connection."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


def is_postgres(url: object) -> bool:
    """Whether this is the URL of a PostgreSQL database.

    >>> is_postgres("postgresql://db1,db2/accord"), is_postgres("sessions.sqlite3")
    (True, False)
    """
    return isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))


def check_url(url: object) -> None:
    """Raise an error for anything but the URL of a PostgreSQL database."""
    if not isinstance(url, str):
        raise TypeError(f"PostgresStore(url) takes a URL such as 'postgresql://host/name', got {type(url).__name__}")
    if not is_postgres(url):
        raise ValueError(f"PostgresStore(url) takes a URL such as 'postgresql://host/name', got {mask_urls(url)!r}")
