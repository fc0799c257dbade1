"""The headers and media types of the protocol over HTTP, and where a message belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from accord.compat.acp.meta import AGENT_METHODS

__all__ = [
    "ACP_ENDPOINT_PATH",
    "CONNECTION_ID_HEADER",
    "CONTENT_TYPE_JSON",
    "CONTENT_TYPE_SSE",
    "INITIALIZE_METHOD",
    "SESSION_ID_HEADER",
    "is_initialize_request",
    "is_response_message",
    "message_id_key",
    "method_requires_session_header",
    "session_id_from_message",
    "session_id_from_params",
    "session_id_from_result",
]

ACP_ENDPOINT_PATH = "/acp"
CONNECTION_ID_HEADER = "Acp-Connection-Id"
CONTENT_TYPE_JSON = "application/json"
CONTENT_TYPE_SSE = "text/event-stream"
INITIALIZE_METHOD = AGENT_METHODS["initialize"]
SESSION_ID_HEADER = "Acp-Session-Id"

_OF_AN_OPEN_SESSION = {
    AGENT_METHODS[f"session_{name}"] for name in ("cancel", "close", "prompt", "set_config_option", "set_mode")
}


def is_initialize_request(message: Mapping[str, Any]) -> bool:
    """Whether this message is the request `initialize`."""
    return "id" in message and message.get("method") == INITIALIZE_METHOD


def is_response_message(message: Mapping[str, Any]) -> bool:
    """Whether this message answers a request."""
    return "id" in message and "method" not in message


def method_requires_session_header(method: str | None) -> bool:
    """Whether a message of this method names an open session, in the header `Acp-Session-Id` as well."""
    return method in _OF_AN_OPEN_SESSION


def message_id_key(message_id: Any) -> str | None:
    """The id of a message as text, so that 1 and "1" are one key; None without an id."""
    return None if message_id is None else str(message_id)


def session_id_from_params(params: Any) -> str | None:
    """The session that these params name; None if they name no session."""
    session_id = cast("Mapping[str, Any]", params).get("sessionId") if isinstance(params, Mapping) else None
    return session_id if isinstance(session_id, str) else None


def session_id_from_result(result: Any) -> str | None:
    """The session that this result names; None if it names no session."""
    return session_id_from_params(result)


def session_id_from_message(message: Mapping[str, Any]) -> str | None:
    """The session that the params or the result of this message name; None if they name no session."""
    return session_id_from_params(message.get("params")) or session_id_from_result(message.get("result"))
