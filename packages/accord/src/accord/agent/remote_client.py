"""The client as an agent sees it: the files and terminals that it lends, and its capabilities.

A service that it does not lend raises `CapabilityMissing` before anything is sent. A terminal is always released: after
an error, after a cancel, and after a cancel that comes while the client is creating it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import msgspec

from accord._internal.tasks import Tasks
from accord.agent.agent_capabilities import Version
from accord.dialects import Dialect
from accord.dialects.v1_dialect import V1Dialect
from accord.engine.handlers import Interceptors, in_thread_if_answers
from accord.engine.peer import Peer
from accord.errors import AccordError, CapabilityMissing, RequestError
from accord.project.confined import is_unicode
from accord.schema import v1
from accord.schema.base import Json, JsonObject, Notification, Request
from accord.schema.capabilities import Capabilities
from accord.schema.sendable import check_meta, check_sendable, with_meta
from accord.services.service import ServedSession
from accord.session import updates

if TYPE_CHECKING:
    from accord.mcp.mcp_line import LinesToClient
    from accord.services.service import LocalHost


ResultT = TypeVar("ResultT")


class Requester(Protocol):
    """Sends requests and waits for their answers: a peer, or a turn, whose end cancels them."""

    def request(self, request: Request[ResultT], /, *, force: bool = False) -> Awaitable[ResultT]: ...

    def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Awaitable[Json]: ...


# Paths


Call = TypeVar("Call", bound="updates.ToolCallUpdate | v1.ToolCallUpdate")


def checked_folders(cwd: str, additional: Sequence[str] = ()) -> tuple[Path, ...]:
    """Return `cwd` and the additional directories; raises RequestError if one is not an absolute path."""
    others = (absolute(path, f"$.additionalDirectories[{place}]") for place, path in enumerate(additional))
    return (absolute(cwd, "$.cwd"), *others)


def absolute(path: str, place: str) -> Path:
    """Return a folder, which errors name by its place in a request."""
    # session-setup, Working Directory and Additional Workspace Roots: each "MUST be an absolute path".
    if not Path(path).is_absolute():
        raise RequestError.invalid_params(f"path must be absolute, got {path[:80]!r}", path=place)
    if "\0" in path or not is_unicode(path):
        raise RequestError.invalid_params("path contains a null byte or half a surrogate pair", path=place)
    return Path(path)


def with_absolute_paths(call: Call, cwd: Path) -> Call:
    """Resolve the relative paths in the details of a tool call against `cwd`."""
    # overview, Argument requirements: every path is absolute.
    content: Sequence[Any] = call.content or ()
    locations: Sequence[updates.ToolCallLocation] = call.locations or ()
    paths = [it.path for it in _diffs(content)] + [it.path for it in locations]
    if all(map(os.path.isabs, paths)):
        return call
    changed: dict[str, Any] = {}
    if content:
        changed["content"] = [_from(cwd, it) if isinstance(it, updates.TextDiff) else it for it in content]
    if locations:
        changed["locations"] = [_from(cwd, it) for it in locations]
    return msgspec.structs.replace(call, **changed)


def _diffs(content: Sequence[Any]) -> list[updates.TextDiff]:
    return [it for it in content if isinstance(it, updates.TextDiff)]


def _from(cwd: Path, place: Any) -> Any:
    return msgspec.structs.replace(place, path=str(cwd / place.path))


def check_line(line: int | None) -> None:
    """Raise ValueError for an impossible line number."""
    # overview, Argument requirements: the first line is line 1.
    if line is not None and line < 1:
        raise ValueError(f"line must be at least 1, got {line}")


# The client of a connection and of a session


class ConnectedClient(msgspec.Struct):
    """The client, as its connection sees it."""

    peer: Peer
    local: LocalHost | None = None
    """Services of this machine that replace those that the client does not lend."""
    interceptors: Interceptors | None = None
    """The handlers of single sessions; made with the first."""
    info: v1.Implementation | None = None
    """The client's name and version, from `initialize`."""
    meta: JsonObject = msgspec.field(default_factory=dict[str, Json])
    """The `_meta` of `initialize`."""
    version: Version = 1
    """The version of the protocol that this connection has."""
    mcp_lines: LinesToClient | None = None
    """The MCP connections to servers that the client itself offers; made when the first is needed."""

    def dialect(self) -> Dialect:
        """The dialect of this connection's sessions."""
        if self.version == 1:
            return V1Dialect()
        from accord.dialects.v2_dialect import V2Dialect  # loads the types of version 2

        return V2Dialect()

    def requester(self, dialect: Dialect | None = None) -> Requester:
        """Sends requests to the client in the types of version 1, whichever version it speaks."""
        if self.version == 1:
            return self.peer
        from accord.dialects.v2_requests import V2Client

        return V2Client(self.peer, dialect)

    def on_in_session(self, session_id: v1.SessionId, message: Any, handler: Callable[..., Any]) -> Callable[[], None]:
        """Handle this message in one session from now on; calling the result removes the handler."""
        handler = in_thread_if_answers(issubclass(message, Request), handler)
        if self.version == 2:
            from accord.dialects.v1_handlers_on_v2 import handler_on_v2

            message, handler = handler_on_v2(message, handler, "agent")
        if self.interceptors is None:
            self.interceptors = Interceptors(is_innermost=True)  # the author's `before` functions come first
            self.peer.handle(self.interceptors)
        return self.interceptors.of_session(message, session_id, handler)

    @property
    def capabilities(self) -> Capabilities:
        return self.peer.capabilities

    def lends(self, capability: str) -> bool:
        """Whether requests that need this capability are answered, by the client or by this machine."""
        return self.capabilities.has(capability) or (self.local is not None and self.local.capabilities.has(capability))

    def check_local(self, capability: str, action: str) -> None:
        """Raise CapabilityMissing if `Agent(local=[...])` omits the service for this capability."""
        if self.local is not None and not self.local.capabilities.has(capability):
            raise CapabilityMissing(capability, action)

    def lines(self) -> LinesToClient:
        """The connections with MCP servers that the client itself offers."""
        from accord.mcp.mcp_line import LinesToClient

        if self.mcp_lines is None:
            self.mcp_lines = LinesToClient(self.peer)
            self.peer.handle(self.mcp_lines.handlers())
        return self.mcp_lines

    def requester_for(self, session: ServedSession, dialect: Dialect) -> Requester:
        """The requester that answers this session's requests."""
        requester = self.requester(dialect)
        if self.local is None:
            return requester
        from accord.services.service import HelpedPeer

        return HelpedPeer(requester, self.peer, self.local, session)


