"""An agent of the official SDK that stands on its feet in every release of it: `python sdk_agent.py`."""

import asyncio

import acp
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    PermissionOption,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)


class Agent:
    """Does what the prompt's text names."""

    def __init__(self):
        self.cancelled = asyncio.Event()
        self.stopped = asyncio.Event()

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        return acp.NewSessionResponse(session_id=f"in {cwd}, {kwargs}")

    async def prompt(self, session_id, prompt, **kwargs):
        return await getattr(self, prompt[0].text)(session_id)

    async def cancel(self, session_id, **kwargs):
        self.cancelled.set()

    async def ext_method(self, method, params):
        return {"method": method, "params": params}

    async def say(self, session_id, text, kind=AgentMessageChunk, name="agent_message_chunk"):
        chunk = kind(session_update=name, content=TextContentBlock(type="text", text=text))
        await self.client.session_update(session_id, chunk)

    async def stream(self, session_id):
        print("a stray line")
        for number in range(200):
            await self.say(session_id, f"{number} ")
        return acp.PromptResponse(stop_reason="end_turn")

    async def ask(self, session_id):
        start = ToolCallStart(session_update="tool_call", tool_call_id="1", title="Write", kind="edit")
        await self.client.session_update(session_id, start)
        options = [PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
        call = ToolCallUpdate(tool_call_id="1", title="Write")
        answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=options)
        read = await self.client.read_text_file(session_id=session_id, path="/a", limit=3)
        await self.client.write_text_file(session_id=session_id, path="/b", content=read.content)
        output = {"option": answer.outcome.option_id}
        done = ToolCallProgress(
            session_update="tool_call_update", tool_call_id="1", status="completed", raw_output=output
        )
        await self.client.session_update(session_id, done)
        return acp.PromptResponse(stop_reason="end_turn")

    async def wait(self, session_id):
        await self.say(session_id, "waiting", AgentThoughtChunk, "agent_thought_chunk")
        try:
            await self.cancelled.wait()
        finally:
            self.stopped.set()
        return acp.PromptResponse(stop_reason="cancelled")

    async def fail(self, session_id):
        raise ValueError("the model is gone")

    async def refuse(self, session_id):
        raise acp.RequestError.auth_required({"method": "key"})


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Agent()))
