"""MCP servers that a client gives to a session, and MCP spoken over ACP. Pages: session-setup, mcp-over-acp."""

from __future__ import annotations

from typing import TYPE_CHECKING, NewType, TypeAlias

from msgspec import UNSET, UnsetType

from accord.schema.base import (
    Int32,
    Json,
    Model,
    Notification,
    NullAsDefault,
    Open,
    Request,
    Shape,
    needs,
    tagged_or,
    unstable,
)

McpServerAcpId = NewType("McpServerAcpId", str)
McpRequestId = NewType("McpRequestId", str)


class EnvVariable(Model):
    """An environment variable for a process."""

    name: str
    value: str


class HttpHeader(Model):
    """A header for every HTTP request to a server."""

    name: str
    value: str


class McpServerStdio(Model):
    """An MCP server that the agent starts as a process; every agent supports it. The one variant without a `type`."""

    name: str
    command: str
    args: NullAsDefault[list[str]]
    env: NullAsDefault[list[EnvVariable]]


@needs("mcp_capabilities.http")
class McpServerHttp(Model, tag_field="type", tag="http"):
    """An MCP server over streamable HTTP; for agents with `mcpCapabilities.http`."""

    name: str
    url: str
    headers: NullAsDefault[list[HttpHeader]]


@needs("mcp_capabilities.sse")
class McpServerSse(Model, tag_field="type", tag="sse"):
    """An MCP server over HTTP with server-sent events; for agents with `mcpCapabilities.sse`."""

    name: str
    url: str
    headers: NullAsDefault[list[HttpHeader]]


@unstable
@needs("mcp_capabilities.acp")
class McpServerAcp(Model, tag_field="type", tag="acp"):
    """An MCP server of the client itself, reached over this connection; for agents with `mcpCapabilities.acp`."""

    name: str
    server_id: McpServerAcpId


if TYPE_CHECKING:
    McpServer: TypeAlias = Open[McpServerStdio | McpServerHttp | McpServerSse | McpServerAcp]
else:
    McpServer = tagged_or("McpServer", "type", McpServerStdio, McpServerHttp, McpServerSse, McpServerAcp, means="stdio")


class McpError(Shape):
    """An error of an MCP server, in MCP's own form."""

    code: Int32
    message: str
    data: Json | UnsetType = UNSET


@unstable
class MessageMcpResponse(Model):
    """The answer of an MCP server: a result, or an error of its own."""

    result: Json | UnsetType = UNSET
    error: McpError | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.result is UNSET) == (self.error is UNSET):
            raise ValueError("exactly one of result and error is required")


class MessageMcpRequest(Request[MessageMcpResponse], method="mcp/message", unstable=True):
    """Call an MCP server of the client."""

    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: dict[str, Json] | None = None


class MessageMcpNotification(Notification, method="mcp/message", unstable=True, needs="mcp_capabilities.acp"):
    """A notification of the client's MCP server while it works on a request."""

    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: dict[str, Json] | None = None
