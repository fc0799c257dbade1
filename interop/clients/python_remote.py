"""The official Python SDK's client over HTTP or WebSocket. Prints what it heard as JSON.

python python_remote.py URL
"""

import asyncio
import json
import sys
from typing import Any

from acp import Client, connect_to_agent, text_block
from acp.http import create_http_stream
from acp.schema import AllowedOutcome, RequestPermissionResponse
from acp.ws import create_websocket_stream


class RemoteClient(Client):
    def __init__(self) -> None:
        self.heard: dict[str, str] = {}
        self.changed = asyncio.Condition()

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            async with self.changed:
                self.heard[session_id] = self.heard.get(session_id, "") + update.content.text
                self.changed.notify_all()

    async def request_permission(self, options: Any, **_: Any) -> RequestPermissionResponse:
        allow = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=allow.option_id))


async def main(url: str) -> None:
    transport = await create_websocket_stream(url) if url.startswith("ws") else create_http_stream(url)
    client = RemoteClient()
    agent = connect_to_agent(client, transport)
    await agent.initialize(protocol_version=1)
    one, two = [(await agent.new_session(cwd="/project", mcp_servers=[])).session_id for _ in range(2)]
    stops = await asyncio.gather(*(agent.prompt(it, [text_block("count 200")]) for it in (one, two)))
    stops.append(await agent.prompt(one, [text_block("ask")]))
    said = [client.heard[one], client.heard[two]]
    client.heard[one] = ""
    await agent.load_session(cwd="/project", session_id=one, mcp_servers=[])
    async with client.changed:  # the answer and the updates come over two streams, which it does not put in order
        await client.changed.wait_for(lambda: len(client.heard[one]) >= len(said[0]))
    told = {"stops": [it.stop_reason for it in stops], "said": said, "replayed": client.heard[one]}
    print(json.dumps(told), flush=True)
    await agent.close()


asyncio.run(main(sys.argv[1]))
