"""The errors that a client may read: of an author's code, and of the session store."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from accord.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NOT_FOUND,
    AccordError,
    RequestError,
    StoreError,
    StoreTrouble,
)
from accord.session import updates

log = logging.getLogger("accord")


def not_found(session_id: str) -> RequestError:
    return RequestError(NOT_FOUND, "Session not found", {"sessionId": session_id})


def taken(session_id: str, code: int = INVALID_REQUEST) -> RequestError:
    return RequestError(code, "Session was opened elsewhere", {"sessionId": session_id, "reason": "taken"})


_IN_WORDS: dict[StoreTrouble, str] = {
    "newer_format": "The agent's store of sessions was written by a newer version; update the agent",
    "not_a_store": "The file that the agent keeps sessions in is not a store of sessions; give the agent another one",
    "damaged": "The agent's store of sessions is damaged; restore it, or give the agent another one",
    "busy": "The agent's store of sessions is locked by another program; try again",
    "full": "The disk of the agent's store of sessions is full; free some space, then try again",
    "replaced": "The agent's store of sessions was deleted or replaced while it was open; restart the agent",
}
"""Messages for the client by the reason of the error: what is wrong and what to do, without paths and system errors."""


def public_store_error(error: StoreError, session_id: str) -> RequestError:
    """The answer for the client. Details that only the agent's operator can use are logged."""
    if error.reason == "gone":
        return not_found(session_id)
    if error.reason == "cursor":
        return RequestError.invalid_params(str(error), path="$.cursor")
    if error.reason == "taken":
        return taken(session_id)
    log.error("%s", error)
    message = _IN_WORDS.get(error.reason, "The agent's store of sessions cannot be used; its log says why")
    return RequestError.internal(message, reason=error.reason)


@contextmanager
def public_store_errors(session_id: str) -> Generator[None]:
    """Turn a StoreError into the answer for the client."""
    try:
        yield
    except StoreError as error:
        raise public_store_error(error, session_id) from error


def public_error(error: BaseException) -> updates.Error:
    """The error of the protocol for this one: with its text if that is meant for the client, else without."""
    if isinstance(error, RequestError):
        return updates.Error(error.code, error.message, error.data)
    is_safe = isinstance(error, AccordError) and error.may_be_told(None)
    return updates.Error(INTERNAL_ERROR, str(error) if is_safe else "Internal error")
