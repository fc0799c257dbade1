"""`RecordedAgent`: the agent of a trace, which answers as it did then.

    await RecordedAgent("wire.jsonl").serve(transport)

A client's request gets what the most similar recorded request got: the same updates, the same requests to the client,
the same answer. An update belongs to the request of its session that was open when it was sent; one that came later
follows the answer. A prompt that the client cancels ends as cancelled. For a method that the trace does not have, the
answer is an error.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from accord.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, AccordError, ConnectionClosed
from accord.extras import own_command
from accord.running import run_until_the_end
from accord.testing.line import Line
from accord.testing.recorded import Names, Said, Source, best, conversation
from accord.trace import TraceEvent
from accord.trace.meaning import body_of
from accord.transports.stdio_transport import StdioTransport
from accord.transports.transport_interface import Transport


class Part(msgspec.Struct, eq=False):
    """What a recorded agent did for one request."""

    request: Said
    steps: list[Said] = []
    """Its notifications and requests, and the client's answers to these, until its own answer."""
    after: list[Said] = []
    """What it sent after its answer, and before the client's next request."""


class RecordedAgent:
    """The agent of a trace. `speed` 1 keeps the recorded pauses, 2 halves them; by default it does not pause."""

    def __init__(self, source: Source | Sequence[TraceEvent], *, speed: float | None = None) -> None:
        if speed is not None and speed <= 0:
            raise ValueError(f"speed must be positive, got {speed}")
        self.speed = speed
        """How fast recorded pauses are played; None leaves them out."""
        self.parts = _parts(conversation(source))
        """What the agent did for each request, in the order of the requests."""

    async def serve(self, transport: Transport) -> None:
        """Answer a client until it closes the connection."""
        playing = _Playing(self, transport)
        await playing.serve()


def recorded_agent_command(path: Source) -> list[str]:
    """The command that plays the agent of a trace in a process, for `accord.connect`."""
    return own_command("accord.testing", str(path))


def main(path: str) -> int:
    """Run the command that `recorded_agent_command` returns."""

    try:
        agent = RecordedAgent(path)
    except (AccordError, OSError) as error:
        raise SystemExit(f"cannot play the trace {path}: {error}") from None

    async def serve() -> None:
        await agent.serve(StdioTransport.standard())

    run_until_the_end(serve(), "the recorded agent", uvloop=None)
    return 0


def _parts(said: Sequence[Said]) -> list[Part]:
    parts: list[Part] = []
    running: list[Part] = []
    owners: dict[int, Part] = {}
    for it in said:
        if it.by == "client" and it.kind == "request":
            parts.append(Part(it))
            running.append(parts[-1])
        elif it.by == "agent" and it.kind == "answer":
            running = [part for part in running if part.request is not it.request]
        elif it.by == "client" and it.request is not None:
            if (owner := owners.get(it.request.number)) is not None:
                (owner.after if it.request in owner.after else owner.steps).append(it)
        elif it.by == "agent" and parts:
            owners[it.number] = _owner(it, running, parts)
            (owners[it.number].steps if running else owners[it.number].after).append(it)
    return parts


def _owner(it: Said, running: Sequence[Part], parts: Sequence[Part]) -> Part:
    """The part that a message of the agent belongs to: an open one of its session, any open one, or the last."""
    same = [part for part in running if part.request.session == it.session]
    return (same or running or parts)[-1]


class _Playing:
    """The recorded agent on one connection."""

    def __init__(self, agent: RecordedAgent, transport: Transport) -> None:
        self._agent = agent
        self._transport = transport
        self._used: set[int] = set()
        self._sessions: dict[str, Names] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._more = itertools.count(2)

    async def serve(self) -> None:
        self._line = Line(self._transport, self._arrived)
        await self._line.start()
        try:
            await self._line.ended_with
            if self._tasks:  # the last request is still answered, also if the client sends no more
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._transport.close()

    def _arrived(self, message: dict[str, Any]) -> None:
        known = body_of(message.get("params"))
        if "id" not in message:
            if message["method"] == "session/cancel" and (turn := self._turns.get(str(known.get("sessionId")))):
                # Later: a task that is cancelled before its first step answers nothing.
                asyncio.get_running_loop().call_soon(turn.cancel)
            return
        task = asyncio.get_running_loop().create_task(self._answer(message["id"], str(message["method"]), known))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if message["method"] == "session/prompt":
            self._turns[str(known.get("sessionId"))] = task

    async def _answer(self, number: Any, method: str, params: Mapping[str, Any]) -> None:
        session = str(params.get("sessionId", ""))
        names = self._sessions.get(session, Names())
        requests = [part.request for part in self._agent.parts]
        found = best(method, params, requests, names.then(session), self._used)
        if found is None:
            error = {"code": METHOD_NOT_FOUND, "message": f"the trace has no {method}"}
            self._line.send({"id": number, "error": error})
            return
        self._used.add(found.number)
        part = next(part for part in self._agent.parts if part.request is found)
        names = self._named(found, params, names)
        try:
            await self._play(part.steps, names, found.time)
            self._line.send({"id": number, **self._recorded_answer(found, names)})
            await self._play(part.after, names, found.answer.time if found.answer is not None else found.time)
        except asyncio.CancelledError:
            if method != "session/prompt" or self._line.ended_with.done():
                raise
            self._line.send({"id": number, "result": {"stopReason": "cancelled"}})

    def _named(self, found: Said, params: Mapping[str, Any], names: Names) -> Names:
        """The names of the session that this request opens or uses."""
        then, now = found.session, str(params.get("sessionId", ""))
        if found.answer is not None and "sessionId" in found.answer.result:
            then = str(found.answer.result["sessionId"])
            now = then if then not in self._sessions else f"{then}-{next(self._more)}"
        if now and now not in self._sessions:
            self._sessions[now] = Names()
        names = self._sessions.get(now, names)
        if then and now:
            names.name(then, now)  # the most similar request may be one of another recorded session
        if "cwd" in params:
            names.place(found.params.get("cwd"), params["cwd"])
        return names

    def _recorded_answer(self, found: Said, names: Names) -> dict[str, Any]:
        if found.answer is None:
            return {"error": {"code": INTERNAL_ERROR, "message": f"the trace has no answer to this {found.method}"}}
        message = found.answer.message
        key = "error" if message.get("error") is not None else "result"
        return {key: names.renamed(message.get(key))}

    async def _play(self, steps: Sequence[Said], names: Names, began: float) -> None:
        asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        for step in steps:
            await self._pause(step.time - began)
            began = step.time
            if step.request is not None:
                with suppress(ConnectionClosed):
                    _learn(step, await asked[step.request.number], names)
            elif step.kind == "request":
                asked[step.number] = self._line.ask(step.method, names.renamed(step.message.get("params")))
            else:
                self._line.send({"method": step.method, "params": names.renamed(step.message.get("params"))})

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(0 if self._agent.speed is None else max(0.0, seconds / self._agent.speed))


def _learn(recorded: Said, answer: Mapping[str, Any], names: Names) -> None:
    """Name the terminal that the client has made now like the one that it made then."""
    names.name(recorded.result.get("terminalId"), body_of(answer.get("result")).get("terminalId"))