class SessionClient(msgspec.Struct, frozen=True):
    """The client, as one session sees it: the needs of `RemoteClient` and its terminals."""

    client: ConnectedClient
    requester: Requester
    """Sends requests that outlast a turn: a turn's end does not cancel them."""
    errands: Tasks
    """Work that no request waits for, such as releasing a terminal."""
    session_id: v1.SessionId
    cwd: Path

    def resolve(self, path: str | PathLike[str]) -> str:
        """Return this path as an absolute one; a relative path starts at `cwd`."""
        return str(self.cwd / path)


# Terminals


log = logging.getLogger("accord")

PATIENCE = 5.0
"""Seconds that a client may take to create or release a terminal that is no longer needed."""


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a command."""

    output: str
    """The output of the command, stdout and stderr together."""
    exit_code: int | None
    """Its exit code; None if a signal ended it."""
    signal: str | None = None
    """The name of the signal that ended it; None if it exited normally."""
    timed_out: bool = False
    """Whether it was killed because it took too long."""
    truncated: bool = False
    """Whether the beginning of the output was dropped."""


class RemoteTerminal:
    """A command that the client runs for us while a block lasts."""

    def __init__(self, session: SessionClient, requester: Requester, request: v1.CreateTerminalRequest) -> None:
        self.is_released = False
        """Whether the client was asked to release it."""
        self._before_release: list[Callable[[], Awaitable[None]]] = []
        self._session = session
        self._requester = requester
        self._request = request
        self._id: v1.TerminalId | None = None

    @property
    def id(self) -> v1.TerminalId:
        """The client's id of the terminal."""
        if self._id is None:
            raise RuntimeError("the terminal exists only inside its `async with` block")
        return self._id

    async def output(self, *, meta: JsonObject | None = None) -> v1.TerminalOutputResponse:
        """The output so far, and how the command ended if it has."""
        request = v1.TerminalOutputRequest(self._session.session_id, self.id)
        return await self._requester.request(with_meta("terminal.output", request, meta))

    async def wait(self, *, meta: JsonObject | None = None) -> v1.WaitForTerminalExitResponse:
        """Wait until the command ends."""
        request = v1.WaitForTerminalExitRequest(self._session.session_id, self.id)
        return await self._requester.request(with_meta("terminal.wait", request, meta))

    async def kill(self, *, meta: JsonObject | None = None) -> None:
        """End the command. Its output can still be read."""
        request = v1.KillTerminalRequest(self._session.session_id, self.id)
        await self._requester.request(with_meta("terminal.kill", request, meta))

    async def run_out(self, timeout: float | None = None) -> CommandResult:  # noqa: ASYNC109
        """Wait until the command ends, or kill it after `timeout` seconds; returns its output and exit code."""
        # terminals, Building a Timeout: wait and timer race; then kill, read the output, release.
        status: v1.WaitForTerminalExitResponse | v1.TerminalExitStatus | None = None
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                status = await self.wait()
        except TimeoutError:
            timed_out = True
            await self.kill()
        output = await self.output()
        # terminals: the status is optional in the output, and some clients send it only in the answer to a wait.
        status = output.exit_status or status or v1.TerminalExitStatus()
        return CommandResult(output.output, status.exit_code, status.signal, timed_out, output.truncated)

    async def __aenter__(self) -> Self:
        if not self._session.client.lends("terminal"):
            self._session.client.capabilities.require("terminal", self._request.__method__)
        creating = self._session.errands.start(self._create(), "accord terminal/create")
        try:
            await asyncio.shield(creating)
        except asyncio.CancelledError:
            # The client may have created it before the cancellation arrives; nothing else would release it.
            await self._release_late(creating)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_released:
            self.is_released = True
            releasing = self._session.errands.start(self._release(), "accord terminal/release")
            await asyncio.wait([releasing], timeout=PATIENCE)

    async def _create(self) -> None:
        self._id = (await self._session.requester.request(self._request)).terminal_id

    async def _release_late(self, creating: asyncio.Task[None]) -> None:
        self._session.errands.start(self._release_after(creating), "accord terminal/release")

    async def _release_after(self, creating: asyncio.Task[None]) -> None:
        await asyncio.wait([creating], timeout=PATIENCE)
        if creating.done() and not creating.cancelled() and creating.exception() is None:
            await self._release()

    async def _release(self) -> None:
        # terminals, Executing Commands: the agent must release a terminal that it no longer needs.
        self.is_released = True
        for call in self._before_release:
            await call()
        try:
            await self._session.requester.request(v1.ReleaseTerminalRequest(self._session.session_id, self.id))
        except AccordError as error:
            log.info("releasing the terminal %s failed: %s", self.id, error)


