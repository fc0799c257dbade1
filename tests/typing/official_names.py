"""An agent and a client with the official SDK's names: strict checkers see its models, and errors at marked lines."""

# ruff: noqa: ARG002  the parameters are those of the interface

from __future__ import annotations

from typing import Any, assert_type

from accord.compat import acp
from accord.compat.acp import schema


class Agent(acp.Agent):
    """Has the methods with the parameters that the protocol gives them."""

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **kwargs: Any,
    ) -> acp.NewSessionResponse:
        modes = schema.SessionModeState(current_mode_id="ask", available_modes=[])
        return acp.NewSessionResponse(session_id=cwd, modes=modes)

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> acp.PromptResponse:
        return acp.PromptResponse(stop_reason="finished")  # error


chunk = schema.AgentMessageChunk(content=acp.text_block("hello"))
call = acp.start_tool_call("1", "Read", kind="read", locations=[schema.ToolCallLocation(path="/a", line=1)])
assert_type(call.title, str)
assert_type(call.status, schema.ToolCallStatus | None)
assert_type(call.model_copy(update={"title": "Write"}), schema.ToolCallStart)
schema.ToolCallLocation(line=1)  # error
schema.TextContentBlock(text=5)  # error
schema.TextContentBlock(txt="hello")  # error
print(chunk.kontent)  # error


def shown(update: schema.SessionNotification) -> str:
    told = update.update
    if isinstance(told, schema.AgentMessageChunk) and isinstance(told.content, schema.TextContentBlock):
        return told.content.text
    return told.session_update
