"""`RecordedClient`: the client of a trace, which drives an agent as it did then.

    differences = await RecordedClient("wire.jsonl").play(transport)

It sends the recorded requests and notifications in their order, each once those are answered that were answered before
it then. A request of the agent gets the answer that the most similar recorded one got: a file's text, a permission.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from accord.errors import METHOD_NOT_FOUND, ConnectionClosed
from accord.testing.line import Line
from accord.testing.recorded import Names, Said, Source, best, conversation
from accord.trace import TraceEvent
from accord.trace.meaning import body_of
from accord.transports.transport_interface import Transport


class RecordedClient:
    """The client of a trace. `cwd` is the folder of its sessions, in place of the recorded one."""

    def __init__(self, source: Source | Sequence[TraceEvent], *, cwd: str | None = None) -> None:
        self.said = conversation(source)
        """The recorded messages of both sides."""
        self.cwd = cwd
        """The folder of the sessions, in place of the recorded one; None keeps that."""

    async def play(self, transport: Transport) -> list[str]:
        """Play to an agent, and close the connection; returns how the agent's answers differ from the recorded ones.

        Only outcomes are compared: success or error, and the stop reasons of turns. The words of a model differ.
        """
        return await _Playing(self, transport).play()


class _Playing:
    """The recorded client on one connection."""

    def __init__(self, client: RecordedClient, transport: Transport) -> None:
        self._client = client
        self._transport = transport
        self._names = Names()
        self._used: set[int] = set()
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._seen: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._differences: list[str] = []

    async def play(self) -> list[str]:
        self._line = Line(self._transport, self._arrived)
        await self._line.start()
        try:
            for place, said in enumerate(self._client.said):
                if said.by == "client" and said.kind != "answer":
                    await self._until(place, said)
                    self._send(said)
            for number in list(self._asked):
                await self._answered(number)
        except ConnectionClosed as error:
            self._differences.append(f"the agent ended: {error}")
        finally:
            await self._transport.close()
        return self._differences

    async def _until(self, place: int, said: Said) -> None:
        """Wait for what had happened before this message was sent."""
        before = self._client.said[:place]
        for it in before:
            if it.by == "agent" and it.request is not None and it.request.number in self._asked:
                await self._answered(it.request.number)
        if said.kind == "notification":
            await self._updates(said, before)

    async def _updates(self, said: Said, before: Sequence[Said]) -> None:
        """Wait for as many updates as came before a notification, such as a cancellation, or for the turn's end."""
        session = self._names.renamed(said.session)
        wanted = sum(it.by == "agent" and it.kind == "notification" and it.session == said.session for it in before)
        running = [future for future in self._asked.values() if not future.done()]
        while self._seen.get(session, 0) < wanted and not any(future.done() for future in running):
            self._changed.clear()
            waiting = asyncio.ensure_future(self._changed.wait())
            awaited: list[asyncio.Future[Any]] = [waiting, self._line.ended_with, *running]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self._line.ended_with.done():
                return

    def _send(self, said: Said) -> None:
        params = self._params(said)
        if said.kind == "request":
            self._asked[said.number] = self._line.ask(said.method, params)
        else:
            self._line.send({"method": said.method, "params": params})

    def _params(self, said: Said) -> Any:
        if self._client.cwd is not None and "cwd" in said.params:
            self._names.place(said.params["cwd"], self._client.cwd)
        params = said.message.get("params")
        return None if params is None else self._names.renamed(params)

    async def _answered(self, number: int) -> None:
        answer = await self._asked.pop(number)
        said = next(it for it in self._client.said if it.number == number)
        result = body_of(answer.get("result"))
        if said.answer is not None:
            self._names.name(said.answer.result.get("sessionId"), result.get("sessionId"))
            then, now = _outcome(said.answer.message), _outcome(answer)
            if then != now:
                self._differences.append(f"{said.method} (message {number}): recorded {then}, got {now}")

    def _arrived(self, message: dict[str, Any]) -> None:
        params, method = body_of(message.get("params")), str(message["method"])
        session = str(params.get("sessionId", ""))
        if "id" not in message:
            self._seen[session] = self._seen.get(session, 0) + 1
            self._changed.set()
            return
        asked = [it for it in self._client.said if it.by == "agent" and it.kind == "request" and it.answer is not None]
        found = best(method, params, asked, self._names.then(session), self._used)
        if found is None or found.answer is None:
            self._differences.append(f"the agent asked {method}, which the trace does not have")
            error = {"code": METHOD_NOT_FOUND, "message": f"the trace has no {method}"}
            self._line.send({"id": message["id"], "error": error})
            return
        self._used.add(found.number)
        recorded = found.answer.message
        key = "error" if recorded.get("error") is not None else "result"
        self._line.send({"id": message["id"], key: self._names.renamed(recorded.get(key))})


def _outcome(answer: Any) -> str:
    error = body_of(answer).get("error")
    if error is not None:
        return f"error {body_of(error).get('code', '')}".strip()
    return str(body_of(answer.get("result")).get("stopReason", "a result"))
