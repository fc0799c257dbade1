"""What a client sends and is answered in version 2, for callers who use the classes of version 1. PURE.

`RemoteAgent` and `RemoteSession` make the requests of version 1. On a connection of version 2 they are converted here,
and so are their answers, so that one program serves agents of both versions. Classes of version 2 pass unchanged.

What a request needs is asked for by its class of version 1, before it is converted: `AgentOffers` answers in the words
of version 1. Only what version 1 takes for granted is checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.errors import CapabilityMissing, ConversionError
from accord.schema import v1, v2
from accord.schema.base import Notification, Request
from accord.schema.conversion import to_v1, to_v2

ALWAYS_SUCCEEDS = (v1.CloseSessionRequest, v1.DeleteSessionRequest)
"""Requests that have reached their end when the agent answers that it knows no such session."""


def request_as_v2(request: Request[Any], declared: v2.AgentCapabilities) -> Request[Any]:
    """This request as an agent of version 2 takes it; raises CapabilityMissing for what it does not take at all."""
    if request.__class__.__module__.startswith("accord.schema."):
        _must_be_taken(request, declared)
    converted: Request[Any] = _converted(request)
    return converted


def notification_as_v2(notification: Notification) -> Notification:
    """This notification as an agent of version 2 takes it."""
    converted: Notification = _converted(notification)
    return converted


def result_as_v1(request: Request[Any], result: Any) -> Any:
    """The result of a request of version 1 as a result of version 1; anything else unchanged."""
    if request.__class__.__module__.startswith("accord.schema.v2"):
        return result
    match result:
        case v2.NewSessionResponse() | v2.ForkSessionResponse():
            kind = getattr(v1, type(result).__name__)
            return kind(result.session_id, config_options=options_as_v1(result.config_options), meta=result.meta)
        case v2.ResumeSessionResponse():
            loads = isinstance(request, v1.LoadSessionRequest)
            answer = v1.LoadSessionResponse if loads else v1.ResumeSessionResponse
            return answer(config_options=options_as_v1(result.config_options), meta=result.meta)
        case v2.SetSessionConfigOptionResponse():
            return v1.SetSessionConfigOptionResponse(options_as_v1(result.config_options) or [], meta=result.meta)
        case _:
            return each_as_v1(result)


def options_as_v1(options: list[v2.SessionConfigOption]) -> list[v1.SessionConfigOption] | None:
    """Config options in the words of version 1; None if there are none. What version 1 cannot say is left out."""
    return [shown for option in options for shown in known_as_v1(option)] or None


def blocks_as_v2(blocks: Sequence[v1.ContentBlock]) -> list[v2.ContentBlock]:
    """The content of a prompt as an agent of version 2 takes it."""
    return [_block(block) for block in blocks]


def _block(block: v1.ContentBlock) -> v2.ContentBlock:
    if isinstance(block, v1.TextContent) and block.meta is None and block.annotations is None:
        return v2.TextContent(block.text)  # the usual case, without a conversion field by field
    converted: v2.ContentBlock = to_v2(block)
    return converted


def known_as_v1(value: Any) -> list[Any]:
    """This value of version 2 as one of version 1, in a list; an empty list if version 1 has no words for it."""
    try:
        return [to_v1(value)]
    except ConversionError:
        return []


def each_as_v1(value: Any) -> Any:
    """This value of version 2 as one of version 1; unchanged if version 1 has no words for it."""
    try:
        return to_v1(value)
    except ConversionError:
        return value


def _converted(message: Any) -> Any:
    module = message.__class__.__module__
    return to_v2(message) if module.startswith("accord.schema.v1") else message


def _must_be_taken(request: Any, declared: v2.AgentCapabilities) -> None:
    method: str = request.__method__
    sessions = declared.session
    if method.startswith("session/") and sessions is None:
        raise CapabilityMissing("session", method)
    servers = getattr(request, "mcp_servers", ())
    if any(isinstance(server, v1.McpServerStdio | v2.McpServerStdio) for server in servers):
        taken = None if sessions is None or sessions.mcp is None else sessions.mcp.stdio
        if taken is None:
            raise CapabilityMissing("session.mcp.stdio", "the MCP servers that are started as programs")
