"""`RecordedAgent` and `RecordedClient`: one side of a trace, which acts towards a real peer as in the recording.

A replay that only repeats lines breaks with the first difference: another id, another order, another folder. So a
request is matched to the recorded one of its method that is most like it: its texts count most, then its session, then
whether the recorded one was used already. Ids of sessions and terminals, and the session's folder, are renamed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import msgspec

from accord.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, AccordError, ConnectionClosed
from accord.installation import own_command
from accord.jsonrpc.line_frames import Oversized
from accord.program import run_until_the_end
from accord.trace import TraceEvent, read, read_header
from accord.trace.meaning import body_of
from accord.trace.trace_entries import Entry, entries
from accord.transports import End, Receiver, Transport
from accord.transports.stdio_transport import StdioTransport


class ReplayConnection(Receiver):
    """Sends and receives messages as JSON objects. `arrived` is called with each that is no answer."""

    def __init__(self, transport: Transport, arrived: Callable[[dict[str, Any]], None]) -> None:
        self.ended_with: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        """Done when the other side has ended the connection."""
        self._transport = transport
        self._arrived = arrived
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        self._transport.send([json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace")])

    def ask(self, method: str, params: Any) -> asyncio.Future[dict[str, Any]]:
        """Send a request; returns the whole answer. It fails with ConnectionClosed if the connection ends."""
        number = len(self._asked) + 1
        self._asked[number] = asyncio.get_running_loop().create_future()
        self._asked[number].add_done_callback(lambda it: it.cancelled() or it.exception())  # others may wait, or no one
        self.send({"id": number, "method": method, **({} if params is None else {"params": params})})
        return self._asked[number]

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        for frame in frames:
            message = None if isinstance(frame, Oversized) else _object(frame)
            if message is None:
                continue
            if "method" in message:
                self._arrived(message)
            elif (waiting := self._asked.get(cast("int", message.get("id")))) is not None and not waiting.done():
                waiting.set_result(message)

    def paused(self) -> None:
        """Ignore it: the played messages were recorded, so their size is limited."""

    def resumed(self) -> None:
        """See `paused`."""

    def ended(self, end: End) -> None:
        if not self.ended_with.done():
            self.ended_with.set_result(end)
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(ConnectionClosed(end.reason, end.detail, exit_code=end.exit_code))


def _object(frame: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(frame.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


# The recorded messages

Source: TypeAlias = "str | Path"
NOT_COMPARED = ("sessionId", "terminalId", "cwd", "_meta", "type")
COMPARED = 2_000
"""Characters of a message that are compared with others."""


class RecordedMessage(msgspec.Struct, eq=False):
    """A recorded message."""

    number: int
    """Its place in the trace."""
    time: float
    by: Literal["client", "agent"]
    kind: str
    method: str
    session: str
    message: Mapping[str, Any]
    request: RecordedMessage | None = None
    """The request of an answer."""
    answer: RecordedMessage | None = None
    """The answer to a request, if there was one."""

    @property
    def params(self) -> Mapping[str, Any]:
        """The params of a request or a notification."""
        return body_of(self.message.get("params"))

    @property
    def result(self) -> Mapping[str, Any]:
        """The result of an answer."""
        return body_of(self.message.get("result"))


def conversation(source: Source | Sequence[TraceEvent]) -> list[RecordedMessage]:
    """Return the messages between client and agent in a trace.

    Of several connections it uses the first. Of a chain of proxies it uses the client's view: the whole chain as one
    agent. Raises AccordError if the trace has no request of a client.
    """
    if isinstance(source, Sequence) and not isinstance(source, str):
        role, events = "tap", list(source)
    else:
        role, events = read_header(source).role, list(read(source))
    found = _said(entries(_first_link(events)), flips=role == "agent")
    if not any(it.by == "client" and it.kind == "request" for it in found):
        raise AccordError("the trace has no request of a client, so there is nothing to replay")
    return found


def _first_link(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    frames = [event for event in events if event.frame is not None]
    links = [event.link for event in frames if event.link is not None]
    if links:
        frames = [event for event in frames if event.link == links[0]]
    client = next((event.hop[0] for event in frames if event.hop is not None), None)
    return frames if client is None else [event for event in frames if event.hop and client in event.hop]


def _said(found: Iterable[Entry], *, flips: bool) -> list[RecordedMessage]:
    by_number: dict[int, RecordedMessage] = {}
    for entry in found:
        if entry.kind not in ("request", "notification", "answer"):
            continue
        is_clients = (entry.event.direction == "out") != flips
        message = _object(entry.event.frame or b"") or {}
        request = by_number.get(entry.request.number) if entry.request is not None else None
        said = RecordedMessage(
            entry.number,
            entry.event.time,
            "client" if is_clients else "agent",
            entry.kind,
            entry.method,
            entry.session,
            message,
            request,
        )
        if request is not None:
            request.answer = said
        if entry.kind != "answer" or request is not None:  # an answer to no request is not repeated
            by_number[entry.number] = said
    return list(by_number.values())


SAME_SESSION, UNUSED = 0.25, 0.1
"""The weight of the same session, and of an unused recorded request, in the comparison: a different text
weighs more.
"""


def best(
    method: str, params: Mapping[str, Any], among: Iterable[RecordedMessage], session: str, used: set[int]
) -> RecordedMessage | None:
    """Return the recorded request that is most like this one; None if none has its method."""
    text = _compared(params)

    def likeness(it: RecordedMessage) -> tuple[float, int]:
        content = SequenceMatcher(None, _compared(it.params), text, autojunk=False).quick_ratio()
        return content + SAME_SESSION * (it.session == session) + UNUSED * (it.number not in used), -it.number

    return max((it for it in among if it.method == method), key=likeness, default=None)


def _compared(value: Any) -> str:
    """The texts in a message, without the ids and folders that differ from run to run."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return " ".join(_compared(member) for key, member in members if key not in NOT_COMPARED)[:COMPARED]
    if isinstance(value, list):
        return " ".join(_compared(member) for member in cast("list[Any]", value))[:COMPARED]
    return str(value)[:COMPARED]


