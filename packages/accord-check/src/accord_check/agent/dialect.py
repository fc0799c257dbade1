"""How each version of the protocol says what the scenarios say: handshake, capabilities, logins, resuming. PURE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accord_check.agent.lender import FULL

INFO = {"name": "accord-check", "version": "1"}

FULL_V2: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
"""The capabilities of a client of version 2 that can do nearly everything."""

_BASE = ("list", "resume", "close")
"""What every agent of version 2 with sessions can do."""

_NAMES = {"load": "loadSession", "image": "promptCapabilities.image", "http": "mcpCapabilities.http"}
_NAMES_V2 = {"image": "session.prompt.image", "http": "session.mcp.http", "stdio": "session.mcp.stdio"}


def handshake(version: int, *, can_do: bool, terminal_login: bool = False) -> dict[str, Any]:
    """The params of `initialize`, of a client that can do nearly everything or nothing.

    `terminal_login`: the client can open a terminal for a login.
    """
    if version == 2:
        login: dict[str, Any] = {"auth": {"terminal": {}}} if terminal_login else {}
        return {"protocolVersion": 2, "capabilities": (FULL_V2 if can_do else {}) | login, "info": INFO}
    way: dict[str, Any] = {"auth": {"terminal": True}} if terminal_login else {}
    return {"protocolVersion": 1, "clientCapabilities": (FULL if can_do else {}) | way, "clientInfo": INFO}


def capability(feature: str, version: int) -> str:
    """Where an agent declares a feature; empty for what every agent of this version has."""
    if version == 2:
        return "" if feature in _BASE or feature == "load" else _NAMES_V2.get(feature, f"session.{feature}")
    if feature == "stdio":
        return ""
    return _NAMES.get(feature, f"sessionCapabilities.{feature}")


def login(method: str, version: int) -> tuple[str, dict[str, Any]]:
    """The request that logs in."""
    return ("auth/login" if version == 2 else "authenticate"), {"methodId": method}


def load(session: str, folder: Path, version: int) -> tuple[str, dict[str, Any]]:
    """The request that opens a session again, with its past."""
    params: dict[str, Any] = {"sessionId": session, "cwd": str(folder), "mcpServers": []}
    if version == 2:
        return "session/resume", params | {"replayFrom": {"type": "start"}}
    return "session/load", params


def id_of_method(way: dict[str, Any]) -> str:
    """The id of a way to log in."""
    return str(way.get("methodId", way.get("id")))
