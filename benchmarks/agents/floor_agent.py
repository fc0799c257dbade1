"""The floor's agent; `benchmarks/floor.py` says what the floor is."""

import asyncio
import sys
import time
from collections.abc import Iterable

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
    Json,
    parse,
    run,
    text,
)
from benchmarks.floor import Content, Diff, Error, Message, Params, Pipe, Text, Update


def update(session: str, what: Update) -> Message:
    return Message("2.0", None, "session/update", Params(session, what))


def chunk(session: str, words: str) -> Message:
    return update(session, Update("agent_message_chunk", Text(words)))


def tool_calls(session: str, count: int) -> Iterable[Message]:
    for number in range(count):
        name = f"call_{number}"
        diff = Diff(FILE, NEW_TEXT, OLD_TEXT)
        yield update(session, Update("tool_call", [diff], name, "Edit a file", "edit", "in_progress"))
        done = Content(Text(TOOL_TEXT))
        yield update(session, Update("tool_call_update", [done], name, status="completed"))


class FloorAgent:
    def __init__(self) -> None:
        self.pipe = Pipe(self._called, 0, 1)
        self._stopped: dict[str, asyncio.Event] = {}
        self._turns = set[asyncio.Task[None]]()

    def _called(self, message: Message) -> None:
        params = message.params or Params()
        match message.method:
            case "session/prompt":
                turn = asyncio.ensure_future(self._turn(message.id, params))
                self._turns.add(turn)
                turn.add_done_callback(self._turns.discard)
            case "session/cancel":
                self._stopped[params.session_id or ""].set()
            case "session/new":
                session = f"session_{len(self._stopped)}"
                self._stopped[session] = asyncio.Event()
                self._answer(message.id, {"sessionId": session})
            case _:
                self._answer(message.id, {"protocolVersion": 1, "agentCapabilities": {}})

    def _answer(self, number: int | str | None, result: dict[str, Json] | None, error: Error | None = None) -> None:
        self.pipe.write(Message("2.0", number, result=result, error=error))

    async def _send(self, messages: Iterable[Message], figures: Figures) -> None:
        put, flush, room = self.pipe.put, self.pipe.flush, self.pipe.room
        for message in messages:
            figures.n += 1
            if put(message):
                flush()
                await room.wait()

    async def _turn(self, number: int | str | None, params: Params) -> None:
        figures = Figures()
        sent, session = (params.prompt or [Text("")])[0].text, params.session_id or ""
        command = parse(sent)
        stop_reason = "end_turn"
        match command.verb:
            case "stream":
                words = text(command.number(1, 40))
                await self._send((chunk(session, words) for _ in range(command.number(0))), figures)
            case "tools":
                await self._send(tool_calls(session, command.number(0)), figures)
            case "read" | "conc":
                await self._read(session, command, figures)
            case "big":
                await self._send([chunk(session, text(command.number(0)))], figures)
            case "wait":
                await self._stopped[session].wait()
                self._stopped[session].clear()
                stop_reason = "cancelled"
            case "permission":
                await self._permission(session, figures)
            case "fail":
                self._answer(number, None, Error(command.number(0), command.rest(1), {"command": "fail"}))
                return
            case "throw":
                self._answer(number, None, Error(-32603, "Internal error"))
                return
            case _:
                await self._send([chunk(session, f"echo:{sent}")], figures)
        self._answer(number, {"stopReason": stop_reason, "_meta": {"bench": figures.bench()}})

    async def _read(self, session: str, command: Command, figures: Figures) -> None:
        left = iter(range(command.number(0)))

        async def one_after_another() -> None:
            for _ in left:
                begun = time.perf_counter()
                await self.pipe.ask("fs/read_text_file", Params(session, path=FILE))
                figures.times.append(time.perf_counter() - begun)
                figures.n += 1

        await asyncio.gather(*(one_after_another() for _ in range(command.number(1, 1))))

    async def _permission(self, session: str, figures: Figures) -> None:
        options = [
            {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
            {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
        ]
        call = {"toolCallId": "call_0", "title": "Edit a file"}
        answer = await self.pipe.ask("session/request_permission", Params(session, options=options, tool_call=call))
        outcome = (answer.result or {})["outcome"]
        words = f"{outcome['outcome']} {outcome.get('optionId', '')}".strip()
        await self._send([chunk(session, words)], figures)


async def main() -> None:
    await FloorAgent().pipe.ended.wait()


if __name__ == "__main__":
    sys.exit(run(main, uvloop="--uvloop" in sys.argv))
