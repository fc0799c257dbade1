"""An error of an author's code, as the client may read it. PURE."""

from __future__ import annotations

from accord.errors import INTERNAL_ERROR, AccordError, RequestError
from accord.schema import v1


def error_for(error: BaseException) -> v1.Error:
    """The error of the protocol for this one: with its text if that is meant for the client, else without."""
    if isinstance(error, RequestError):
        return v1.Error(error.code, error.message, error.data)
    is_safe = isinstance(error, AccordError) and error.may_be_told(None)
    return v1.Error(INTERNAL_ERROR, str(error) if is_safe else "Internal error")
