"""`turn.files` and `tool.command`: the files of a session, and commands that run there.

A client that lends files has unsaved edits, so its files come first. If it lends none, the same service that a client
would lend reads and writes the files of the agent's machine: only inside the session's folders, with the same errors.

    async with tool.command(["make", "test"]) as command:
        result = await command.wait()

The place where a command runs and the way it is shown depend on the client:

| the client | the command runs | it is shown |
|---|---|---|
| lends terminals (version 1) | at the client | as the client's terminal |
| speaks version 2 | here | as a terminal of the agent: its bytes, and how it ended |
| any other | here | as text of the tool call |
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import codecs
import os
import shlex
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from accord.agent.record import Record
from accord.agent.remote_client import CommandResult, RemoteClient, RemoteTerminal, check_line
from accord.agent.tool import Tool
from accord.errors import ConnectionClosed, PeerError, RequestError
from accord.mistakes import check_sequence, check_text
from accord.printable import fenced
from accord.schema import v1
from accord.schema.base import JsonObject, Request
from accord.schema.sendable import with_meta
from accord.services.file_service import Files, RewindFilesResponse
from accord.services.service import ServedSession
from accord.services.terminal_service import Terminal
from accord.session import updates

T = TypeVar("T")

LIMIT = 1024 * 1024
"""Bytes of a command's output that are kept for its result."""


class CommandText:
    """The output of a command as content of a tool call."""

    def __init__(self, meta: JsonObject | None) -> None:
        self.text = ""
        self._meta = meta

    @property
    def content(self) -> updates.Content:
        """The output so far, in a block that Markdown does not interpret."""
        return updates.Content(updates.TextContent(fenced(self.text)), meta=self._meta)


