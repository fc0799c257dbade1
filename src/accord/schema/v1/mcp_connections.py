"""MCP over ACP as the proposal's page has it: by connection, not by request. See `legacy`.

The pinned schema sends `mcp/message` with a `serverId`; the page opens a connection with `mcp/connect`, sends
`mcp/message` with its `connectionId`, and closes it with `mcp/disconnect`.
"""

from __future__ import annotations

from typing import NewType

from accord.schema.base import Model, Request, unstable
from accord.schema.v1.mcp import McpServerAcpId

McpConnectionId = NewType("McpConnectionId", str)


@unstable
class ConnectMcpResponse(Model):
    """The result of `mcp/connect`: the id of the open connection."""

    connection_id: McpConnectionId


class ConnectMcpRequest(Request[ConnectMcpResponse], method="mcp/connect", unstable=True):
    """Open a connection to an MCP server of the other side."""

    acp_id: McpServerAcpId


@unstable
class DisconnectMcpResponse(Model):
    """The result of `mcp/disconnect`: the connection is closed."""


class DisconnectMcpRequest(Request[DisconnectMcpResponse], method="mcp/disconnect", unstable=True):
    """Close a connection to an MCP server."""

    connection_id: McpConnectionId
