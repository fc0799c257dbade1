"""A client of ours, and an agent that does what the test says, in raw JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import accord
from accord.engine.connection import Limits
from accord.testing import ScriptedPeer
from accord.transports import Target, Transport
from accord.transports.memory_transport import pair
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401


class Scripted(Target):
    """Each link leads to a new scripted agent, which `agents` gives in order."""

    name = "scripted"

    def __init__(self) -> None:
        self.agents: asyncio.Queue[ScriptedPeer] = asyncio.Queue()

    def dial(self) -> Transport:
        here, there = pair()
        self.agents.put_nowait(ScriptedPeer(there, deadline=120))
        return here


class Stage:
    """Both sides: `remote` is ours, `agent` is played by the test."""

    def __init__(self, remote: accord.RemoteAgent, agent: ScriptedPeer, target: Scripted) -> None:
        self.remote = remote
        self.agent = agent
        self.target = target

    async def session(self, session_id: str = "s", cwd: str = "/") -> accord.RemoteSession:
        opening = asyncio.create_task(self.remote.new_session(cwd))
        self.agent.answer(await self.agent.expect("session/new"), {"sessionId": session_id})
        return await opening

    def say(self, text: str, session_id: str = "s", **more: Any) -> None:
        self.update(
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}, session_id
        )

    def update(self, update: Mapping[str, Any], session_id: str = "s") -> None:
        self.agent.tell("session/update", {"sessionId": session_id, "update": update})

    def end(self, prompt: Any, stop_reason: str = "end_turn") -> None:
        self.agent.answer(prompt, {"stopReason": stop_reason})


async def shake_hands(
    agent: ScriptedPeer, capabilities: Mapping[str, Any] | None = None, methods: Sequence[Any] = ()
) -> dict[str, Any]:
    """What the client said in its first message, which is answered."""
    await agent.open()
    hello = await agent.expect("initialize")
    said = {"agentCapabilities": dict(capabilities or {}), "authMethods": list(methods)}
    agent.answer(hello, {"protocolVersion": 1, **said})
    return hello["params"]


@asynccontextmanager
async def staged(
    client: accord.Client | None = None,
    capabilities: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    restart: accord.Restart | bool = False,
    methods: Sequence[Any] = (),
    seen: list[dict[str, Any]] | None = None,
    versions: Sequence[int] = (1,),
) -> AsyncGenerator[Stage]:
    target = Scripted()

    async def play() -> ScriptedPeer:
        agent = await target.agents.get()
        hello = await shake_hands(agent, capabilities, methods)
        if seen is not None:
            seen.append(hello)
        return agent

    playing = asyncio.create_task(play())
    async with accord.connect(target, client, limits=limits, restart=restart, versions=versions) as remote:
        stage = Stage(remote, await playing, target)
        try:
            yield stage
        finally:
            await stage.agent.close()
