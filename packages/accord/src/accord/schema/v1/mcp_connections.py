"""MCP over ACP by connection, as the proposal's page and older SDKs have it; `mcp` has it by request. See `legacy`.

The pinned schema sends `mcp/message` with a `serverId`. The page opens a connection with `mcp/connect`, sends
`mcp/message` with its `connectionId` in both directions, and closes it with `mcp/disconnect`. Its `mcp/connect` names
the server by `acpId`; the Rust SDK 2 names it by `serverId`, which is read too.

| | by request | by connection |
|---|---|---|
| a request | `MessageMcpRequest` | `McpConnectionRequest` |
| its result | `MessageMcpResponse`: a result or an error of the server | the server's result itself |
| an error of the server | in that response | the error that answers the request |
| a notification | `MessageMcpNotification` | `McpConnectionNotification` |

A method has one handler. One that serves both forms is registered for `AnyMcpRequest` or `AnyMcpNotification`, and
looks at the class of what it gets.
"""

from __future__ import annotations

from typing import NewType

from accord.schema.base import Json, Model, Notification, Request, choice, unstable
from accord.schema.v1.mcp import McpServerAcpId, MessageMcpNotification, MessageMcpRequest

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


class McpConnectionRequest(Request[Json], method="mcp/message", unstable=True):
    """A request of MCP on an open connection; its answer is the answer of the other side's MCP."""

    connection_id: McpConnectionId
    method: str
    params: dict[str, Json] | None = None


class McpConnectionNotification(Notification, method="mcp/message", unstable=True):
    """A notification of MCP on an open connection."""

    connection_id: McpConnectionId
    method: str
    params: dict[str, Json] | None = None


class AnyMcpRequest(Request[Json], method="mcp/message", unstable=True):
    """For handlers of the request `mcp/message` in both forms: they get an instance of one of the two."""


class AnyMcpNotification(Notification, method="mcp/message", unstable=True):
    """For handlers of the notification `mcp/message` in both forms: they get an instance of one of the two."""


def _by_connection(value: Json) -> bool:
    return isinstance(value, dict) and "connectionId" in value


AnyMcpRequest.__params__ = choice(
    "AnyMcpRequest",
    lambda value: McpConnectionRequest if _by_connection(value) else MessageMcpRequest,
    McpConnectionRequest,
    MessageMcpRequest,
)
AnyMcpNotification.__params__ = choice(
    "AnyMcpNotification",
    lambda value: McpConnectionNotification if _by_connection(value) else MessageMcpNotification,
    McpConnectionNotification,
    MessageMcpNotification,
)