class ReplayNames:
    """Maps the ids and the folder of a recording to the present ones."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}
        self._then: dict[str, str] = {}
        self._folders: list[tuple[str, str]] = []

    def name(self, then: Any, now: Any) -> None:
        """Map this recorded id to this one from now on."""
        if isinstance(then, str) and isinstance(now, str):
            self._now[then] = now
            self._then.setdefault(now, then)

    def place(self, then: Any, now: Any) -> None:
        """Map paths in this recorded folder to this one."""
        if isinstance(then, str) and isinstance(now, str) and then.rstrip("/"):
            self._folders.append((then.rstrip("/"), now.rstrip("/")))

    def then(self, now: str) -> str:
        """The recorded id with this name."""
        return self._then.get(now, now)

    def renamed(self, value: Any) -> Any:
        """A recorded JSON value with the names of now."""
        if isinstance(value, str):
            return self._now.get(value) or self._moved(value)
        if isinstance(value, dict):
            return {key: self.renamed(member) for key, member in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self.renamed(member) for member in cast("list[Any]", value)]
        return value

    def _moved(self, text: str) -> str:
        for then, now in self._folders:
            if text == then or text.startswith(f"{then}/"):
                return now + text[len(then) :]
            if text.startswith(f"file://{then}/"):
                return f"file://{now}{text[len(then) + 7 :]}"
        return text


def _outcome_of(answer: RecordedMessage, names: ReplayNames) -> dict[str, Any]:
    """The result or the error of a recorded answer, with the names of now."""
    key = "error" if answer.message.get("error") is not None else "result"
    return {key: names.renamed(answer.message.get(key))}


# The agent


class RecordedRequest(msgspec.Struct, eq=False):
    """A recorded request, and the agent's messages for it."""

    request: RecordedMessage
    steps: list[RecordedMessage] = []
    """The agent's notifications and requests, and the client's answers to these, until its own answer."""
    after: list[RecordedMessage] = []
    """The agent's messages after its answer, and before the client's next request."""


class RecordedAgent:
    """The agent of a trace, which answers as in the recording.

        await RecordedAgent("wire.jsonl").serve(transport)

    A client's request gets the reaction to the most similar recorded request: the same updates, the same requests to
    the client, the same answer. An update belongs to the request of its session that was open when it was sent; one
    that came later follows the answer. A prompt that the client cancels ends as cancelled. For a method that the trace
    does not have, the answer is an error. `speed` 1 keeps the recorded pauses, 2 halves them; by default it does not
    pause.
    """

    def __init__(self, source: Source | Sequence[TraceEvent], *, speed: float | None = None) -> None:
        if speed is not None and speed <= 0:
            raise ValueError(f"speed must be positive, got {speed}")
        self.speed = speed
        """How fast recorded pauses are played; None leaves them out."""
        self.parts = _parts(conversation(source))
        """The agent's reaction to each request, in the order of the requests."""

    async def serve(self, transport: Transport) -> None:
        """Answer a client until it closes the connection."""
        playing = _AgentPlayback(self, transport)
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


def _parts(said: Sequence[RecordedMessage]) -> list[RecordedRequest]:
    parts: list[RecordedRequest] = []
    running: list[RecordedRequest] = []
    owners: dict[int, RecordedRequest] = {}
    for it in said:
        if it.by == "client" and it.kind == "request":
            parts.append(RecordedRequest(it))
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


