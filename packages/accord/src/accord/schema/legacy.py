"""Older forms of the protocol that peers still use: they are read, and sent only if the other side needs them.

This table is the whole list. A form that needs its own type or method is with its topic.

| form | today | read by |
|---|---|---|
| `mcp` of an agent's capabilities | `mcpCapabilities` | `capabilities_renamed` |
| `modeId` in `current_mode_update` | `currentModeId` | `rewritten` |
| `id` of a plan | `planId` | `rewritten` |
| `id` of a provider | `providerId` | `rewritten` |
| `diff` in a diff's patch | `text` | `rewritten` |
| a content block in a tool call's `content` | `{"type": "content", "content": block}` | `wrapped` |
| a `null` result where all fields are optional | `{}` | `empty_result` |
| `env_var` auth methods | proposed in auth-methods, not in the pinned schema, sent by real agents | `v1.auth` |
| `_meta["terminal-auth"]` of an auth method | the `terminal` type | `terminal_auth`; sent to older clients |
| `models` of a session, `session/set_model` | a config option of category `model` | `v1.models`; sent as well |
| NES and documents | frozen outside the pinned schema | `v1.nes` |
| `id` of an MCP server of the client | `serverId` | `rewritten` |
| `mcp/connect` with `acpId` or `serverId`, `mcp/disconnect` | `mcp/message` by `serverId` | `v1.mcp_connections` |
| `mcp/message` with a `connectionId` | `serverId` and `requestId` | `v1.mcp_connections` |
| `_proxy/initialize`, `_proxy/successor` | `proxy/...` | `methods` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from accord.schema.base import Json, JsonObject

RENAMED_FIELDS: dict[str, dict[str, str]] = {
    # session-modes shows `modeId`; the schema has `currentModeId`.
    "CurrentModeUpdate": {"modeId": "currentModeId"},
    # plan-operations and plan-variants show `id`; the schema has `planId`.
    "PlanItems": {"id": "planId"},
    "PlanMarkdown": {"id": "planId"},
    "PlanRemoved": {"id": "planId"},
    # custom-llm-endpoint shows both `id` and `providerId`; the schema has `providerId`.
    "ProviderInfo": {"id": "providerId"},
    "SetProviderRequest": {"id": "providerId"},
    "DisableProviderRequest": {"id": "providerId"},
    # diff-file-states shows `diff`; the schema has `text`.
    "DiffPatch": {"diff": "text"},
    # mcp-over-acp declares a server by `id`; the schema has `serverId`.
    "McpServerAcp": {"id": "serverId"},
    # The Rust SDK 2 opened a connection by `serverId`; mcp-over-acp has `acpId`, and today's schema has no connections.
    "ConnectMcpRequest": {"serverId": "acpId"},
}

RENAMED_METHODS: dict[str, str] = {
    # The Rust SDK's proxies.
    "_proxy/initialize": "proxy/initialize",
    "_proxy/successor": "proxy/successor",
}


def rewritten(cls: type, raw: dict[str, Json]) -> dict[str, Json]:
    """An object with the present names of its fields; a field that has its present name is never overwritten."""
    renamed = RENAMED_FIELDS.get(cls.__name__)
    if renamed is None:
        return raw
    return {renamed.get(key, key): value for key, value in raw.items() if renamed.get(key) not in raw}


def capabilities_renamed(answer: Any) -> Any:
    """Return the answer to `initialize` with the present name of its MCP capabilities, which pages of 2025 call `mcp`.

    All capabilities are optional, so the strict decoder would drop the older name silently.
    """
    fields = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    declared = cast("dict[str, Any]", said) if isinstance(said := fields.get("agentCapabilities"), dict) else {}
    if "mcp" not in declared or "mcpCapabilities" in declared:
        return cast("Any", answer)
    renamed = {"mcpCapabilities" if key == "mcp" else key: value for key, value in declared.items()}
    return {**fields, "agentCapabilities": renamed}


CONTENT_BLOCKS = frozenset(("text", "image", "audio", "resource", "resource_link"))
"""The types of content blocks that older agents put into a tool call's content without a `content` around them."""


def wrapped(tag: str, variants: Mapping[str, type], raw: dict[str, Json]) -> dict[str, Json] | None:
    """Return the variant `content` of a union around this block; None if the union or the block is another."""
    content = variants.get("content")
    if content is None or content.__name__ != "Content" or tag not in CONTENT_BLOCKS:
        return None
    return {"type": "content", "content": raw}


def empty_result(data: bytes) -> bytes:
    """Return an empty object for `null`: some agents send null for an object whose fields are all optional."""
    return b"{}" if data == b"null" else data


class TerminalAuth(msgspec.Struct, frozen=True):
    """The command for a login in a terminal, in the older form of `AuthMethodTerminal`."""

    command: str
    args: list[str]
    env: dict[str, str]
    label: str | None


def terminal_auth(meta: JsonObject | None) -> TerminalAuth | None:
    """Return the login in `_meta["terminal-auth"]` of an auth method; None if it is absent or invalid."""
    said = (meta or {}).get("terminal-auth")
    if not isinstance(said, dict):
        return None
    raw = cast("dict[str, Any]", said)
    command, label = raw.get("command"), raw.get("label")
    args: Json = raw.get("args") or []
    env: Json = raw.get("env") or {}
    if not isinstance(command, str) or not isinstance(args, list) or not isinstance(env, dict):
        return None
    return TerminalAuth(
        command,
        [str(argument) for argument in cast("list[Json]", args)],
        {key: str(value) for key, value in cast("dict[str, Json]", env).items()},
        label if isinstance(label, str) else None,
    )
