"""Commands for the session's MCP servers: list their tools and call one."""

from __future__ import annotations

import json
from typing import Any, cast

from accord import McpServerError, Turn
from accord.mcp import McpTool
from accord.schema.base import Json


async def tools(turn: Turn) -> None:
    mcp = turn.session.mcp
    offered = [
        f"- `{tool.qualified_name}` {_arguments(tool)} {tool.description}".rstrip() for tool in await mcp.tools()
    ]
    read = [f"- `{resource.uri}` of {resource.server}" for resource in await mcp.resources()]
    filled = [f"- `{prompt.qualified_name}` {prompt.description}".rstrip() for prompt in await mcp.prompts()]
    missing = [f"- {failure.server}: {failure.problem}" for failure in await mcp.failures()]
    parts = {"Tools": offered, "Resources": read, "Prompts": filled, "Not there": missing}
    shown = [line for name, lines in parts.items() if lines for line in (f"{name}:", *lines)]
    none = "Your client gave this session no MCP servers." if not len(mcp) else "Its MCP servers offer nothing."
    await turn.say("\n".join(shown) or none)


async def call(turn: Turn, line: str) -> None:
    name, _, given = line.partition(" ")
    arguments = arguments_of(given)
    if not name or arguments is None:
        await turn.say(
            'Which tool, and with which arguments? `/call SERVER/TOOL {"name": "value"}`, or `name=value ...`'
        )
        return
    try:
        result = await turn.session.mcp.call(turn, name, arguments, ask=turn.session.modes.current != "auto")
    except McpServerError as error:
        await turn.say(f"{error}.")
        return
    await turn.say(f"It {'failed' if result.failed else 'gave'}: {result.text or 'no text'}")


def arguments_of(text: str) -> dict[str, Json] | None:
    """Arguments as a JSON object, or as `name=value` with JSON values or plain words; None if they are neither."""
    if text.lstrip().startswith("{"):
        try:
            return cast("dict[str, Json]", json.loads(text))
        except ValueError:
            return None
    pairs = [pair.partition("=") for pair in text.split()]
    return {name: _value(value) for name, _, value in pairs} if all(equals for _, equals, _ in pairs) else None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _arguments(tool: McpTool) -> str:
    properties = cast("dict[str, Json]", tool.input_schema.get("properties") or {})
    return f"({', '.join(properties)})"
