"""The official Python SDK on its own engine and on ours, and the same in Accord's own style: what a turn costs.

python -m benchmarks.official_sdk [ROUNDS]        needs the package agent-client-protocol beside ours

A process holds a client and an agent, which talk over a socket (Accord's own over its memory transport), and counts its
processor time for turns of ten updates. A round runs the three after one another, so that what else the machine does
hits each of them.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

WAYS = ("official", "official on ours", "Accord")
TURNS, UPDATES = 1_000, 10
ROOT = Path(__file__).resolve().parents[1]


async def official() -> float:
    """Microseconds of a turn with the SDK's classes, on whichever engine they are."""
    import acp
    from acp.agent.connection import AgentSideConnection
    from acp.schema import AgentMessageChunk, TextContentBlock

    class Agent:
        def on_connect(self, conn: Any) -> None:
            self.client = conn

        async def initialize(self, protocol_version: int, **_: Any) -> Any:
            return acp.InitializeResponse(protocol_version=protocol_version)

        async def new_session(self, **_: Any) -> Any:
            return acp.NewSessionResponse(session_id="s")

        async def prompt(self, session_id: str, **_: Any) -> Any:
            for _number in range(UPDATES):
                text = TextContentBlock(type="text", text="x" * 40)
                chunk = AgentMessageChunk(session_update="agent_message_chunk", content=text)
                await self.client.session_update(session_id, chunk)
            return acp.PromptResponse(stop_reason="end_turn")

    class Client:
        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
            pass

    (reader, writer), (far_reader, far_writer) = [
        await asyncio.open_connection(sock=end) for end in socket.socketpair()
    ]
    agent: Any = Agent()
    client: Any = Client()
    async with AgentSideConnection(agent, far_writer, far_reader), acp.connect_to_agent(client, writer, reader) as far:
        await far.initialize(protocol_version=1)
        await far.new_session(cwd="/", mcp_servers=[])

        async def turn() -> None:
            await far.prompt(session_id="s", prompt=[TextContentBlock(type="text", text="go")])

        spent = await timed(turn)
    for end in (writer, far_writer):
        end.close()
    return spent


async def own() -> float:
    """Microseconds of the same turn with `accord.Agent` and `accord.connect`."""
    import accord

    agent = accord.Agent("bench")

    @agent.on_prompt
    async def answer(turn: accord.Turn) -> None:
        for _ in range(UPDATES):
            await turn.say("x" * 40)

    async with accord.connect(agent, accord.Client("bench")) as remote:
        session = await remote.new_session("/")

        async def turn() -> None:
            await session.prompt("go")

        return await timed(turn)


async def timed(turn: Any) -> float:
    for _ in range(TURNS // 5):
        await turn()
    before = time.process_time()
    for _ in range(TURNS):
        await turn()
    return (time.process_time() - before) / TURNS * 1e6


def measured(way: str) -> float:
    """The figure of one way, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.official_sdk", "--child", way]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)


def main(arguments: list[str]) -> None:
    """Print the medians of so many rounds."""
    if arguments[:1] == ["--child"]:
        if arguments[1] == "official on ours":
            from accord_adapters import official_sdk

            official_sdk.install()
        print(asyncio.run(own() if arguments[1] == "Accord" else official()))
        return
    rounds = [[measured(way) for way in WAYS] for _ in range(int(arguments[0]) if arguments else 5)]
    print(f"| µs of processor time | {' | '.join(WAYS)} |\n|---|---|---|---|")
    figures = " | ".join(f"{median(it):,.0f}" for it in zip(*rounds, strict=True))
    print(f"| a turn of {UPDATES} updates, both ends | {figures} |")


if __name__ == "__main__":
    main(sys.argv[1:])
