"""`tool.command`: runs a command of the agent, and shows it in a tool call.

    async with tool.command(["make", "test"]) as command:
        result = await command.wait()

Where it runs and how it is shown depends on the client:

| the client | the command runs | it is shown |
|---|---|---|
| lends terminals (version 1) | at the client | as the client's terminal |
| speaks version 2 | here | as a terminal of the agent: its bytes, and how it ended |
| any other | here | as text of the tool call |
"""

from __future__ import annotations

import asyncio
import codecs
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from accord.agent.remote_client import CommandResult, RemoteClient, RemoteTerminal, SessionClient
from accord.agent.session_activity import Cancellations
from accord.dialects import Dialect
from accord.errors import ConnectionClosed
from accord.mistakes import check_sequence
from accord.printable import fenced
from accord.services.terminal_service import Terminal
from accord.session import updates

LIMIT = 1024 * 1024
"""Bytes of a command's output that are kept for its result."""


class CommandText:
    """The output of a command as content of a tool call."""

    def __init__(self) -> None:
        self.text = ""

    @property
    def content(self) -> updates.Content:
        """The output so far, in a block that Markdown leaves as it is."""
        return updates.Content.of(fenced(self.text))


class CommandStage(msgspec.Struct, frozen=True):
    """What a command needs of its tool call and its session."""

    session: SessionClient
    client: RemoteClient
    dialect: Dialect
    cancels: Cancellations
    send: Callable[[Any], Awaitable[None]]
    """Sends an update of the session."""
    show: Callable[[updates.Terminal | CommandText], Awaitable[None]]
    """Adds content to the tool call."""
    show_remote: Callable[[RemoteTerminal], Awaitable[None]]
    """Shows a terminal of the client in the tool call."""
    grown: Callable[[int], None]
    """Content that is shown has grown by so many characters."""


class ToolCommand:
    """A command that a tool call runs and shows; `tool.command(...)` makes it."""

    def __init__(
        self,
        stage: CommandStage,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        check_sequence("tool.command()", "a program and its arguments", command)
        if not command:
            raise ValueError("tool.command() takes a program and its arguments, got an empty list")
        self.command: list[str] = list(command)
        """The program and its arguments."""
        self._stage = stage
        self._cwd = Path(stage.session.resolve(cwd or "."))
        self._env = dict(env or {})
        self._remote: RemoteTerminal | None = None
        self._local: Terminal | None = None
        self._telling: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"ToolCommand({shlex.join(self.command)!r})"

    async def wait(self, timeout: float | None = None) -> CommandResult:  # noqa: ASYNC109
        """Wait until the command ends, or kill it after `timeout` seconds; its output and exit code either way."""
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
        """End the command and everything that it started. Its output can still be read."""
        await (self._remote.kill() if self._remote is not None else self._started().kill())

    def _started(self) -> Terminal:
        if self._local is None:
            raise RuntimeError("this command has not begun; write `async with tool.command(...) as command:`")
        return self._local

    # Its life

    async def __aenter__(self) -> Self:
        try:
            await (
                self._begin_there() if self._stage.session.client.capabilities.has("terminal") else self._begin_here()
            )
        except BaseException:  # also a cancel while it is shown: it runs already, and nothing else would end it
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _begin_there(self) -> None:
        program, *arguments = self.command
        remote = self._stage.client.terminal(program, arguments, env=self._env, cwd=self._cwd)
        self._remote = await remote.__aenter__()
        await self._stage.show_remote(remote)

    async def _begin_here(self) -> None:
        stage = self._stage
        stage.session.client.check_local("terminal", "tool.command()")
        terminal = Terminal(updates.TerminalId(f"term_{os.urandom(8).hex()}"), self.command, self._cwd, LIMIT)
        await terminal.start({**os.environ, **self._env})
        self._local = terminal
        begun = stage.dialect.terminal_begins(terminal.id, shlex.join(self.command), str(self._cwd))
        if begun is None:
            text = CommandText()
            await stage.show(text)
            following = self._follow_as_text(terminal, text)
        else:
            stage.cancels.offer("terminal", terminal.id, lambda: self._kill_soon(terminal))
            await stage.send(begun)
            await stage.show(updates.Terminal(terminal.id))
            following = self._follow_as_bytes(terminal)
        self._telling = asyncio.create_task(following, name=f"output of {self.command[0]}")

    async def _end(self) -> None:
        if self._remote is not None:
            await self._remote.__aexit__(None, None, None)
        if self._local is not None:
            self._stage.cancels.withdraw("terminal", self._local.id)
            await self._local.release()
        if self._telling is not None:
            with suppress(ConnectionClosed):
                await self._telling

    def _kill_soon(self, terminal: Terminal) -> None:
        self._stage.session.errands.start(terminal.kill(), "accord terminal/cancel")

    async def _follow_as_bytes(self, terminal: Terminal) -> None:
        dialect, send = self._stage.dialect, self._stage.send
        async for data, is_whole in terminal.follow_bytes():
            await send(dialect.terminal_output(terminal.id, data, replaces=is_whole))
        await send(dialect.terminal_ended(terminal.id, await terminal.wait()))

    async def _follow_as_text(self, terminal: Terminal, shown: CommandText) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for data, is_whole in terminal.follow_bytes():
            before = "" if is_whole else shown.text
            grown = len(shown.text)
            shown.text = before + decoder.decode(data)
            self._stage.grown(len(shown.text) - grown)