class ToolCommand:
    """A command that a tool call runs and shows; `tool.command(...)` makes it."""

    def __init__(
        self,
        tool: Tool,
        command: Sequence[str],
        *,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        check_sequence("tool.command()", "a program and its arguments", command)
        if not command:
            raise ValueError("tool.command() takes a program and its arguments, got an empty list")
        self.command: list[str] = list(command)
        """The program and its arguments."""
        self._tool = tool
        self._surroundings = surroundings = tool._surroundings
        self._cwd = Path(surroundings.session.resolve(cwd or "."))
        self._env = dict(env or {})
        self._meta = meta
        self._remote: RemoteTerminal | None = None
        self._local: Terminal | None = None
        self._telling: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"ToolCommand({shlex.join(self.command)!r})"

    async def wait(self, timeout: float | None = None) -> CommandResult:  # noqa: ASYNC109
        """Wait until the command ends, or kill it after `timeout` seconds; returns its output and exit code either
        way.
        """
        if self._remote is not None:
            return await self._remote.run_out(timeout)
        local = self._started()
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                status = await local.wait()
        except TimeoutError:
            timed_out = True
            await local.kill()
            status = await local.wait()
        return CommandResult(local.text, status.exit_code, status.signal, timed_out, local.truncated)

    async def output(self) -> str:
        """The output so far, stdout and stderr together."""
        return (await self._remote.output()).output if self._remote is not None else self._started().text

    async def kill(self) -> None:
        """End the command and all its child processes. Its output can still be read."""
        await (self._remote.kill() if self._remote is not None else self._started().kill())

    def _started(self) -> Terminal:
        if self._local is None:
            raise RuntimeError("this command has not begun; write `async with tool.command(...) as command:`")
        return self._local

    # Its life

    async def __aenter__(self) -> Self:
        try:
            await (
                self._begin_there()
                if self._surroundings.session.client.capabilities.has("terminal")
                else self._begin_here()
            )
        # also on a cancel while it is being shown: it runs already, and nothing else would end it
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _begin_there(self) -> None:
        program, *arguments = self.command
        remote = self._surroundings.client.terminal(program, arguments, env=self._env, cwd=self._cwd, meta=self._meta)
        self._remote = await remote.__aenter__()
        await self._tool.terminal(remote)

    async def _begin_here(self) -> None:
        session, cancels = self._surroundings.session, self._surroundings.cancels
        dialect, send = self._surroundings.updates.dialect, self._surroundings.updates.send
        session.client.check_local("terminal", "tool.command()")
        terminal = Terminal(updates.TerminalId(f"term_{os.urandom(8).hex()}"), self.command, self._cwd, LIMIT)
        await terminal.start({**os.environ, **self._env})
        self._local = terminal
        begun = dialect.terminal_begins(terminal.id, shlex.join(self.command), str(self._cwd))
        if begun is None:
            text = CommandText(self._meta)
            await self._tool._show_command(text)
            following = self._follow_as_text(terminal, text)
        else:
            cancels.offer("terminal", terminal.id, lambda: self._kill_soon(terminal))
            await send(with_meta("tool.command", begun, self._meta))
            await self._tool._show_command(updates.Terminal(terminal.id))
            following = self._follow_as_bytes(terminal)
        self._telling = asyncio.create_task(following, name=f"output of {self.command[0]}")

    async def _end(self) -> None:
        if self._remote is not None:
            await self._remote.__aexit__(None, None, None)
        if self._local is not None:
            self._surroundings.cancels.withdraw("terminal", self._local.id)
            await self._local.release()
        if self._telling is not None:
            with suppress(ConnectionClosed):
                await self._telling

    def _kill_soon(self, terminal: Terminal) -> None:
        self._surroundings.session.errands.start(terminal.kill(), "accord terminal/cancel")

    async def _follow_as_bytes(self, terminal: Terminal) -> None:
        dialect: Any = self._surroundings.updates.dialect
        send = self._surroundings.updates.send
        async for data, is_whole in terminal.follow_bytes():
            await send(dialect.terminal_output(terminal.id, data, replaces=is_whole))
        await send(dialect.terminal_ended(terminal.id, await terminal.wait()))

    async def _follow_as_text(self, terminal: Terminal, shown: CommandText) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for data, is_whole in terminal.follow_bytes():
            before = "" if is_whole else shown.text
            grown = len(shown.text)
            shown.text = before + decoder.decode(data)
            self._tool._grown(len(shown.text) - grown)


_DISK = Files()
"""The files of this machine. It stores its data by session."""


async def restore_files(message_ids: Container[str], *, overwrite: bool) -> RewindFilesResponse:
    """Restore files that were written here to their contents before these messages of the user."""
    changes = [it for it in _DISK.changes if it.message_id in message_ids]
    left = await _DISK.rewind(changes, overwrite=overwrite)
    restored = dict.fromkeys(it.path for it in changes if it.path not in left)
    return RewindFilesResponse([str(path) for path in restored], [str(path) for path in left])


class TurnFiles:
    """The files of a session, for one turn.

    >>> async def upper(turn):
    ...     text = await turn.files.read("notes.txt")
    ...     await turn.files.write("notes.txt", text.upper())
    """

    def __init__(
        self, session: ServedSession, record: Record, client: RemoteClient, check_local: Callable[[str, str], None]
    ) -> None:
        self._session = session
        self._record = record
        self._client = client
        self._check_local = check_local

    async def read(
        self,
        path: str | PathLike[str],
        *,
        line: int | None = None,
        limit: int | None = None,
        meta: JsonObject | None = None,
    ) -> str:
        """Read a file's text, or `limit` lines of it starting at `line` (1-based).

        A relative path starts at `cwd`. `meta` is the `_meta` of the request to the client. Raises PeerError for a file
        that does not exist, cannot be read, or is outside the session's folders.
        """
        if self._client.can_read_files:
            return await self._client.read_text_file(path, line=line, limit=limit, meta=meta)
        check_line(line)
        self._check_local("fs.read_text_file", "turn.files.read()")
        reading = _DISK.read(self._session, self._resolve(path), line, limit)
        return await _as_answered(v1.ReadTextFileRequest, reading)

    async def write(self, path: str | PathLike[str], text: str, *, meta: JsonObject | None = None) -> None:
        """Write a file; it is created where it is missing. `meta` and errors are as in `read`."""
        check_text("turn.files.write()", text)
        if self._client.can_write_files:
            await self._client.write_text_file(path, text, meta=meta)
        else:
            self._check_local("fs.write_text_file", "turn.files.write()")
            writing = _DISK.write(self._session, self._resolve(path), text, message_id=self._record.message_id)
            await _as_answered(v1.WriteTextFileRequest, writing)

    def _resolve(self, path: str | PathLike[str]) -> str:
        return str(self._session.cwd / path)


async def _as_answered(message: type[Request[Any]], work: Awaitable[T]) -> T:
    """Run this; its errors are those that a client would answer with."""
    try:
        return await work
    except RequestError as error:
        refusal = PeerError(message.__method__, error.code, error.message, error.data)
        refusal.safe_to_tell = True  # a RequestError is made for the client
        raise refusal from error
