"""The kinds of MCP servers that can be used here."""

from __future__ import annotations

import importlib.util

from accord.schema import v1


def installed() -> bool:
    """Whether the official package is installed."""
    return importlib.util.find_spec("mcp") is not None


def mcp_capabilities() -> v1.McpCapabilities:
    """The MCP capabilities that an agent can declare: all transports of the official package, if it is installed."""
    return v1.McpCapabilities(http=installed(), sse=installed(), acp=installed())
