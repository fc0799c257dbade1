"""The kinds of MCP servers that can be used here."""

from __future__ import annotations

import functools
import importlib.util

from accord.schema import v1


@functools.cache
def installed() -> bool:
    """Whether the official package is installed. Each connection asks, and each look searches the whole path."""
    return importlib.util.find_spec("mcp") is not None


def mcp_capabilities() -> v1.McpCapabilities:
    """The MCP capabilities that an agent can declare: all transports of the official package, if it is installed."""
    is_usable = installed()
    return v1.McpCapabilities(http=is_usable, sse=is_usable, acp=is_usable)
