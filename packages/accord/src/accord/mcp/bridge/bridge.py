"""`Bridge`: the private socket that shims connect with, and the servers behind it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import Any

from accord._internal.tasks import Tasks
from accord.callback_socket import TOKEN, CallbackSocket
from accord.mcp.bridge import shim
from accord.mcp.over_acp.tool_server import ToolServer
from accord.schema import v1

LINE = 16 * 1024 * 1024
"""Bytes that one MCP message may have."""

WAITING = 64
"""Messages that may wait for a server to read them."""


class Bridge:
    """Servers of this program, each reached by a token."""

    def __init__(self, tasks: Tasks) -> None:
        self._socket = CallbackSocket("mcp bridge", tasks, limit=LINE)
        self.close = self._socket.close
        """Close the socket, and end all connections."""

    def add(self, server: ToolServer) -> v1.McpServerStdio:
        """A description of this server for an agent that starts a process."""
        token = self._socket.add(functools.partial(_run, server))
        program, *arguments = self._socket.command(shim.__file__)
        return v1.McpServerStdio(server.name, program, arguments, [v1.EnvVariable(TOKEN, token)])


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
