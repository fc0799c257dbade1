"""The client as an agent holds it: the files and terminals that it lends, and what it said it can do.

What it does not lend raises `CapabilityMissing` before anything is sent. A terminal is released whatever happens: an
error, a cancel, and also a cancel while it is being created.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import msgspec

from accord.agent.paths import check_line
from accord.capabilities import Capabilities
from accord.errors import AccordError
from accord.schema import v1
from accord.schema.base import Json, Notification, Request

if TYPE_CHECKING:
    from accord.agent.connection import AgentConnection
    from accord.agent.session import Session

log = logging.getLogger("accord")

ResultT = TypeVar("ResultT")

PATIENCE = 5.0
"""Seconds that a client may take to create or to release a terminal that nobody wants any more."""


class Asks(Protocol):
    """Whoever sends requests and waits for their answers: a peer, or a turn, with which they are given up."""

    def request(self, request: Request[ResultT], /, *, force: bool = False) -> Awaitable[ResultT]: ...

    def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Awaitable[Json]: ...


class ClientLink:
    """The client, whoever asks it: what it said of itself, and any message to it."""

    def __init__(self, service: AgentConnection, asks: Asks) -> None:
        self._service = service
        self._asks = asks

    @property
    def info(self) -> v1.Implementation | None:
        """Its name and version, where it told them."""
        return self._service.client_info

    @property
    def capabilities(self) -> Capabilities:
        """What it declared, by name: `client.capabilities.has("session.notices")`."""
        return self._service.peer.capabilities

    @property
    def can_read_files(self) -> bool:
        """Whether it lends files to read, or `Agent(local=...)` stands in."""
        return self._lends("fs.read_text_file")

    @property
    def can_write_files(self) -> bool:
        return self._lends("fs.write_text_file")

    @property
    def can_run_commands(self) -> bool:
        return self._lends("terminal")

    def _lends(self, what: str) -> bool:
        local = self._service.agent.local
        return self.capabilities.has(what) or (local is not None and local.capabilities.has(what))

    async def request(self, request: Request[ResultT], *, force: bool = False) -> ResultT:
        """Any request."""
        return await self._asks.request(request, force=force)

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Any notification."""
        await self._service.peer.notify(notification, force=force)

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Any request, in plain JSON values."""
        return await self._asks.request_raw(method, params)

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Any notification, in plain JSON values."""
        await self._service.peer.notify_raw(method, params)


class RemoteClient(ClientLink):
    """The client, as one session uses it.

    >>> async def upper(turn):
    ...     text = await turn.client.read_text_file("notes.txt")
    ...     await turn.client.write_text_file("notes.txt", text.upper())
    """

    def __init__(self, session: Session, asks: Asks) -> None:
        super().__init__(session.service, asks)
        self._session = session

    # Files

    async def read_text_file(
        self, path: str | PathLike[str], *, line: int | None = None, limit: int | None = None
    ) -> str:
        """A file's text as the editor has it, or `limit` lines of it from `line` (1-based) on."""
        check_line(line)
        wanted = self._session.resolve(path)
        return (await self._asks.request(v1.ReadTextFileRequest(self._session.id, wanted, line, limit))).content

    async def write_text_file(self, path: str | PathLike[str], content: str) -> None:
        """Write a file through the editor; it is created where it is missing."""
        await self._asks.request(v1.WriteTextFileRequest(self._session.id, self._session.resolve(path), content))

    # Terminals

    def terminal(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        output_byte_limit: int | None = None,
    ) -> RemoteTerminal:
        """A command run by the client, as a context manager that ends with its release.

        >>> async def test(turn):
        ...     async with turn.client.terminal("make", ["test"]) as terminal:
        ...         status = await terminal.wait()
        """
        request = v1.CreateTerminalRequest(
            self._session.id,
            command,
            list(args),
            [v1.EnvVariable(name, value) for name, value in (env or {}).items()],
            None if cwd is None else self._session.resolve(cwd),
            output_byte_limit,
        )
        return RemoteTerminal(self._session, self._asks, request)

    async def run(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        output_byte_limit: int | None = None,
    ) -> CommandResult:
        """Run a command to its end, or kill it after `timeout` seconds; its output either way."""
        terminal = self.terminal(command, args, env=env, cwd=cwd, output_byte_limit=output_byte_limit)
        async with terminal:
            return await terminal.run_out(timeout)


class CommandResult(msgspec.Struct, frozen=True):
    """How a command went."""

    output: str
    exit_code: int | None
    """None if a signal ended it."""
    signal: str | None = None
    timed_out: bool = False
    """Whether it was killed for taking too long."""
    truncated: bool = False
    """Whether the beginning of the output was dropped."""


class RemoteTerminal:
    """A command that the client runs for us, from `async with` to its end."""

    def __init__(self, session: Session, asks: Asks, request: v1.CreateTerminalRequest) -> None:
        self.is_released = False
        self._session = session
        self._asks = asks
        self._request = request
        self._id: v1.TerminalId | None = None

    @property
    def id(self) -> v1.TerminalId:
        """What the client calls it."""
        if self._id is None:
            raise RuntimeError("a terminal is there inside of its `async with`")
        return self._id

    async def output(self) -> v1.TerminalOutputResponse:
        """The output so far, and how the command ended if it has."""
        return await self._asks.request(v1.TerminalOutputRequest(self._session.id, self.id))

    async def wait(self) -> v1.WaitForTerminalExitResponse:
        """Wait until the command ends."""
        return await self._asks.request(v1.WaitForTerminalExitRequest(self._session.id, self.id))

    async def kill(self) -> None:
        """End the command. Its output can still be read."""
        await self._asks.request(v1.KillTerminalRequest(self._session.id, self.id))

    async def run_out(self, timeout: float | None = None) -> CommandResult:  # noqa: ASYNC109
        """Wait until the command ends, or kill it after `timeout` seconds; what came of it."""
        # terminals, Building a Timeout: wait and timer race; then kill, read the output, release.
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                await self.wait()
        except TimeoutError:
            timed_out = True
            await self.kill()
        output = await self.output()
        status = output.exit_status or v1.TerminalExitStatus()
        return CommandResult(output.output, status.exit_code, status.signal, timed_out, output.truncated)

    async def __aenter__(self) -> Self:
        if not self._session.client.can_run_commands:
            self._session.client.capabilities.require("terminal", self._request.__method__)
        creating = self._session.service.errands.start(self._create(), "accord terminal/create")
        try:
            await asyncio.shield(creating)
        except asyncio.CancelledError:
            # It may exist by the time that the client hears of the cancel, and nobody else would release it.
            await self._given_up(creating)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_released:
            self.is_released = True
            releasing = self._session.service.errands.start(self._release(), "accord terminal/release")
            await asyncio.wait([releasing], timeout=PATIENCE)

    async def _create(self) -> None:
        self._id = (await self._session.asks.request(self._request)).terminal_id

    async def _given_up(self, creating: asyncio.Task[None]) -> None:
        self._session.service.errands.start(self._release_after(creating), "accord terminal/release")

    async def _release_after(self, creating: asyncio.Task[None]) -> None:
        await asyncio.wait([creating], timeout=PATIENCE)
        if creating.done() and not creating.cancelled() and creating.exception() is None:
            await self._release()

    async def _release(self) -> None:
        # terminals, Executing Commands: the agent must release a terminal that it no longer needs.
        self.is_released = True
        try:
            await self._session.asks.request(v1.ReleaseTerminalRequest(self._session.id, self.id))
        except AccordError as error:
            log.info("releasing the terminal %s: %s", self.id, error)
