"""The client as an agent holds it: the files and terminals that it lends, and what it said it can do.

What it does not lend raises `CapabilityMissing` before anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TypeVar

from accord.agent.asks import Asks
from accord.agent.connected_client import ConnectedClient, SessionClient
from accord.agent.paths import check_line
from accord.agent.remote_terminal import CommandResult, RemoteTerminal
from accord.capabilities import Capabilities
from accord.schema import v1
from accord.schema.base import Json, Notification, Request
from accord.schema.sendable import check_sendable

ResultT = TypeVar("ResultT")


class ClientLink:
    """The client: what it declared, and any message to it."""

    def __init__(self, client: ConnectedClient, asks: Asks) -> None:
        self._client = client
        self._asks = asks

    @property
    def info(self) -> v1.Implementation | None:
        """Its name and version, where it told them."""
        return self._client.info

    @property
    def version(self) -> int:
        """The version of the protocol that it speaks: 1 or 2."""
        return self._client.version

    @property
    def capabilities(self) -> Capabilities:
        """What it declared, by name: `client.capabilities.has("session.notices")`."""
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
        """Any request."""
        check_sendable("client.request()", request)
        return await self._asks.request(request, force=force)

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Any notification."""
        check_sendable("client.notify()", notification)
        await self._client.peer.notify(notification, force=force)

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Any request, in plain JSON values."""
        return await self._asks.request_raw(method, params)

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Any notification, in plain JSON values."""
        await self._client.peer.notify_raw(method, params)


class RemoteClient(ClientLink):
    """The client, as one session uses it.

    >>> async def upper(turn):
    ...     text = await turn.client.read_text_file("notes.txt")
    ...     await turn.client.write_text_file("notes.txt", text.upper())
    """

    def __init__(self, session: SessionClient, asks: Asks) -> None:
        super().__init__(session.client, asks)
        self._session = session

    # Files

    async def read_text_file(
        self, path: str | PathLike[str], *, line: int | None = None, limit: int | None = None
    ) -> str:
        """A file's text as the editor has it, or `limit` lines of it from `line` (1-based) on."""
        check_line(line)
        wanted = self._session.resolve(path)
        return (await self._asks.request(v1.ReadTextFileRequest(self._session.session_id, wanted, line, limit))).content

    async def write_text_file(self, path: str | PathLike[str], content: str) -> None:
        """Write a file through the editor; it is created where it is missing."""
        await self._asks.request(
            v1.WriteTextFileRequest(self._session.session_id, self._session.resolve(path), content)
        )

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
        """A command that the client runs, as a context manager that releases the terminal at its end.

        >>> async def test(turn):
        ...     async with turn.client.terminal("make", ["test"]) as terminal:
        ...         status = await terminal.wait()
        """
        request = v1.CreateTerminalRequest(
            self._session.session_id,
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
