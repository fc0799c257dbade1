"""What a store's trouble is to a client."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from accord.errors import INVALID_REQUEST, NOT_FOUND, RequestError, StoreError


def not_found(session_id: str) -> RequestError:
    return RequestError(NOT_FOUND, "Session not found", {"sessionId": session_id})


@contextmanager
def telling(session_id: str) -> Generator[None]:
    """Answer with what the client should know of a store's trouble; the rest stays here."""
    try:
        yield
    except StoreError as error:
        if error.reason == "gone":
            raise not_found(session_id) from error
        if error.reason == "cursor":
            raise RequestError.invalid_params(str(error), path="$.cursor") from error
        if error.reason == "taken":
            raise RequestError(
                INVALID_REQUEST,
                "Session was taken up elsewhere",
                {"sessionId": session_id, "reason": "taken"},
            ) from error
        raise
