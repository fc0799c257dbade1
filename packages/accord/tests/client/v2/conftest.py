"""A client of ours, and an agent of version 2 that does what the test says, in raw JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import accord
from accord.engine.connection import Limits
from accord.testing import ScriptedPeer
from tests.client.conftest import Scripted, Stage

SESSIONS = {"prompt": {"image": {}}, "mcp": {"stdio": {}}, "delete": {}, "fork": {}, "additionalDirectories": {}}


class StageV2(Stage):
    """Both sides: `remote` is ours, `agent` is played by the test."""

    async def session(self, session_id: str = "s", cwd: str = "/", **result: Any) -> accord.RemoteSession:
        opening = asyncio.create_task(self.remote.new_session(cwd))
        self.agent.answer(await self.agent.expect("session/new"), {"sessionId": session_id, **result})
        return await opening

    def say(self, text: str, session_id: str = "s", **more: Any) -> None:
        content = {"type": "text", "text": text}
        self.update({"sessionUpdate": "agent_message_chunk", "messageId": "a1", "content": content, **more}, session_id)

    def state(self, state: str, session_id: str = "s", **more: Any) -> None:
        self.update({"sessionUpdate": "state_update", "state": state, **more}, session_id)

    def echo(self, message_id: str, text: str, session_id: str = "s") -> None:
        content = [{"type": "text", "text": text}]
        self.update({"sessionUpdate": "user_message", "messageId": message_id, "content": content}, session_id)

    def insert(self, prompt: Any, message_id: str) -> None:
        """Tell the prompt's message, and answer it with the receipt."""
        self.echo(message_id, prompt["params"]["prompt"][0]["text"], prompt["params"]["sessionId"])
        self.agent.answer(prompt, {"messageId": message_id})

    def idle(self, stop_reason: str | None = "end_turn", session_id: str = "s", **more: Any) -> None:
        self.state("idle", session_id, **({} if stop_reason is None else {"stopReason": stop_reason}), **more)

    async def insertion(self, message_id: str) -> Any:
        """Take the next prompt and insert it."""
        prompt = await self.agent.expect("session/prompt")
        self.insert(prompt, message_id)
        return prompt


async def shake_hands_v2(
    agent: ScriptedPeer, sessions: Mapping[str, Any] | None = None, methods: Sequence[Any] = (), **more: Any
) -> dict[str, Any]:
    """What the client said in its first message, which is answered."""
    await agent.open()
    hello = await agent.expect("initialize")
    capabilities = {"session": dict(SESSIONS if sessions is None else sessions), **more}
    info = {"name": "second", "version": "2.0"}
    told = {"protocolVersion": 2, "info": info, "capabilities": capabilities, "authMethods": list(methods)}
    agent.answer(hello, told)
    return hello["params"]


@asynccontextmanager
async def staged_v2(
    client: accord.Client | None = None,
    sessions: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    restart: accord.Restart | bool = False,
    methods: Sequence[Any] = (),
    versions: Sequence[int] = (2, 1),
    unstable: bool = False,
) -> AsyncGenerator[StageV2]:
    target = Scripted()

    async def play() -> ScriptedPeer:
        agent = await target.agents.get()
        await shake_hands_v2(agent, sessions, methods)
        return agent

    playing = asyncio.create_task(play())
    connecting = accord.connect(target, client, limits=limits, restart=restart, versions=versions, unstable=unstable)
    async with connecting as remote:
        stage = StageV2(remote, await playing, target)
        try:
            yield stage
        finally:
            await stage.agent.close()
