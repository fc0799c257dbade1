"""All tools of a turn: ours, as far as the mode allows them, and those of the session's MCP servers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from accord import AccordError, Turn, v1
from accord.mcp import McpTool
from accord_tools.coder.conversation import Call, Conversation, Image, Result
from accord_tools.coder.models.model import ToolSpec
from accord_tools.coder.modes import Mode
from accord_tools.coder.toolbox.commands import COMMANDS
from accord_tools.coder.toolbox.definition import Given, ToolDefinition, ToolUse
from accord_tools.coder.toolbox.files import FILES
from accord_tools.coder.toolbox.planning import PLANNING
from accord_tools.coder.toolbox.searching import SEARCHING

OURS: Sequence[ToolDefinition] = (*FILES, *SEARCHING, *COMMANDS, *PLANNING)

LONGEST_NAME = 64
"""Characters of a tool's name that all providers take."""


class ToolSet:
    """The tools of one turn."""

    def __init__(
        self, turn: Turn[Conversation], mode: Mode, more: Sequence[ToolDefinition] = (), mcp: Sequence[McpTool] = ()
    ) -> None:
        self._turn = turn
        self._use = ToolUse(turn, mode)
        ours = [tool for tool in (*OURS, *more) if tool.changes == "nothing" or not mode.only_reads]
        self._ours = {tool.name: tool for tool in ours}
        self._mcp = _named(tool for tool in mcp if tool.kind == "read" or not mode.only_reads)

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools as a model knows them."""
        theirs = [ToolSpec(name, tool.description, dict(tool.input_schema)) for name, tool in self._mcp.items()]
        return [*(tool.spec for tool in self._ours.values()), *theirs]

    async def use(self, call: Call) -> Result:
        """Do what the model wants; what goes wrong is told to the model, which may try something else."""
        try:
            given = await self._used(call)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            given = Given(f"The arguments do not fit: {error}", failed=True)
        except (AccordError, OSError, ValueError, TimeoutError) as error:
            given = Given(f"It failed: {error or type(error).__name__}", failed=True)
        return Result(call.id, given.text, given.failed, given.images)

    async def _used(self, call: Call) -> Given:
        if tool := self._ours.get(call.name):
            return await tool.run(self._use, msgspec.json.decode(call.arguments or "{}", type=tool.arguments))
        if theirs := self._mcp.get(call.name):
            arguments = msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
            asks = self._use.asks_before("anything") and theirs.kind != "read"
            result = await self._turn.session.mcp.call(self._turn, theirs, arguments, ask=asks)
            images = [Image(it.data, it.mime_type) for it in result.content if isinstance(it, v1.ImageContent)]
            return Given(result.text or "(nothing)", result.failed, images)
        known = ", ".join([*self._ours, *self._mcp])
        return Given(f"There is no tool {call.name!r} in this mode; there are: {known}", failed=True)


def _named(tools: Iterable[McpTool]) -> dict[str, McpTool]:
    """Tools of MCP servers by names that providers allow, each once."""
    named: dict[str, McpTool] = {}
    for tool in tools:
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", f"{tool.server}__{tool.name}")[:LONGEST_NAME]
        name, number = plain, 1
        while name in named:
            number += 1
            name = f"{plain[: LONGEST_NAME - 4]}_{number}"
        named[name] = tool
    return named
