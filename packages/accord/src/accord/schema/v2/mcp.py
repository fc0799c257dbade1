"""MCP servers that a client gives to a session.

Differs from version 1: every server says its `type`, `stdio` included; server-sent events are gone.
"""

from __future__ import annotations

from typing import TypeAlias

from accord.schema.base import Model, NullAsDefault, Open
from accord.schema.v1.mcp import EnvVariable, HttpHeader, McpServerAcp
from accord.schema.v2.protocol import AbsolutePath


class McpServerStdio(Model, tag_field="type", tag="stdio"):
    """An MCP server that the agent starts as a process; for agents with `session.mcp.stdio`."""

    name: str
    command: AbsolutePath
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[list[EnvVariable]] = []


class McpServerHttp(Model, tag_field="type", tag="http"):
    """An MCP server over streamable HTTP; for agents with `session.mcp.http`."""

    name: str
    url: str
    headers: NullAsDefault[list[HttpHeader]] = []


McpServer: TypeAlias = Open[McpServerStdio | McpServerHttp | McpServerAcp]
