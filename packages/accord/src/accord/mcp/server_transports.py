"""Connections to MCP servers: the official package's transport for a description, held open by one task.

The package's contexts must be left by the task that entered them, because of their cancel scopes. So each connection
has an owner task: it enters the contexts, reports that, waits until it is asked to stop, and leaves them. The task is
never cancelled; while it is still connecting, its scope is cancelled from outside.

A server's process inherits our standard error, as in the package: its output there is for the user. A pipe or a file
gets it unchanged. A terminal would obey an escape sequence in it, so there the server writes into a pipe, and a thread
copies that through `printable`. It is a thread, because a terminal that accepts nothing (Ctrl-S) must delay only that
server, and not the event loop.
"""

from __future__ import annotations

import asyncio
import codecs
import math
import os
import select
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import Context
from typing import TYPE_CHECKING, TextIO, cast

import msgspec

from accord.engine.peer import Peer
from accord.errors import McpServerError
from accord.installation import mcp_is_installed, needs_extra
from accord.printable import Printable
from accord.schema import v1
from accord.schema.base import Unknown

if TYPE_CHECKING:
    import anyio
    from mcp import Client
    from mcp.client._transport import Transport, TransportStreams

    from accord.mcp.mcp_line import LinesToClient


class Surroundings(msgspec.Struct, frozen=True):
    """A session, as its MCP servers see it."""

    peer: Peer
    """The client, which asks its user the servers' questions."""
    session_id: v1.SessionId
    """The session's id."""
    roots: Sequence[str]
    """The session's folders, absolute; server processes start in the first."""
    lines: LinesToClient | None = None
    """Connects with servers that the client itself offers; None if it cannot."""

    def can_elicit(self) -> bool:
        """Whether the client can ask its user anything."""
        has = self.peer.capabilities.has
        return has("elicitation.form") or has("elicitation.url")


def transport_for(server: v1.McpServer | Unknown, surroundings: Surroundings) -> Transport:
    """The transport to this server; it is not started before it is entered. Raises McpServerError."""
    if not mcp_is_installed():
        raise McpServerError(name_of(server), needs_extra("mcp", "using an MCP server"))
    match server:
        case v1.McpServerStdio():
            return _process(server, surroundings.roots[0] if surroundings.roots else None)
        case v1.McpServerHttp():
            return _streamable_http(server)
        case v1.McpServerSse():
            return _sse(server)
        case v1.McpServerAcp() if surroundings.lines is not None:
            return surroundings.lines.open(server)
        case _:
            raise McpServerError(name_of(server), "unknown type of server; this agent can use stdio, http, sse and acp")


def name_of(server: v1.McpServer | Unknown) -> str:
    """The server's name, as errors show it."""
    return "a server of an unknown type" if isinstance(server, Unknown) else server.name


@asynccontextmanager
async def _process(server: v1.McpServerStdio, folder: str | None) -> AsyncGenerator[TransportStreams]:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    variables = {variable.name: variable.value for variable in server.env}
    parameters = StdioServerParameters(command=server.command, args=server.args, env=variables, cwd=folder)
    async with server_stderr() as errlog, stdio_client(parameters, errlog=errlog) as streams:
        yield streams


@asynccontextmanager
async def _streamable_http(server: v1.McpServerHttp) -> AsyncGenerator[TransportStreams]:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client  # the package exports it only here

    headers = {header.name: header.value for header in server.headers}
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams


def _sse(server: v1.McpServerSse) -> AbstractAsyncContextManager[TransportStreams]:
    from mcp.client.sse import sse_client

    return sse_client(server.url, headers={header.name: header.value for header in server.headers})


LAST_WORDS = 1.0
"""Seconds for the server's output before it ended. A child process may hold the pipe open for longer."""

_CHUNK = 64 * 1024


