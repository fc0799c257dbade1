"""`--json`: every event of the session, from its beginning, as one JSON object a line.

    {"type":"session", ...}   the session, the agent and the version of the protocol
    {"type":"update", ...}    each update, byte for byte as it came: those before the prompt, then those of the turn
    {"type":"prompt"}         between the two
    {"type":"result", ...}    or {"type":"error", ...}: the end

An update may come before the answer that opens the session, and a replay may be long. `WireUpdates` watches the wire
for them until the prompt is sent; from then on they belong to the turn.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from accord import AccordError, ConnectionClosed, Overflow, PeerError
from accord.jsonrpc.wire_messages import NotificationFrame
from accord.printable import printable
from accord_tools.cli.console import for_people, write_out
from accord_tools.cli.exit_codes import exit_code, one_line
from accord_tools.cli.output import Output
from accord_tools.cli.view import Opened, QuestionOrder, TurnView

if TYPE_CHECKING:
    from accord import Outcome, RemoteSession, Reply, TraceEvent
    from accord_tools.presentation.styled_text import Paragraph

MOST_EARLY = 64 * 1024 * 1024
"""Bytes of updates before the prompt."""


class WireUpdates:
    """An observer of the wire that keeps updates, such as those before the prompt, byte for byte."""

    def __init__(self, most: int = MOST_EARLY) -> None:
        self._most = most
        self._early: list[tuple[str, bytes]] = []
        self._size = 0
        self._is_over = False

    def __call__(self, event: TraceEvent) -> None:
        """Keep the frame of this event, if it is an update."""
        if self._is_over or event.direction != "in" or event.frame is None or b"session/update" not in event.frame:
            return
        message = event.message
        if isinstance(message, NotificationFrame) and message.method == "session/update" and message.params is not None:
            self._keep(bytes(message.params))

    def _keep(self, params: bytes) -> None:

        from accord.schema import codec

        try:
            session_id = _read_address(params).session_id
            update = codec.update_json(params)
        except (AccordError, ValueError):  # a malformed update, which the connection reports
            return
        self._size += len(update)
        if self._size <= self._most:
            self._early.append((session_id, update))

    def take(self, session_id: str) -> list[bytes]:
        """Return the updates of this session so far, each once; raises Overflow if there were too many to keep."""
        if self._size > self._most:
            raise Overflow(f"the updates before the prompt exceed {self._most:,} bytes; leave out --replay")
        taken = [update for address, update in self._early if address == session_id]
        self._early.clear()
        return taken

    def stop(self) -> None:
        """Stop collecting: the prompt is sent, and updates belong to its turn."""
        self._is_over = True


class Events(TurnView):
    """Shows a turn as JSON lines."""

    keeps_wire = True

    def __init__(self, output: Output, early: WireUpdates) -> None:
        super().__init__(QuestionOrder(weigh=lambda _: 1))
        self._output = output
        self._early = early

    def waiting(self, text: str) -> None:
        """Do nothing: programs notice the silence."""

    async def opened(self, opened: Opened) -> None:
        """Print the session's line and its first updates."""
        await self._print(_opened(opened))
        await self._updates(self._early.take(opened.session.id))

    async def follow(self, reply: Reply) -> None:
        """Print the updates of a turn until its end."""
        async for update in reply.wire():
            await self.question_order.may_show()
            await self._updates([update])
            self.question_order.was_shown(update)

    async def prompted(self, session: RemoteSession) -> None:
        """Print the updates before the prompt, which was sent just now."""
        self._early.stop()
        await self._updates(self._early.take(session.id))
        await self._print({"type": "prompt"})

    async def ended(self, session: RemoteSession, outcome: Outcome) -> None:
        """Print how the turn ended."""
        from accord.schema import codec

        usage = {} if outcome.usage is None else {"usage": codec.plain(outcome.usage)}
        exceeded = {} if outcome.exceeded is None else {"exceeded": outcome.exceeded}
        result = {"type": "result", "stopReason": outcome.stop_reason, "sessionId": session.id}
        await self._print({**result, **exceeded, **usage})

    async def failed(self, error: AccordError) -> None:
        """Print the error that ended the turn."""
        await self._print(error_event(error))

    def summary(self, *groups: Iterable[Paragraph]) -> None:
        """Print the written files on standard error; the session is in the last event."""
        for line in groups[0]:
            self.note(line.text)

    def interrupted(self) -> None:
        """Print nothing: the last event has it."""

    def agent_line(self, text: str) -> None:
        """Print a line of the agent's standard error on ours: unchanged in a pipe or a file."""
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._output.aside(f"{printable(text) if is_terminal else text}\n".encode("utf-8", "replace"))

    @property
    def is_asking(self) -> bool:
        """Whether a question to the user is open."""
        return self._output.is_held

    def note(self, text: str) -> None:
        """Print a line on standard error."""
        self._output.aside(f"{for_people(text)}\n".encode("utf-8", "replace"))

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[None]:
        """Print nothing while a question is open."""
        await self.question_order.wait()
        async with self._output.held():
            yield

    async def _updates(self, updates: list[bytes]) -> None:
        for update in updates:
            await self._output.write(b'{"type":"update","update":' + update.strip() + b"}\n")

    async def _print(self, event: dict[str, Any]) -> None:
        from accord.schema import codec

        await self._output.write(codec.encode(event) + b"\n")


def error_event(error: BaseException) -> dict[str, Any]:
    """The line for an error."""
    code = exit_code(error) if isinstance(error, AccordError) else 1
    event: dict[str, Any] = {"type": "error", "message": one_line(error), "exitCode": code}
    if isinstance(error, PeerError):
        event |= {"code": error.code} | ({} if error.data is None else {"data": error.data})
    if isinstance(error, ConnectionClosed):
        event |= {"reason": error.reason}
    if isinstance(error, PeerError | ConnectionClosed) and error.stderr:
        event |= {"stderr": error.stderr}
    return event


def report(error: AccordError) -> None:
    """Print the line for an error that occurs before there is an event loop, such as wrong usage."""
    write_out(msgspec.json.encode(error_event(error)).decode() + "\n")


def _opened(opened: Opened) -> dict[str, Any]:
    from accord.schema import codec

    session, info, version = opened
    state = session.state
    event: dict[str, Any] = {"type": "session", "sessionId": session.id, "protocolVersion": version}
    if info is not None:
        event["agent"] = codec.plain(info)
    if state.modes:
        event["modes"] = {"currentModeId": state.mode, "availableModes": [codec.plain(it) for it in state.modes]}
    if state.config or state.unknown_config:
        event["configOptions"] = [codec.plain(it) for it in (*state.config, *state.unknown_config)]
    return event


class _Address(msgspec.Struct, rename="camel"):
    session_id: str


_read_address = msgspec.json.Decoder(_Address).decode