def before_release(terminal: RemoteTerminal, call: Callable[[], Awaitable[None]]) -> None:
    """Call this before the terminal is released: something still needs its output."""
    terminal._before_release.append(call)  # pyright: ignore[reportPrivateUsage]


# The author's view


class ClientLink:
    """The client: its declarations, and a way to send it any message."""

    def __init__(self, client: ConnectedClient, requester: Requester) -> None:
        self._client = client
        self._requester = requester

    @property
    def info(self) -> v1.Implementation | None:
        """The client's name and version, if it sent them."""
        return self._client.info

    @property
    def meta(self) -> dict[str, Json]:
        """The `_meta` of its `initialize`, where clients announce extensions; empty if it had none."""
        return self._client.meta

    @property
    def version(self) -> int:
        """The version of the protocol that it speaks: 1 or 2."""
        return self._client.version

    @property
    def capabilities(self) -> Capabilities:
        """The client's capabilities, by name: `client.capabilities.has("session.notices")`."""
        return self._client.capabilities

    @property
    def can_read_files(self) -> bool:
        """Whether it lends files to read, or `Agent(local=...)` stands in."""
        return self._client.lends("fs.read_text_file")

    @property
    def can_write_files(self) -> bool:
        """Whether files can be written."""
        return self._client.lends("fs.write_text_file")

    @property
    def can_run_commands(self) -> bool:
        """Whether commands can be run."""
        return self._client.lends("terminal")

    async def request(self, request: Request[ResultT], *, force: bool = False) -> ResultT:
        """Send any request."""
        check_sendable("client.request()", request)
        return await self._requester.request(request, force=force)

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Send any notification."""
        check_sendable("client.notify()", notification)
        await self._client.peer.notify(notification, force=force)

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Send any request, in plain JSON values."""
        return await self._requester.request_raw(method, params)

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Send any notification, in plain JSON values."""
        await self._client.peer.notify_raw(method, params)


class RemoteClient(ClientLink):
    """The client, as one session uses it.

    >>> async def upper(turn):
    ...     text = await turn.client.read_text_file("notes.txt")
    ...     await turn.client.write_text_file("notes.txt", text.upper())
    """

    def __init__(self, session: SessionClient, requester: Requester) -> None:
        super().__init__(session.client, requester)
        self._session = session

    # Files

    async def read_text_file(
        self,
        path: str | PathLike[str],
        *,
        line: int | None = None,
        limit: int | None = None,
        meta: JsonObject | None = None,
    ) -> str:
        """Read a file's text as the editor has it, or `limit` lines of it starting at `line` (1-based)."""
        check_line(line)
        session = self._session
        request = v1.ReadTextFileRequest(session.session_id, session.resolve(path), line, limit)
        return (await self._requester.request(with_meta("client.read_text_file", request, meta))).content

    async def write_text_file(self, path: str | PathLike[str], content: str, *, meta: JsonObject | None = None) -> None:
        """Write a file through the editor; it is created if it is missing."""
        session = self._session
        request = v1.WriteTextFileRequest(session.session_id, session.resolve(path), content)
        await self._requester.request(with_meta("client.write_text_file", request, meta))

    # Terminals

    def terminal(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        output_byte_limit: int | None = None,
        meta: JsonObject | None = None,
    ) -> RemoteTerminal:
        """Run a command at the client, as a context manager that releases the terminal at its end.

        >>> async def test(turn):
        ...     async with turn.client.terminal("make", ["test"]) as terminal:
        ...         status = await terminal.wait()
        """
        check_meta("client.terminal(meta=...)", meta)
        request = v1.CreateTerminalRequest(
            self._session.session_id,
            command,
            list(args),
            [v1.EnvVariable(name, value) for name, value in (env or {}).items()],
            None if cwd is None else self._session.resolve(cwd),
            output_byte_limit,
            meta=meta,
        )
        return RemoteTerminal(self._session, self._requester, request)

    async def run(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        output_byte_limit: int | None = None,
        meta: JsonObject | None = None,
    ) -> CommandResult:
        """Run a command to its end, or kill it after `timeout` seconds; returns its output either way."""
        terminal = self.terminal(command, args, env=env, cwd=cwd, output_byte_limit=output_byte_limit, meta=meta)
        async with terminal:
            return await terminal.run_out(timeout)
