"""An agent of the official SDK, which is run on that SDK and on ours: python sdk_agent.py (theirs|ours)."""

import asyncio
import sys

if sys.argv[1] == "ours":
    from accord.compat.acp.aliases import install

    install()

import acp
from acp.schema import AgentCapabilities, PermissionOption


class Agent(acp.Agent):
    def __init__(self):
        self.cancelled = asyncio.Event()

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        return acp.InitializeResponse(
            protocol_version=protocol_version, agent_capabilities=AgentCapabilities(load_session=False)
        )

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        return acp.NewSessionResponse(session_id=f"in {cwd}, {kwargs}")

    async def prompt(self, session_id, prompt, **kwargs):
        return await getattr(self, prompt[0].text)(session_id)

    async def cancel(self, session_id, **kwargs):
        self.cancelled.set()

    async def ext_method(self, method, params):
        return {"method": method, "params": params}

    async def stream(self, session_id):
        for number in range(200):
            await self.client.session_update(session_id, acp.update_agent_message_text(f"{number} "))
        return acp.PromptResponse(stop_reason="end_turn")

    async def ask(self, session_id):
        call = acp.start_tool_call("1", "Write", kind="edit", content=[acp.tool_diff_content("/a", "new", "old")])
        await self.client.session_update(session_id, call)
        options = [PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
        tool_call = acp.update_tool_call("1", title="Write")
        answer = await self.client.request_permission(session_id=session_id, tool_call=tool_call, options=options)
        read = await self.client.read_text_file(session_id=session_id, path="/a", limit=3)
        await self.client.write_text_file(session_id=session_id, path="/b", content=read.content)
        done = acp.update_tool_call("1", status="completed", raw_output={"option": answer.outcome.option_id})
        await self.client.session_update(session_id, done)
        return acp.PromptResponse(stop_reason="end_turn")

    async def wait(self, session_id):
        await self.client.session_update(session_id, acp.update_agent_thought_text("waiting"))
        await self.cancelled.wait()
        return acp.PromptResponse(stop_reason="cancelled")

    async def fail(self, session_id):
        raise ValueError("the model is gone")

    async def refuse(self, session_id):
        raise acp.RequestError.auth_required({"method": "key"})


asyncio.run(acp.run_agent(Agent()))
