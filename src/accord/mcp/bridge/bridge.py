"""`Bridge`: the socket that shims connect with, and the servers behind it."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import secrets
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from accord.mcp.bridge import shim
from accord.mcp.over_acp.tool_server import ToolServer
from accord.schema import v1
from accord.tasks import Tasks

CONNECTIONS = 64
"""Connections that may be open at a time."""

TOKEN_WITHIN = 10.0
"""Seconds until a connection has to have said its token."""

LINE = 16 * 1024 * 1024
"""Bytes that one MCP message may have."""

WAITING = 64
"""Messages that may wait for a server to read them."""

log = logging.getLogger("accord")


class Bridge:
    """Servers of this program, each reached by a token; made with its socket open, so that no shim comes too early."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._servers: dict[str, ToolServer] = {}
        self._open: set[asyncio.Task[None]] = set()
        self._folder: str | None = None
        self._socket = self._bound()
        self._accepting = tasks.start(self._accept(), "accord mcp bridge")

    def add(self, server: ToolServer) -> v1.McpServerStdio:
        """A description of this server for an agent that starts a process."""
        token = secrets.token_urlsafe(32)
        self._servers[token] = server
        variables = [v1.EnvVariable("ACCORD_MCP_TOKEN", token)]
        return v1.McpServerStdio(server.name, sys.executable, ["-I", "-S", shim.__file__, self.address], variables)

    @property
    def address(self) -> str:
        """Where shims connect: a path, or a port where there are no Unix sockets."""
        name = self._socket.getsockname()
        return name if isinstance(name, str) else str(name[1])

    def close(self) -> None:
        """Close the socket, and end all connections."""
        for task in [self._accepting, *self._open]:
            task.cancel()
        self._socket.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _bound(self) -> socket.socket:
        if sys.platform != "win32":
            self._folder = tempfile.mkdtemp(prefix="accord-mcp-")  # mode 0700
            bound = socket.socket(socket.AF_UNIX)
            bound.bind(str(Path(self._folder) / "socket"))
        else:
            bound = socket.socket()
            bound.bind(("127.0.0.1", 0))
        bound.listen(CONNECTIONS)
        bound.setblocking(False)
        return bound

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            link, _ = await loop.sock_accept(self._socket)
            if len(self._open) >= CONNECTIONS:
                link.close()
                continue
            task = self._tasks.start(self._serve(link), "accord mcp bridge connection")
            if not task.done():
                self._open.add(task)
                task.add_done_callback(self._open.discard)

    async def _serve(self, link: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=link, limit=LINE)
        try:
            async with asyncio.timeout(TOKEN_WITHIN):
                server = self._meant(await reader.readline())
            if server is not None:
                await _run(server, reader, writer)
        except (OSError, ValueError, TimeoutError) as error:  # ValueError: a line is too long
            log.info("an MCP connection over the bridge has ended: %s", error or type(error).__name__)
        except Exception:  # a server's own fault must not become the client's
            log.exception("an MCP server has failed")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _meant(self, line: bytes) -> ToolServer | None:
        said = line.strip()
        found = [server for token, server in self._servers.items() if hmac.compare_digest(token.encode(), said)]
        return found[0] if found else None


async def _run(server: ToolServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Run a server over a socket: each message is a line of JSON."""
    import anyio

    into, read = anyio.create_memory_object_stream[Any](WAITING)
    write, out_of = anyio.create_memory_object_stream[Any](WAITING)
    with into, read, write, out_of:
        copying = [asyncio.create_task(_read(reader, into)), asyncio.create_task(_write(out_of, writer))]
        try:
            await server.run(read, write)
            write.close()
            await copying[1]
        finally:
            for task in copying:
                task.cancel()
            await asyncio.gather(*copying, return_exceptions=True)


async def _read(reader: asyncio.StreamReader, into: Any) -> None:
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    with into, contextlib.suppress(OSError, ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while line := await reader.readline():
            try:
                message: Any = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except Exception as error:  # the package answers it, if it can
                message = error
            await into.send(message)


async def _write(out_of: Any, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        async for message in out_of:
            writer.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await writer.drain()