def _owner(
    it: RecordedMessage, running: Sequence[RecordedRequest], parts: Sequence[RecordedRequest]
) -> RecordedRequest:
    """The part that a message of the agent belongs to: an open one of its session, any open one, or the last."""
    same = [part for part in running if part.request.session == it.session]
    return (same or running or parts)[-1]


class _AgentPlayback:
    """The recorded agent on one connection."""

    def __init__(self, agent: RecordedAgent, transport: Transport) -> None:
        self._agent = agent
        self._transport = transport
        self._used: set[int] = set()
        self._sessions: dict[str, ReplayNames] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._more = itertools.count(2)

    async def serve(self) -> None:
        self._line = ReplayConnection(self._transport, self._arrived)
        await self._transport.start(self._line)
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
        names = self._sessions.get(session, ReplayNames())
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

    def _named(self, found: RecordedMessage, params: Mapping[str, Any], names: ReplayNames) -> ReplayNames:
        """The names of the session that this request opens or uses."""
        then, now = found.session, str(params.get("sessionId", ""))
        if found.answer is not None and "sessionId" in found.answer.result:
            then = str(found.answer.result["sessionId"])
            now = then if then not in self._sessions else f"{then}-{next(self._more)}"
        if now and now not in self._sessions:
            self._sessions[now] = ReplayNames()
        names = self._sessions.get(now, names)
        if then and now:
            names.name(then, now)  # the most similar request may be one of another recorded session
        if "cwd" in params:
            names.place(found.params.get("cwd"), params["cwd"])
        return names

    def _recorded_answer(self, found: RecordedMessage, names: ReplayNames) -> dict[str, Any]:
        if found.answer is None:
            return {"error": {"code": INTERNAL_ERROR, "message": f"the trace has no answer to this {found.method}"}}
        return _outcome_of(found.answer, names)

    async def _play(self, steps: Sequence[RecordedMessage], names: ReplayNames, began: float) -> None:
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


def _learn(recorded: RecordedMessage, answer: Mapping[str, Any], names: ReplayNames) -> None:
    """Name the terminal that the client has made now like the one that it made then."""
    names.name(recorded.result.get("terminalId"), body_of(answer.get("result")).get("terminalId"))


# The client


class RecordedClient:
    """The client of a trace, which drives an agent as in the recording.

        differences = await RecordedClient("wire.jsonl").play(transport)

    It sends the recorded requests and notifications in their order, each once the requests are answered that had been
    answered before it in the recording. A request of the agent gets the answer to the most similar recorded one: a
    file's text, a permission. `cwd` is the folder of its sessions, instead of the recorded one.
    """

    def __init__(self, source: Source | Sequence[TraceEvent], *, cwd: str | None = None) -> None:
        self.said = conversation(source)
        """The recorded messages of both sides."""
        self.cwd = cwd
        """The folder of the sessions, instead of the recorded one; None keeps that."""

    async def play(self, transport: Transport) -> list[str]:
        """Play to an agent, and close the connection; returns how the agent's answers differ from the recorded ones.

        Only outcomes are compared: success or error, and the stop reasons of turns. A model's texts differ.
        """
        return await _ClientPlayback(self, transport).play()


class _ClientPlayback:
    """The recorded client on one connection."""

    def __init__(self, client: RecordedClient, transport: Transport) -> None:
        self._client = client
        self._transport = transport
        self._names = ReplayNames()
        self._used: set[int] = set()
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._seen: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._differences: list[str] = []

    async def play(self) -> list[str]:
        self._line = ReplayConnection(self._transport, self._arrived)
        await self._transport.start(self._line)
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

    async def _until(self, place: int, said: RecordedMessage) -> None:
        """Wait for the messages that came before this one in the recording."""
        before = self._client.said[:place]
        for it in before:
            if it.by == "agent" and it.request is not None and it.request.number in self._asked:
                await self._answered(it.request.number)
        if said.kind == "notification":
            await self._updates(said, before)

    async def _updates(self, said: RecordedMessage, before: Sequence[RecordedMessage]) -> None:
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

    def _send(self, said: RecordedMessage) -> None:
        params = self._params(said)
        if said.kind == "request":
            self._asked[said.number] = self._line.ask(said.method, params)
        else:
            self._line.send({"method": said.method, "params": params})

    def _params(self, said: RecordedMessage) -> Any:
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
        self._line.send({"id": message["id"], **_outcome_of(found.answer, self._names)})


def _outcome(answer: Any) -> str:
    error = body_of(answer).get("error")
    if error is not None:
        return f"error {body_of(error).get('code', '')}".strip()
    return str(body_of(answer.get("result")).get("stopReason", "a result"))
