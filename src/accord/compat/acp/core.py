"""`run_agent`, `connect_to_agent`, and the classes that programs take from this module."""

from __future__ import annotations

import asyncio
from typing import Any

from accord.compat.acp.agent.connection import AgentSideConnection
from accord.compat.acp.client.connection import ClientSideConnection
from accord.compat.acp.connection import Connection, JsonValue, MethodHandler
from accord.compat.acp.exceptions import RequestError
from accord.compat.acp.interfaces import Agent, Client
from accord.jsonrpc.frames import LIMIT
from accord.transports.stdio import StdioTransport

__all__ = [
    "DEFAULT_STDIO_BUFFER_LIMIT_BYTES",
    "Agent",
    "AgentSideConnection",
    "Client",
    "ClientSideConnection",
    "Connection",
    "JsonValue",
    "MethodHandler",
    "RequestError",
    "connect_to_agent",
    "run_agent",
]

DEFAULT_STDIO_BUFFER_LIMIT_BYTES = 50 * 1024 * 1024
"""The longest message that an agent reads from its standard input; a smaller value than our own limit has no effect."""


async def run_agent(
    agent: Any,
    input_stream: Any = None,
    output_stream: Any = None,
    *,
    use_unstable_protocol: bool = False,
    stdio_buffer_limit_bytes: int = DEFAULT_STDIO_BUFFER_LIMIT_BYTES,
    **connection_kwargs: Any,
) -> None:
    """Run an agent until its client ends the connection, over standard input and output or the streams given.

    `input_stream` is what the agent writes to, `output_stream` what it reads from; or `input_stream` alone is an object
    that moves whole messages.
    """
    if input_stream is None and output_stream is None:
        input_stream = StdioTransport.standard(limit=max(stdio_buffer_limit_bytes, LIMIT))
    connection = AgentSideConnection(
        agent,
        input_stream,
        output_stream,
        listening=False,
        use_unstable_protocol=use_unstable_protocol,
        **connection_kwargs,
    )
    try:
        await connection.listen()
    finally:
        await asyncio.shield(connection.close())


def connect_to_agent(
    client: Any,
    input_stream: Any,
    output_stream: Any = None,
    *,
    use_unstable_protocol: bool = False,
    **connection_kwargs: Any,
) -> ClientSideConnection:
    """Connect a client to an agent over these streams: what the client writes to, and what it reads from.

    `input_stream` alone may be an object that moves whole messages.
    """
    return ClientSideConnection(
        client, input_stream, output_stream, use_unstable_protocol=use_unstable_protocol, **connection_kwargs
    )
