"""What belongs to the protocol itself rather than to a topic: request ids, absolute paths, errors and their data.

Differs from version 1: a request id is never `null`; the data of two errors have a shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from accord.schema.base import Int64, Json, Model, Notification, Shape, Tolerant, choice
from accord.schema.v1.initialize import ProtocolVersion
from accord.schema.v1.protocol import ErrorCode
from accord.schema.v1.session import SessionId

RequestId: TypeAlias = Annotated[Int64 | str, "RequestId"]
"""What names a call until it is answered. Type-exact: `"3"` is not `3`."""

AbsolutePath: TypeAlias = Annotated[str, "AbsolutePath"]
"""A whole path, in the words of the agent's machine; no URI."""


class UnsupportedProtocolVersionErrorData(Model):
    """The data of error -32022: the requested version and the supported ones."""

    requested: ProtocolVersion
    supported: list[ProtocolVersion]


class SessionNotFoundErrorData(Model):
    """The data of error -32002: the session that does not exist or is not active."""

    session_id: SessionId


def _shape_of_error_data(value: Json) -> Any:
    """A known shape, if the value fits it and holds nothing that would be lost."""
    match value:
        case {"requested": requested, "supported": [*supported], **rest} if _is_meta(rest):
            return UnsupportedProtocolVersionErrorData if all(map(_is_version, [requested, *supported])) else Any
        case {"sessionId": str(), **rest} if _is_meta(rest):
            return SessionNotFoundErrorData
        case _:
            return Any


def _is_version(value: Json) -> bool:
    return type(value) is int and 0 <= value < 2**16


def _is_meta(rest: dict[Any, Json]) -> bool:
    return rest.keys() <= {"_meta"} and isinstance(rest.get("_meta", {}), dict)


if TYPE_CHECKING:
    ErrorData: TypeAlias = UnsupportedProtocolVersionErrorData | SessionNotFoundErrorData | Json
else:
    ErrorData = choice(
        "ErrorData",
        _shape_of_error_data,
        UnsupportedProtocolVersionErrorData,
        SessionNotFoundErrorData,
        Any,
    )


class Error(Shape):
    """The error of an answer, or of a session that stopped on it."""

    code: ErrorCode
    message: str
    data: Tolerant[ErrorData | None] = None


class CancelRequestNotification(Notification, method="$/cancel_request"):
    """Cancel a request: the sender no longer needs its answer."""

    request_id: RequestId
