"""Our own agent, written as the documentation of the low level writes one."""

import asyncio
import sys
import time
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

from accord import Context, Handlers, Peer, RequestError, StdioTransport, v1

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

handlers = Handlers()
stopped: dict[str, asyncio.Event] = {}


@handlers.on(v1.InitializeRequest)
def initialize(request: v1.InitializeRequest) -> v1.InitializeResponse:
    return v1.InitializeResponse(protocol_version=min(request.protocol_version, 1))


@handlers.on(v1.NewSessionRequest)
def new_session(_: v1.NewSessionRequest) -> v1.NewSessionResponse:
    session_id = v1.SessionId(uuid4().hex)
    stopped[session_id] = asyncio.Event()
    return v1.NewSessionResponse(session_id)


@handlers.on(v1.CancelNotification)
def cancel(notification: v1.CancelNotification) -> None:
    stopped[notification.session_id].set()


@handlers.on(v1.PromptRequest)
async def prompt(request: v1.PromptRequest, context: Context) -> v1.PromptResponse:
    turn = Turn(context.peer, request.session_id)
    first = request.prompt[0]
    sent = first.text if isinstance(first, v1.TextContent) else ""
    command = parse(sent)
    stop_reason: v1.StopReason = "end_turn"
    match command.verb:
        case "stream":
            await turn.stream(command)
        case "tools":
            await turn.tools(command.number(0))
        case "read":
            await turn.read(command.number(0), 1)
        case "conc":
            await turn.read(command.number(0), command.number(1, 1))
        case "big":
            await turn.say(text(command.number(0)))
        case "wait":
            await stopped[request.session_id].wait()
            stopped[request.session_id].clear()
            stop_reason = "cancelled"
        case "permission":
            await turn.ask()
        case "fail":
            raise RequestError(command.number(0), command.rest(1), {"command": "fail"})
        case "throw":
            raise RuntimeError(command.rest(0))
        case _:
            await turn.say(f"echo:{sent}")
    return v1.PromptResponse(stop_reason, meta={"bench": turn.figures.bench()})


class Turn:
    def __init__(self, peer: Peer, session_id: v1.SessionId) -> None:
        self.peer = peer
        self.session_id = session_id
        self.figures = Figures()

    def update(self, update: v1.SessionUpdate) -> Coroutine[Any, Any, None]:
        return self.peer.notify(v1.SessionNotification(self.session_id, update))

    async def say(self, words: str) -> None:
        await self.update(v1.AgentMessageChunk.of(words))
        self.figures.n += 1

    async def stream(self, command: Command) -> None:
        words = text(command.number(1, 40))
        count = command.number(0)
        if "nowait" in command.words:
            await asyncio.gather(*(self.update(v1.AgentMessageChunk.of(words)) for _ in range(count)))
        else:
            for _ in range(count):
                await self.update(v1.AgentMessageChunk.of(words))
        self.figures.n = count

    async def tools(self, count: int) -> None:
        for number in range(count):
            tool_call_id = v1.ToolCallId(f"call_{number}")
            await self.update(
                v1.ToolCall(
                    tool_call_id,
                    "Edit a file",
                    kind="edit",
                    status="in_progress",
                    content=[v1.Diff(FILE, NEW_TEXT, OLD_TEXT)],
                )
            )
            await self.update(v1.ToolCallProgress(tool_call_id, status="completed", content=[v1.Content.of(TOOL_TEXT)]))
            self.figures.n += 2

    async def read(self, count: int, in_flight: int) -> None:
        left = iter(range(count))

        async def one_after_another() -> None:
            for _ in left:
                begun = time.perf_counter()
                await self.peer.request(v1.ReadTextFileRequest(self.session_id, FILE))
                self.figures.times.append(time.perf_counter() - begun)
                self.figures.n += 1

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))

    async def ask(self) -> None:
        answer = await self.peer.request(
            v1.RequestPermissionRequest(
                self.session_id,
                v1.ToolCallUpdate(v1.ToolCallId("call_0"), title="Edit a file"),
                [
                    v1.PermissionOption(v1.PermissionOptionId(ALLOW), "Allow", "allow_once"),
                    v1.PermissionOption(v1.PermissionOptionId(REJECT), "Reject", "reject_once"),
                ],
            )
        )
        match answer.outcome:
            case v1.SelectedPermissionOutcome(option_id=chosen):
                await self.say(f"selected {chosen}")
            case _:
                await self.say("cancelled")


async def main() -> None:
    async with Peer(StdioTransport.standard(), handlers, role="agent") as peer:
        await peer.connection.closed()


if __name__ == "__main__":
    sys.exit(run(main, uvloop="--uvloop" in sys.argv))
