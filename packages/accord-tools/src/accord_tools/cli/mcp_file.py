"""`--mcp FILE`: reads MCP servers from the JSON format that editors and other clients use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from accord import ConfigurationError, DecodeError, load_mcp_servers, v1
from accord.schema import codec
from accord_tools.cli.endings import WrongUsage


def read(path: str, cwd: str = ".") -> Sequence[v1.McpServer]:
    """The servers in this file: `{"mcpServers": {"name": {...}}}`, or a list as the protocol writes them."""
    try:
        said = json.loads(Path(path).read_bytes())
    except (OSError, ValueError):
        said = None  # it may have comments; the reader below says what is wrong
    try:
        return codec.convert(said, list[v1.McpServer]) if isinstance(said, list) else load_mcp_servers(path, cwd=cwd)
    except DecodeError as error:
        raise WrongUsage(f"--mcp {path}: {error}") from None
    except ConfigurationError as error:
        raise WrongUsage(f"--mcp {error}") from None
