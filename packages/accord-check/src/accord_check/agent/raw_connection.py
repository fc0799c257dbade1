"""`RawConnection` sends anything, records every frame, and judges both sides. `Link` is the one to an agent.

A `Turn` is a prompt and the work on it. In version 1 the answer to the prompt ends the turn. In version 2 the answer is
a receipt, and the turn ends with the first idle state that ends work; it may come before the answer.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from accord import TraceEvent, TraceFile
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND
from accord.jsonrpc.line_frames import Oversized
from accord.trace import Direction
from accord.transports import End, Transport
from accord_check.agent.settings import Patience, Settings
from accord_check.checks import Side
from accord_check.conversation import MISSING, Exchange, Frame, key_of, object_of, objects, read
from accord_check.trace_judge import Judge

Permit = Literal["allow", "reject", "cancel", "hold"]

FULL: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "session": {
        "compaction": {},
        "notices": {},
        "configOptions": {"boolean": {}},
        "cursors": {},
        "promptSuggestions": {},
    },
    "elicitation": {"form": {}, "url": {}},
}
"""The capabilities of a client that can do nearly everything. It runs no command, and opens no terminal for a login."""


_SPEAKERS = {f"{speaker}_message{end}": speaker for speaker in ("user", "agent") for end in ("", "_chunk")}
"""The speaker in each kind of update with a message."""


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


Answers = Mapping[str, Callable[[Exchange], Any]]
"""The functions that answer requests, by method: each returns a result, or None for a request that waits, or raises
Refused.
"""


def _unknown(exchange: Exchange) -> Any:
    raise Refused(METHOD_NOT_FOUND, f"Method not found: {exchange.method[:80]}")


class ClientServices:
    """Answers the requests of an agent."""

    def __init__(self, folder: Path) -> None:
        self.permit: Permit = "allow"
        """The answer to permission requests; `hold` leaves them open until `settle`."""
        self.held: list[Exchange] = []
        """Permission requests that wait for an answer."""
        self._folder = folder.resolve()
        self.answers: Answers = {
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "session/request_permission": self._permission,
            "elicitation/create": lambda _: {"action": "decline"},
        }

    def settle(self) -> list[tuple[Exchange, Any]]:
        """Return the waiting requests, each with its answer under the present settings."""
        held, self.held = self.held, []
        return [(exchange, self._chosen(exchange)) for exchange in held]

    def _permission(self, exchange: Exchange) -> Any:
        if self.permit == "hold":
            self.held.append(exchange)
            return None
        return self._chosen(exchange)

    def _chosen(self, exchange: Exchange) -> Any:
        wanted = "allow" if self.permit == "allow" else "reject"
        for option in objects(exchange.params.get("options")):
            if self.permit == "cancel":
                break
            if str(option.get("kind", "")).startswith(wanted):
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        return {"outcome": {"outcome": "cancelled"}}

    def _read(self, exchange: Exchange) -> Any:
        try:
            lines = self._inside(exchange).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        except OSError:
            raise Refused(NOT_FOUND, "no such file") from None
        line, limit = exchange.params.get("line"), exchange.params.get("limit")
        start = max(line - 1, 0) if isinstance(line, int) else 0
        return {"content": "".join(lines[start : start + limit if isinstance(limit, int) else None])}

    def _write(self, exchange: Exchange) -> Any:
        path, text = self._inside(exchange), exchange.params.get("content")
        if not isinstance(text, str):
            raise Refused(INVALID_PARAMS, "content must be a string")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return {}

    def _inside(self, exchange: Exchange) -> Path:
        path = Path(str(exchange.params.get("path", ""))).resolve()
        if not path.is_relative_to(self._folder):
            raise Refused(INVALID_PARAMS, "the path is outside of the session's folder")
        return path


class Recording:
    """Stores the conversations of a run in memory, as the lines of one trace file. Secrets in it are masked."""

    def __init__(self) -> None:
        self._file = io.BytesIO()
        self._lines = 0
        self._trace: TraceFile | None = None

    def begin(self, peer: str, role: Side = "client") -> None:
        """Begin another conversation, in which we have this role."""
        self._trace = TraceFile(self._file, role=role, peer=peer)
        self._lines += 1

    def add(self, event: TraceEvent) -> int:
        """Record an event; returns its number: one less than its line, as the first line of a file is no event."""
        if self._trace is None:
            raise RuntimeError("begin a conversation before you record its events")
        self._trace(event)
        self._lines += 1
        return self._lines - 1

    def append(self, other: Recording) -> int:
        """Append the conversations of another recording; returns by how much their events' numbers have grown."""
        grown = self._lines
        self._file.write(other._file.getvalue())
        self._lines += other._lines
        return grown

    def write(self, path: str | Path) -> None:
        """Write the trace file. Only its owner can read it."""
        # A TraceFile makes the file as a trace must be: private, and never through a link.
        TraceFile(path).close()
        Path(path).write_bytes(self._file.getvalue())


