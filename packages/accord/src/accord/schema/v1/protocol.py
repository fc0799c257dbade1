"""What belongs to the protocol itself rather than to a topic: request ids, errors, cancelling one request.

Pages: overview, cancellation, extensibility.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Int32, Int64, Json, Notification, Shape, Tolerant

RequestId: TypeAlias = Annotated[Int64 | str | None, "RequestId"]
"""What names a call until it is answered. Type-exact: `"3"` is not `3`."""

ErrorCode: TypeAlias = Annotated[Int32, "ErrorCode"]
"""JSON-RPC's codes, and ACP's own; `accord.errors` names them."""


class Error(Shape):
    """The error of an answer."""

    code: ErrorCode
    message: str
    data: Tolerant[Json] = None


class CancelRequestNotification(Notification, method="$/cancel_request"):
    """Cancel a request: the sender no longer needs its answer."""

    request_id: RequestId


ExtRequest: TypeAlias = Json
"""Params of a request whose method begins with `_`: the two sides agree on them between themselves."""

ExtResponse: TypeAlias = Json
ExtNotification: TypeAlias = Json
