"""The official Python SDK's agent, written as its quickstart writes one: an `Agent` subclass and `run_agent`.

Updates are built from the classes of the schema, which each release has; the helpers around them went with 1.0.
"""

import asyncio
import sys
import time
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

from acp import Agent, InitializeResponse, NewSessionResponse, PromptResponse, RequestError, run_agent
from acp.interfaces import Client
from acp.schema import (
    AgentMessageChunk,
    ContentToolCallContent,
    FileEditToolCallContent,
    PermissionOption,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)

# The scripts run by path, in interpreters that know nothing of this package.
sys.path.insert(1, f"{sys.path[0]}/../..")
from benchmarks.contract import (
    ALLOW,
    FILE,
    NEW_TEXT,
    OLD_TEXT,
    REJECT,
    TOOL_TEXT,
    Command,
    Figures,
    parse,
    run,
    text,
)


def text_block(words: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=words)


def chunk(words: str) -> AgentMessageChunk:
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(words))


class BenchAgent(Agent):
    _client: Client

    def __init__(self) -> None:
        self._sessions: dict[str, asyncio.Event] = {}

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, **_: Any) -> NewSessionResponse:
        session_id = uuid4().hex
        self._sessions[session_id] = asyncio.Event()
        return NewSessionResponse(session_id=session_id)

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._sessions[session_id].set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        figures = Figures()
        sent = prompt[0].text
        command = parse(sent)
        stop_reason = "end_turn"
        match command.verb:
            case "stream":
                await self._stream(session_id, command, figures)
            case "tools":
                await self._tools(session_id, command.number(0), figures)
            case "read":
                await self._read(session_id, command.number(0), 1, figures)
            case "conc":
                await self._read(session_id, command.number(0), command.number(1, 1), figures)
            case "big":
                await self._say(session_id, text(command.number(0)), figures)
            case "wait":
                stopped = self._sessions[session_id]
                await stopped.wait()
                stopped.clear()
                stop_reason = "cancelled"
            case "permission":
                await self._ask(session_id, figures)
            case "fail":
                raise RequestError(command.number(0), command.rest(1), {"command": "fail"})
            case "throw":
                raise RuntimeError(command.rest(0))
            case _:
                await self._say(session_id, f"echo:{sent}", figures)
        return PromptResponse(stop_reason=stop_reason, field_meta={"bench": figures.bench()})

    async def _say(self, session_id: str, words: str, figures: Figures) -> None:
        await self._client.session_update(session_id=session_id, update=chunk(words))
        figures.n += 1

    async def _stream(self, session_id: str, command: Command, figures: Figures) -> None:
        words = text(command.number(1, 40))

        def send() -> Coroutine[Any, Any, None]:
            return self._client.session_update(session_id=session_id, update=chunk(words))

        count = command.number(0)
        if "nowait" in command.words:
            await asyncio.gather(*(send() for _ in range(count)))
        else:
            for _ in range(count):
                await send()
        figures.n = count

    async def _tools(self, session_id: str, count: int, figures: Figures) -> None:
        for number in range(count):
            tool_call_id = f"call_{number}"
            begun = ToolCallStart(
                session_update="tool_call",
                tool_call_id=tool_call_id,
                title="Edit a file",
                kind="edit",
                status="in_progress",
                content=[FileEditToolCallContent(type="diff", path=FILE, new_text=NEW_TEXT, old_text=OLD_TEXT)],
            )
            await self._client.session_update(session_id=session_id, update=begun)
            done = ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=tool_call_id,
                status="completed",
                content=[ContentToolCallContent(type="content", content=text_block(TOOL_TEXT))],
            )
            await self._client.session_update(session_id=session_id, update=done)
            figures.n += 2

    async def _read(self, session_id: str, count: int, in_flight: int, figures: Figures) -> None:
        left = iter(range(count))

        async def one_after_another() -> None:
            for _ in left:
                begun = time.perf_counter()
                await self._client.read_text_file(session_id=session_id, path=FILE)
                figures.times.append(time.perf_counter() - begun)
                figures.n += 1

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))

    async def _ask(self, session_id: str, figures: Figures) -> None:
        answer = await self._client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id="call_0", title="Edit a file"),
            options=[
                PermissionOption(option_id=ALLOW, name="Allow", kind="allow_once"),
                PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"),
            ],
        )
        outcome = answer.outcome
        chosen = f" {outcome.option_id}" if outcome.outcome == "selected" else ""
        await self._say(session_id, f"{outcome.outcome}{chosen}", figures)


if __name__ == "__main__":
    sys.exit(run(lambda: run_agent(BenchAgent()), uvloop="--uvloop" in sys.argv))
