"""The interface to asyncpg: connecting, and the meaning of its errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from accord.errors import StoreError, StoreTrouble
from accord.installation import missing_extra
from accord.redaction import mask_urls
from accord.store.postgres_statements import AsyncpgConnection

try:
    import asyncpg  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    from asyncpg import exceptions  # pyright: ignore[reportMissingTypeStubs]
except ModuleNotFoundError as missing:
    raise missing_extra("postgres", "a store in PostgreSQL") from missing

connect: Callable[..., Awaitable[AsyncpgConnection]] = cast("Any", asyncpg).connect
"""Opens a connection to a URL."""

_LOST = (
    exceptions.PostgresConnectionError,
    exceptions.CannotConnectNowError,
    exceptions.AdminShutdownError,
    exceptions.CrashShutdownError,
    exceptions.TooManyConnectionsError,
)
"""The server's errors when it shuts down or is starting."""

_AGAIN = (exceptions.DeadlockDetectedError, exceptions.SerializationError)

FAILURES = (exceptions.PostgresError, exceptions.InterfaceError, exceptions.InternalClientError, OSError)
"""The errors that a call may raise because of the database or the connection to it."""


def is_answer(error: BaseException) -> bool:
    """Whether the connection is still usable: the database has answered, with an error or with an unexpected value."""
    return isinstance(error, (exceptions.PostgresError, StoreError)) and not isinstance(error, _LOST)


def was_undone(error: BaseException | None) -> bool:
    """Whether the transaction was rolled back because of another one, and may be repeated."""
    return isinstance(error, _AGAIN)


def is_lost(error: BaseException | None) -> bool:
    """Whether the connection broke, so that the work may have been done or not."""
    if isinstance(error, exceptions.PostgresError):
        return isinstance(error, _LOST)
    if isinstance(error, ValueError):  # a URL that makes no sense
        return False
    return isinstance(error, (OSError, exceptions.InterfaceError, exceptions.InternalClientError))


def trouble(error: BaseException, url: str) -> StoreError:
    """The StoreError for an exception of asyncpg."""
    where = mask_urls(url)
    if isinstance(error, TimeoutError):
        return StoreError("busy", f"the store {where} did not answer in time; try again")
    reason: StoreTrouble = "full" if isinstance(error, exceptions.DiskFullError) else "failed"
    return StoreError(reason, f"cannot use the store {where}: {mask_urls(str(error)) or type(error).__name__}")
