"""Agents and clients as programs: their connections over standard input and output."""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from accord.compat.acp.agent.connection import AgentSideConnection
from accord.compat.acp.client.connection import ClientSideConnection
from accord.compat.acp.connection import Connection, MethodHandler, StreamObserver
from accord.compat.acp.transports import spawn_stdio_transport

__all__ = ["spawn_agent_process", "spawn_client_process", "spawn_stdio_connection", "stdio_streams"]


async def stdio_streams(limit: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Our own standard input and output as asyncio's streams. `limit` is the longest line of the reader.

    `run_agent` without streams does not need them: it reads lines of any length, and moves stray prints away.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader() if limit is None else asyncio.StreamReader(limit=limit)
    if sys.platform == "win32":
        raise NotImplementedError("stdio_streams: on Windows call run_agent without streams")
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return reader, asyncio.StreamWriter(transport, cast("Any", protocol), None, loop)


@asynccontextmanager
async def spawn_stdio_connection(
    handler: MethodHandler,
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    observers: list[StreamObserver] | None = None,
    **transport_kwargs: Any,
) -> AsyncGenerator[tuple[Connection, asyncio.subprocess.Process]]:
    """Start a program; a connection to it that calls `handler`, and its process."""
    async with (
        spawn_stdio_transport(command, *args, env=env, cwd=cwd, **transport_kwargs) as (reader, writer, process),
        Connection(handler, writer, reader, observers=observers, role="client") as connection,
    ):
        yield connection, process


@asynccontextmanager
async def spawn_agent_process(
    to_client: Any,
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    transport_kwargs: Mapping[str, Any] | None = None,
    **connection_kwargs: Any,
) -> AsyncGenerator[tuple[ClientSideConnection, asyncio.subprocess.Process]]:
    """Start an agent; the client's connection to it, and its process."""
    options = dict(transport_kwargs or {})
    async with (
        spawn_stdio_transport(command, *args, env=env, cwd=cwd, **options) as (reader, writer, process),
        ClientSideConnection(to_client, writer, reader, **connection_kwargs) as connection,
    ):
        yield connection, process


@asynccontextmanager
async def spawn_client_process(
    to_agent: Any,
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    transport_kwargs: Mapping[str, Any] | None = None,
    **connection_kwargs: Any,
) -> AsyncGenerator[tuple[AgentSideConnection, asyncio.subprocess.Process]]:
    """Start a client; the agent's connection to it, and its process."""
    options = dict(transport_kwargs or {})
    async with (
        spawn_stdio_transport(command, *args, env=env, cwd=cwd, **options) as (reader, writer, process),
        AgentSideConnection(to_agent, writer, reader, **connection_kwargs) as connection,
    ):
        yield connection, process