@asynccontextmanager
async def server_stderr() -> AsyncGenerator[TextIO]:
    """A file for the standard error of a server that ends before this does."""
    # Not sys.stderr first: a program may have replaced it with something that a process cannot write to.
    ours = sys.__stderr__ or sys.stderr
    if not _is_terminal(ours):
        yield ours
        return
    source, sink = os.pipe()
    copying = threading.Thread(target=_copy, args=(source, ours.fileno()), name="accord MCP stderr", daemon=True)
    copying.start()
    file = os.fdopen(sink, "w")
    try:
        yield file
    finally:
        file.close()
        await asyncio.to_thread(copying.join, LAST_WORDS)


def _is_terminal(file: TextIO | None) -> bool:
    try:
        return file is not None and file.isatty()
    except ValueError:  # it is closed
        return False


def _copy(source: int, terminal: int) -> None:
    text, decoder = Printable(), codecs.getincrementaldecoder("utf-8")("replace")
    with os.fdopen(source, "rb", buffering=0) as pipe:
        while chunk := pipe.read(_CHUNK):
            _write(terminal, text.add(decoder.decode(chunk)))
        _write(terminal, text.add(decoder.decode(b"", final=True)) + text.rest())


def _write(terminal: int, text: str) -> None:
    rest = text.encode("utf-8", "replace")
    with suppress(OSError):  # the terminal is gone: the server may continue
        while rest:
            try:
                rest = rest[os.write(terminal, rest) :]
            except BlockingIOError:  # the terminal is shared with a program that made it non-blocking
                select.select([], [terminal], [])


CLOSING = 10.0
"""Seconds that a server has to end before its contexts are cancelled; the package's own steps take up to six."""

Connect = Callable[[], AbstractAsyncContextManager["Client"]]
"""Makes the contexts of a connection; nothing happens before they are entered."""


class SessionTask:
    """A connection that is opening, open, or closed."""

    def __init__(self, name: str, connect: Connect, deadline: float) -> None:
        self.client: Client | None = None
        """The package's client while the connection is open, else None."""
        self.problem: str | None = None
        """Why the connection has ended, unless we closed it."""
        self._connect = connect
        self._deadline = deadline
        self._settled = asyncio.Event()
        self._stop = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        # The task lives as long as the session, so it must not inherit the context of the request that starts it.
        self._owner = asyncio.create_task(self._own(), name=f"accord mcp {name}", context=Context())

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended or could not be opened."""
        return self._settled.is_set() and self.client is None

    async def settled(self) -> None:
        """Wait until the connection is open or has failed."""
        await self._settled.wait()

    def lose(self, problem: str) -> None:
        """End the connection, because the server is gone."""
        if self.problem is None:
            self.problem = problem
        self.client = None
        self._settled.set()
        self._stop.set()

    async def close(self) -> None:
        """Close the connection, and wait until the server has ended."""
        self._stop.set()
        if not self._settled.is_set() and self._scope is not None:
            self._scope.cancel()
        done, _ = await asyncio.wait([self._owner], timeout=CLOSING)
        if not done and self._scope is not None:
            self._scope.cancel()
            await asyncio.wait([self._owner], timeout=CLOSING)

    async def _own(self) -> None:
        try:
            await self._hold()
        except Exception as error:  # a server's failure must not become the session's
            if not self._stop.is_set():
                self.problem = problem(error)
        finally:
            self.client = None
            self._settled.set()

    async def _hold(self) -> None:
        connecting = self._connect()
        import anyio

        with anyio.CancelScope(deadline=anyio.current_time() + self._deadline) as self._scope:
            async with connecting as client:
                self._scope.deadline = math.inf
                self.client = client
                self._settled.set()
                await self._stop.wait()
        if self._scope.cancelled_caught and not self._stop.is_set():
            raise TimeoutError(f"did not answer within {self._deadline:g} seconds")


def problem(error: BaseException) -> str:
    """Return what went wrong, in one line; of a group of errors, the first."""
    if isinstance(error, BaseExceptionGroup):
        return problem(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, McpServerError):
        return error.problem
    return str(error) or type(error).__name__
