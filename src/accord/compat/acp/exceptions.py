"""`RequestError`: the error that answers a request, raised by handlers and by calls."""

from __future__ import annotations

from typing import Any

from accord.errors import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    PARSE_ERROR,
)

__all__ = ["RequestError"]


class RequestError(Exception):
    """An error of JSON-RPC: its text, its `code`, and `data` with what else is said about it."""

    def __init__(self, code: int, message: str, data: Any | None = None) -> None:
        super().__init__(message)
        self.code = code
        """The number of the error."""
        self.data = data
        """What else is said about it; None if nothing."""

    @classmethod
    def parse_error(cls, data: dict[str, Any] | None = None) -> RequestError:
        """The message is not JSON."""
        return cls(PARSE_ERROR, "Parse error", data)

    @classmethod
    def invalid_request(cls, data: dict[str, Any] | None = None) -> RequestError:
        """The message is not a request, or came at the wrong time."""
        return cls(INVALID_REQUEST, "Invalid request", data)

    @classmethod
    def method_not_found(cls, method: str) -> RequestError:
        """The method is unknown, or not implemented."""
        return cls(METHOD_NOT_FOUND, "Method not found", {"method": method})

    @classmethod
    def invalid_params(cls, data: dict[str, Any] | None = None) -> RequestError:
        """The params do not fit the method."""
        return cls(INVALID_PARAMS, "Invalid params", data)

    @classmethod
    def internal_error(cls, data: dict[str, Any] | None = None) -> RequestError:
        """The handler failed."""
        return cls(INTERNAL_ERROR, "Internal error", data)

    @classmethod
    def auth_required(cls, data: dict[str, Any] | None = None) -> RequestError:
        """The user must log in first."""
        return cls(AUTH_REQUIRED, "Authentication required", data)

    @classmethod
    def resource_not_found(cls, uri: str | None = None) -> RequestError:
        """The resource, or the session, does not exist."""
        return cls(NOT_FOUND, "Resource not found", None if uri is None else {"uri": uri})

    def to_error_obj(self) -> dict[str, Any]:
        """The error as it is sent."""
        return {"code": self.code, "message": str(self), "data": self.data}
