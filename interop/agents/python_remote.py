"""The official Python SDK's agent behind its own ASGI server, over HTTP and WebSocket.

Prints its URL, and ends with its input.
"""

import asyncio
import os
import socket
import sys
import uuid
from typing import Any

from acp import Agent, update_agent_message_text
from acp.http.asgi import create_asgi_app
from acp.schema import (
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)
from hypercorn.asyncio import serve
from hypercorn.config import Config


class RemoteAgent(Agent):
    _client: Any

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=1)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid.uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        verb, _, count = prompt[0].text.partition(" ")
        if verb == "ask":
            option = PermissionOption(option_id="yes", name="Yes", kind="allow_once")
            answer = await self._client.request_permission(
                session_id=session_id,
                tool_call=ToolCallUpdate(tool_call_id="call", title="Ask"),
                options=[option],
            )
            await self.say(session_id, "allowed" if answer.outcome.outcome == "selected" else "refused")
        for number in range(int(count) if verb == "count" else 0):
            await self.say(session_id, f"{number} ")
        return PromptResponse(stop_reason="end_turn")

    async def say(self, session_id: str, text: str) -> None:
        await self._client.session_update(session_id=session_id, update=update_agent_message_text(text))


def agent_for(connection: Any) -> RemoteAgent:
    agent = RemoteAgent()
    agent.on_connect(connection)
    return agent


def end_with_the_input() -> None:
    sys.stdin.read()
    os._exit(0)  # hypercorn would wait for its clients


async def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    config = Config()
    config.errorlog = None
    config.bind = [f"fd://{listening.fileno()}"]
    loop = asyncio.get_running_loop()
    app: Any = create_asgi_app(agent_for)
    loop.run_in_executor(None, end_with_the_input)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/acp", flush=True)
    await serve(app, config, shutdown_trigger=asyncio.Event().wait)


if __name__ == "__main__":
    asyncio.run(main())
