"""The official Python SDK's client, written as its quickstart writes one: a `Client` and `spawn_agent_process`."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import (
    PROTOCOL_VERSION,
    Client,
    ReadTextFileResponse,
    RequestError,
    RequestPermissionResponse,
    spawn_agent_process,
)
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.interfaces import Agent
from acp.schema import AllowedOutcome, ClientCapabilities, FileSystemCapabilities, PermissionOption, TextContentBlock

# The scripts run by path, in interpreters that know nothing of this package.
sys.path.insert(1, f"{sys.path[0]}/../..")
from benchmarks.contract import FILE_TEXT
from benchmarks.drive import Refused, Turn, main


class BenchClient(Client):
    def __init__(self) -> None:
        self.seen = 0
        self.pid = 0
        self.agent: Agent

    async def session_update(self, **_: Any) -> None:
        self.seen += 1

    async def read_text_file(self, **_: Any) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=FILE_TEXT)

    async def request_permission(self, options: list[PermissionOption], **_: Any) -> RequestPermissionResponse:
        chosen = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def open(self) -> str:
        return (await self.agent.new_session(cwd=str(Path.cwd()), mcp_servers=[])).session_id

    async def prompt(self, session: str, text: str) -> Turn:
        try:
            answer = await self.agent.prompt(session_id=session, prompt=[TextContentBlock(type="text", text=text)])
        except RequestError as error:
            raise Refused(error.code, str(error)) from error
        return Turn(answer.stop_reason, answer.field_meta)

    async def cancel(self, session: str) -> None:
        await self.agent.cancel(session_id=session)


@asynccontextmanager
async def connect(agent: Sequence[str]) -> AsyncGenerator[BenchClient]:
    client = BenchClient()
    # Two settings the SDK documents. A spawned agent's reader stops at asyncio's 64 KiB unless told otherwise (its own
    # `run_agent` already takes this limit), and its stderr goes into a pipe that nobody reads.
    streams = {"limit": DEFAULT_STDIO_BUFFER_LIMIT_BYTES, "stderr": None}
    async with spawn_agent_process(client, *agent, transport_kwargs=streams) as (client.agent, process):
        client.pid = process.pid
        await client.agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True)),
        )
        yield client


if __name__ == "__main__":
    sys.exit(main(connect))