@dataclass(slots=True, frozen=True)
class State:
    """A state of a session from the agent."""

    frame: Frame
    state: str
    reason: str | None
    error: Any = MISSING


class Turn:
    """A prompt that was sent; it has the members of an `Exchange` about its end."""

    def __init__(self, exchange: Exchange, states: Sequence[State] | None) -> None:
        self.exchange = exchange
        self.method = exchange.method
        self.frame = exchange.frame
        self._states = states
        """The states of the session, as they arrive; None in version 1."""

    @property
    def end(self) -> State | None:
        """The state that ended the work, in version 2."""
        runs = False
        for state in self._states or ():
            if state.frame.number < self.frame.number:
                continue
            if state.state == "idle" and (runs or state.reason is not None):
                return state
            runs = runs or state.state in ("running", "requires_action")
        return None

    @property
    def is_refused(self) -> bool:
        """Whether the prompt was answered with an error."""
        return self.exchange.answered is not None and not self.exchange.succeeded

    @property
    def is_over(self) -> bool:
        if self._states is None or self.is_refused:
            return self.exchange.answered is not None
        return self.exchange.answered is not None and self.end is not None

    @property
    def answered(self) -> Frame | None:
        """Return the frame that ended the turn; None while it runs."""
        if not self.is_over:
            return None
        return self.exchange.answered if self.end is None else self.end.frame

    @property
    def reason(self) -> Any:
        """The stop reason; None if there is none."""
        return self.exchange.fields.get("stopReason") if self._states is None else self.end and self.end.reason

    @property
    def error(self) -> Any:
        """The error that ended the turn; `MISSING` if it did not fail."""
        failed = self.end is not None and self.end.reason == "error"
        if failed and self.end is not None:
            return object_of(self.end.error) or {"code": None, "message": "no error was told"}
        return self.exchange.error

    @property
    def succeeded(self) -> bool:
        return self.is_over and self.error is MISSING


class Gone(Exception):
    """The other side ended the connection."""


class Blocked(Exception):
    """The other side cannot be judged: it does not start, asks for a login, or never starts the agent."""


class Over(Exception):
    """Ends a scenario that cannot continue, and has reported why."""


class Unanswered(Exception):
    """The other side did not answer in time."""

    def __init__(self, asked: Exchange | Turn, within: float) -> None:
        what = "had no answer" if isinstance(asked, Exchange) else "had no end"
        super().__init__(f"{asked.method} {what} within {within:g} s")
        self.frame = asked.frame


