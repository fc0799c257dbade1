"""Transports of the official package for the descriptions of MCP servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from accord.errors import McpServerError
from accord.extras import needs_extra
from accord.mcp.offered import installed
from accord.mcp.server_stderr import server_stderr
from accord.mcp.surroundings import Surroundings
from accord.schema import v1
from accord.schema.base import Unknown

if TYPE_CHECKING:
    from mcp.client._transport import Transport, TransportStreams


def transport_for(server: v1.McpServer | Unknown, surroundings: Surroundings) -> Transport:
    """The transport to this server; it is not started before it is entered. Raises McpServerError."""
    if not installed():
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
