"""What a store's trouble is to a client."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from accord.errors import INVALID_REQUEST, NOT_FOUND, RequestError, StoreError


def not_found(session_id: str) -> RequestError:
    return RequestError(NOT_FOUND, "Session not found", {"sessionId": session_id})


def told(error: StoreError, session_id: str) -> RequestError | None:
    """What the client should know of it; None where that is nothing to it."""
    if error.reason == "gone":
        return not_found(session_id)
    if error.reason == "cursor":
        return RequestError.invalid_params(str(error), path="$.cursor")
    if error.reason == "taken":
        data = {"sessionId": session_id, "reason": "taken"}
        return RequestError(INVALID_REQUEST, "Session was taken up elsewhere", data)
    return None


@contextmanager
def telling(session_id: str) -> Generator[None]:
    """Answer with what the client should know of a store's trouble."""
    try:
        yield
    except StoreError as error:
        if (seen := told(error, session_id)) is None:
            raise
        raise seen from error