class RawConnection:
    """One connection to the other side, from its start to its end. `side` is our own side."""

    def __init__(
        self,
        transport: Transport,
        answers: Answers,
        recording: Recording,
        patience: Patience,
        side: Side = "client",
    ) -> None:
        self.judge = Judge("out" if side == "client" else "in")
        """Judges what both sides send."""
        self.end: End | None = None
        """How the connection ended; None while it is open."""
        self.last: Frame | None = None
        """The last frame that was sent or received."""
        self.replies: list[Frame] = []
        """The answers of the other side, in their order; including those to no request."""
        self._answers = answers
        self._ours: Side = side
        self._theirs: Side = _OTHER[side]
        self._transport = transport
        self._recording = recording
        self._patience = patience
        self._changed = asyncio.Event()
        self._next_id = 100
        self._update_kinds: dict[str, set[str]] = {}
        self._states: dict[str, list[State]] = {}
        self._messages: dict[str, list[tuple[str, str | None]]] = {}
        self._cursors: dict[str, dict[str, dict[str, Any]]] = {}
        recording.begin(transport.name, side)

    @property
    def is_process(self) -> bool:
        """Whether the other side is a process that we started."""
        return getattr(self._transport, "pid", None) is not None

    def update_kinds(self, session: str) -> set[str]:
        """Return the kinds of update that came for a session."""
        return self._update_kinds.get(session, set())

    def states(self, session: str) -> list[State]:
        """Return the states of a session from the agent, in version 2; the list grows as they arrive."""
        return self._states.setdefault(session, [])

    def messages(self, session: str) -> list[tuple[str, str | None]]:
        """The messages that updates of a session have shown since it was forgotten, each as its speaker and its id."""
        return self._messages.setdefault(session, [])

    def user_messages(self, session: str) -> list[str | None]:
        """The ids of the user's messages among them."""
        return [message for speaker, message in self.messages(session) if speaker == "user"]

    def cursors(self, session: str) -> dict[str, dict[str, Any]]:
        """Return the anchors of the cursors of a session at which it can be forked now, by their ids."""
        return self._cursors.setdefault(session, {})

    def forget(self, session: str) -> None:
        """Forget which kinds of update and which messages came for a session."""
        self._update_kinds.pop(session, None)
        self._messages.pop(session, None)

    async def open(self) -> None:
        await self._transport.start(self)

    async def close(self, grace: float) -> End:
        """Close the connection; a process gets `grace` seconds to end on its own."""
        self.end = await self._transport.close(grace)
        return self.end

    # Sending

    def send_raw(self, data: bytes) -> Frame:
        """Send these bytes as one frame."""
        frame = self._seen("out", data)
        self._transport.send([data])
        return frame

    def send(self, message: dict[str, Any]) -> Frame:
        """Send this object unchanged."""
        return self.send_raw(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    def call(self, method: str, params: Any = None, *, id: Any = None) -> Exchange:  # noqa: A002
        """Send a request; `answer` waits for its answer."""
        if id is None:
            id, self._next_id = self._next_id, self._next_id + 1  # noqa: A001
        self.send({"id": id, "method": method, **({} if params is None else {"params": params})})
        return self.judge.conversation.open[self._ours][key_of(id)]

    def notify(self, method: str, params: Any = None) -> Frame:
        """Send a notification."""
        return self.send({"method": method, **({} if params is None else {"params": params})})

    # Waiting

    async def answer(self, exchange: Exchange, within: float | None = None) -> Exchange:
        """Wait for the answer to a request. Raises Unanswered, or Gone if the other side ends the connection."""
        seconds = self._patience.answer_within if within is None else within
        try:
            await self.until(lambda: exchange.answered is not None, seconds)
        except TimeoutError:
            raise Unanswered(exchange, seconds) from None
        return exchange

    async def ask(self, method: str, params: Any = None, within: float | None = None) -> Exchange:
        """Send a request, and wait for its answer."""
        return await self.answer(self.call(method, params), within)

    async def until(self, happened: Callable[[], bool], within: float) -> None:
        """Wait until this is so. Raises TimeoutError, or Gone if the other side ends the connection first."""
        async with asyncio.timeout(within):
            while not happened():
                if self.end is not None:
                    raise Gone(self._how_it_ended())
                self._changed.clear()
                await self._changed.wait()

    async def quiet(self, seconds: float | None = None, most: float = 5.0) -> None:
        """Wait until nothing has arrived for this long, by default as in the settings."""
        seconds = self._patience.quiet if seconds is None else seconds
        by = time.monotonic() + most
        while self.end is None and time.monotonic() < by:
            self._changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                return

    # The transport's callbacks

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        """Judge frames, and answer their requests."""
        for frame in frames:
            if isinstance(frame, Oversized):
                continue
            seen = self._seen("in", bytes(frame))
            if "method" not in seen.members:
                self.replies.append(seen)
            params = object_of(seen.members.get("params"))
            self._note(seen, str(params.get("sessionId")), object_of(params.get("update")))
            if isinstance(seen.members.get("method"), str) and "id" in seen.members:
                exchange = self.judge.conversation.open[self._theirs].get(key_of(seen.members["id"]))
                if exchange is not None and exchange.frame.number == seen.number:
                    self._serve(exchange)
        self._changed.set()

    def paused(self) -> None:
        """Ignore that the transport is full: the checks send little."""

    def resumed(self) -> None:
        """Ignore that the transport has room again."""

    def ended(self, end: End) -> None:
        """Remember how the connection ended."""
        self.end = end
        self._changed.set()

    def _note(self, seen: Frame, session: str, update: dict[str, Any]) -> None:
        kind, state, reason = update.get("sessionUpdate"), update.get("state"), update.get("stopReason")
        self._update_kinds.setdefault(session, set()).add(str(kind))
        if kind in _SPEAKERS:
            given = update.get("messageId")
            message = _SPEAKERS[kind], given if isinstance(given, str) else None
            known = self.messages(session)
            if message not in (known if message[1] is not None else known[-1:]):
                known.append(message)
        if kind == "cursor_update":
            given, anchor = str(update.get("cursorId")), object_of(update.get("anchor"))
            if "capabilities" in update and object_of(update["capabilities"]).get("fork") is None:
                self.cursors(session).pop(given, None)
            elif anchor:
                self.cursors(session)[given] = anchor
        if kind == "state_update" and isinstance(state, str):
            reason = reason if isinstance(reason, str) else None
            self.states(session).append(State(seen, state, reason, update.get("error", MISSING)))

    def _serve(self, exchange: Exchange) -> None:
        try:
            result = self._answers.get(exchange.method, _unknown)(exchange)
        except Refused as refused:
            self.send({"id": exchange.id, "error": {"code": refused.code, "message": str(refused)}})
            return
        if result is not None:
            self.send({"id": exchange.id, "result": result})

    def _seen(self, direction: Direction, data: bytes) -> Frame:
        event = TraceEvent(time.monotonic(), direction, data)
        number = self._recording.add(event)
        self.judge.feed(event, number)
        self.last = read(number, event.time, self._ours if direction == "out" else self._theirs, data)
        return self.last

    def _how_it_ended(self) -> str:
        end = self.end or End("closed")
        lines = end.stderr.strip().splitlines()
        said = f"; its last line on standard error: {lines[-1][:200]}" if lines else ""
        code = f" (exit code {end.exit_code})" if end.exit_code is not None else ""
        return f"{end.detail or end.reason.replace('_', ' ')}{code}{said}"


class Link(RawConnection):
    """One connection to the agent."""

    def __init__(
        self, transport: Transport, services: ClientServices, recording: Recording, settings: Settings
    ) -> None:
        super().__init__(transport, services.answers, recording, settings)
        self._settings = settings
        self.services = services
        """Answers the agent's requests."""
        self.was_killed = False
        """Whether the agent was killed, and did not end on its own."""

    async def turn_end(self, turn: Turn, within: float | None = None) -> Turn:
        """Wait for the end of a turn. Raises Unanswered, or Gone if the agent ends the connection."""
        await self.while_open(turn, lambda: False, within)
        return turn

    async def while_open(self, turn: Turn, happened: Callable[[], bool], within: float | None = None) -> None:
        """Wait until this is so, or the turn is over. Raises Unanswered if neither happens in time, or Gone."""
        seconds = self._settings.turn_within if within is None else within
        try:
            await self.until(lambda: turn.is_over or happened(), seconds)
        except TimeoutError:
            raise Unanswered(turn, seconds) from None

    def cancel(self, session: str) -> Frame:
        """Cancel the turn of a session."""
        return self.notify("session/cancel", {"sessionId": session})

    async def kill(self, within: float) -> None:
        """Kill the agent's process, and wait for its end."""
        self.was_killed = True
        if (pid := getattr(self._transport, "pid", None)) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, _KILL)
        await self.until(lambda: self.end is not None, within)

    def settle(self) -> None:
        """Answer the permission requests that wait."""
        for exchange, result in self.services.settle():
            self.send({"id": exchange.id, "result": result})


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""On Windows, SIGTERM ends a process at once."""

_OTHER: dict[Side, Side] = {"agent": "client", "client": "agent"}
