"""The Claude Agent SDK (extra `claude-agent-sdk`): its messages as updates, its permission callback as questions."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Unpack

import claude_agent_sdk as sdk
from claude_agent_sdk.types import StreamEvent
from msgspec import Struct

from accord import AccordError, Agent, RequestError, Turn, v1
from accord_adapters.adapted_agent import Attachment, ServeOptions, adapted_agent, check_served, parts_of
from accord_adapters.narration import REFUSED, Narration
from accord_adapters.remote_tool import Callee, RemoteTool, ToolOptions
from accord_tools.coder.model import shown

# Tools in `allowed_tools` run without a question, which their author intends: no warning for each turn.
warnings.filterwarnings("ignore", category=sdk.CanUseToolShadowedWarning)


INTERRUPT_WITHIN = 2.0
"""Seconds that the program has to stop its work, before it is ended."""

SHOWN_ERRORS = (sdk.ClaudeSDKError,)
"""Errors of the SDK's program; the provider's text is in the result of a turn."""

STOPS = {"error_max_turns": "max_turn_requests"}
"""Results of the SDK that are stop reasons of the protocol."""


class ClaudeSession(Struct):
    """The session in which Claude has the conversation; stored with ours. Claude stores its transcript itself."""

    id: str | None = None
    cost: float = 0.0


def serve(
    claude_options: sdk.ClaudeAgentOptions | None = None, **options: Unpack[ServeOptions]
) -> Agent[ClaudeSession]:
    """Serve Claude, with these options of the Claude Agent SDK, as an `accord.Agent`.

    Claude works in the session's folder. Where `claude_options` has no `can_use_tool`, the user is asked for
    permission. Each turn starts the SDK's program, which resumes its own session. The other options are those of
    `ServeOptions`.
    """
    given = sdk.ClaudeAgentOptions() if claude_options is None else claude_options
    check_served("serve(claude_options)", "ClaudeAgentOptions", given, sdk.ClaudeAgentOptions)

    async def work(turn: Turn[ClaudeSession], narration: Narration) -> str | None:
        return await _ClaudeRun(given, turn, narration).answer()

    return adapted_agent(work, ClaudeSession, "claude", ["image", "embedded"], options, shown_errors=SHOWN_ERRORS)


def tool(agent: Callee, **options: Unpack[ToolOptions]) -> sdk.SdkMcpTool[Any]:
    """An ACP agent as a tool for Claude: `create_sdk_mcp_server("agents", tools=[tool(accord.connect("gemini"))])`."""
    remote = RemoteTool(agent, **options)

    async def ask(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            text, failed = await remote(str(arguments["task"])), False
        except AccordError as error:
            text, failed = str(error), True
        return {"content": [{"type": "text", "text": text}], "is_error": failed}

    return sdk.tool(remote.name, remote.description, {"task": str})(ask)


class _ClaudeRun:
    """The work on one prompt: the SDK's program is started, and ended with the turn."""

    def __init__(self, options: sdk.ClaudeAgentOptions, turn: Turn[ClaudeSession], narration: Narration) -> None:
        self._turn = turn
        self._state = turn.session.state
        self._narration = narration
        self._read = 0
        self._options = replace(
            options,
            cwd=options.cwd or turn.cwd,
            resume=self._state.id or options.resume,
            can_use_tool=options.can_use_tool or self._may_use,
            include_partial_messages=True,
        )

    async def answer(self) -> str | None:
        stop = None
        async with sdk.ClaudeSDKClient(self._options) as client:
            try:
                await client.query(_messages(self._turn.prompt))
                async for message in client.receive_response():
                    if isinstance(message, sdk.ResultMessage):
                        stop = await self._ended(message)
                    else:
                        await self._tell(message)
            except asyncio.CancelledError:
                # Or the program takes the end of our tools for a failure, and asks the model about it.
                with suppress(sdk.ClaudeSDKError, TimeoutError):
                    async with asyncio.timeout(INTERRUPT_WITHIN):
                        await client.interrupt()
                raise
        return stop

    async def _tell(self, message: sdk.Message) -> None:
        match message:
            case sdk.SystemMessage(subtype="init", data=data):
                self._state.id = data.get("session_id")
                await self._narration.keep()
            case StreamEvent(event=event, parent_tool_use_id=None):
                await self._tell_event(event)
            case sdk.AssistantMessage(content=blocks):
                for block in blocks:
                    if isinstance(block, sdk.ToolUseBlock):
                        await self._narration.tool_begins(block.id, _plain_name(block.name), block.input)
            case sdk.UserMessage(content=list() as blocks):
                for block in blocks:
                    if isinstance(block, sdk.ToolResultBlock):
                        await self._narration.tool_ends(
                            block.tool_use_id, _text_of(block.content), failed=bool(block.is_error)
                        )
            case _:
                pass

    async def _tell_event(self, event: dict[str, Any]) -> None:
        """Show an event of Anthropic's messages, as the provider streams them."""
        match event:
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}:
                await self._narration.say(text)
            case {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": text}}:
                await self._narration.think(text)
            case {"type": "message_start", "message": {"usage": usage}}:
                kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
                self._read = sum(usage.get(kind) or 0 for kind in kinds)
            case {"type": "message_delta", "usage": {"output_tokens": written}}:
                await self._narration.used(self._read, written)
            case _:
                pass

    async def _ended(self, result: sdk.ResultMessage) -> str | None:
        self._state.id = result.session_id
        if result.total_cost_usd:
            self._state.cost += result.total_cost_usd
            await self._narration.costs(self._state.cost)
        if result.subtype in STOPS:
            return STOPS[result.subtype]
        if result.is_error:
            raise RequestError.internal(shown(result.result or result.subtype))
        return result.stop_reason if result.stop_reason in ("refusal", "max_tokens") else None

    async def _may_use(
        self, name: str, arguments: dict[str, Any], context: sdk.ToolPermissionContext
    ) -> sdk.PermissionResultAllow | sdk.PermissionResultDeny:
        if await self._narration.ask(context.tool_use_id or name, _plain_name(name), arguments):
            return sdk.PermissionResultAllow(updated_input=arguments)
        return sdk.PermissionResultDeny(message=REFUSED)


def _plain_name(name: str) -> str:
    """The name of a tool without that of its MCP server: `mcp__server__add` is `add`."""
    return name.split("__", 2)[2] if name.startswith("mcp__") and name.count("__") > 1 else name


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if part.get("type") == "text")
    return content or ""


async def _messages(prompt: Sequence[v1.ContentBlock]) -> AsyncGenerator[dict[str, Any]]:
    """A prompt as the one message of a stream."""
    content = [_block(part) for part in parts_of(prompt)]
    yield {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}


def _block(part: str | Attachment) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = "image" if part.is_image else "document" if part.mime_type == "application/pdf" else None
    if kind is None:
        return {"type": "text", "text": part.note}
    return {"type": kind, "source": {"type": "base64", "media_type": part.mime_type, "data": part.data}}
