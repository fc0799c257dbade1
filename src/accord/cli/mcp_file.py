"""`--mcp FILE`: MCP servers from the JSON file that editors and other clients use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from accord.cli.endings import WrongUsage
from accord.errors import DecodeError
from accord.schema import codec, v1


def read(path: str) -> list[v1.McpServer]:
    """The servers in this file: `{"mcpServers": {"name": {...}}}`, or a list as the protocol writes them."""
    try:
        said = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise WrongUsage(f"--mcp {path}: {error.strerror}") from None
    except ValueError as error:
        raise WrongUsage(f"--mcp {path}: not JSON: {error}") from None
    if isinstance(said, dict):
        servers: Any = cast("dict[str, Any]", said).get("mcpServers", said)
        said = _by_name(path, cast("dict[str, Any]", servers)) if isinstance(servers, dict) else servers
    try:
        return codec.convert(said, list[v1.McpServer])
    except DecodeError as error:
        raise WrongUsage(f"--mcp {path}: {error}") from None


def _by_name(path: str, servers: dict[str, Any]) -> list[dict[str, Any]]:
    return [_server(path, name, server) for name, server in servers.items()]


def _server(path: str, name: str, said: Any) -> dict[str, Any]:
    """A server as the protocol writes it."""
    if not isinstance(said, dict):
        raise WrongUsage(f"--mcp {path}: the server {name} is no object")
    server = cast("dict[str, Any]", said)
    if "url" in server:
        kind = "sse" if server.get("type") == "sse" else "http"
        return {"type": kind, "name": name, "url": server["url"], "headers": _pairs(server.get("headers"))}
    if "command" not in server:
        raise WrongUsage(f"--mcp {path}: the server {name} has neither a command nor a url")
    return {
        "name": name,
        "command": server["command"],
        "args": server.get("args", []),
        "env": _pairs(server.get("env")),
    }


def _pairs(said: Any) -> Any:
    if not isinstance(said, dict):
        return said or []
    return [{"name": name, "value": value} for name, value in cast("dict[str, Any]", said).items()]
