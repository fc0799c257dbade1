"""Bridges: MCP servers of this program, for agents that cannot reach them over ACP.

| way | the agent | is described as |
|---|---|---|
| `acp` | takes servers over ACP | itself |
| `stdio` | starts MCP servers as processes, as all agents of version 1 do | the shim, which leads to our socket |
| `http` | takes servers over HTTP, and starts none | a URL on loopback |

Starting a process is preferred to HTTP: it works with every agent and every revision of MCP.

    the agent ── starts ──▶ `shim.py` ── private socket ──▶ `Bridge` ──▶ the server, in this program

The shim only copies bytes. Each server has its own token, which the agent passes to the shim in an environment
variable.

    the agent ── POST /mcp/1, its token ──▶ `HttpBridge` ──▶ the official package's HTTP ──▶ the server

The HTTP server listens on this machine only, and each MCP server has its own token, which is sent in a header. A page
in a browser may reach loopback too, so a request that names an origin is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import itertools
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from accord._internal.tasks import Tasks
from accord.callback_socket import TOKEN, CallbackSocket
from accord.mcp import shim
from accord.mcp.tool_server import ToolServer
from accord.schema import v1

if TYPE_CHECKING:
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

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


SESSIONS = 64
"""Sessions of MCP that one server may have open at a time."""

REQUESTS = 64
"""Requests to one server that may be open at a time."""

BODY = 1024 * 1024
"""Bytes that the body of a request may have."""

GRACE = 1
"""Seconds that open requests have at the end."""

log = logging.getLogger("accord")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class HttpBridge:
    """Servers of this program, each with a route and a token; made with its socket open."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._routes: dict[str, _Route] = {}
        self._numbers = itertools.count(1)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(SESSIONS)
        self._server = self._made()
        self._serving = tasks.start(self._serve(), "accord mcp http bridge")

    def add(self, server: ToolServer) -> v1.McpServerHttp:
        """A description of this server for an agent that speaks MCP over HTTP."""
        path = f"/mcp/{next(self._numbers)}"
        route = self._routes[path] = _Route(server, self._tasks)
        address, port = self._socket.getsockname()
        headers = [v1.HttpHeader("Authorization", f"Bearer {route.token}")]
        return v1.McpServerHttp(server.name, f"http://{address}:{port}{path}", headers)

    def close(self) -> None:
        """Close the socket, and end all requests."""
        self._server.should_exit = self._server.force_exit = True
        self._serving.cancel()
        for route in self._routes.values():
            route.close()

    def _made(self) -> uvicorn.Server:
        import uvicorn

        class Server(uvicorn.Server):
            """A server that leaves the program's signals alone."""

            @contextlib.contextmanager
            def capture_signals(self) -> Any:
                yield

        return Server(
            uvicorn.Config(
                self._answer,
                interface="asgi3",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE,
            )
        )

    async def _serve(self) -> None:
        try:
            await self._server.serve([self._socket])
        finally:
            for listener in getattr(self._server, "servers", ()):
                listener.close()
            self._socket.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope.get("headers", ()))
        route = self._routes.get(scope.get("path", ""))
        if scope["type"] != "http":
            return
        if b"origin" in headers:
            await _refuse(send, 403, "a page in a browser may not use this server")
        elif route is None:
            await _refuse(send, 404, "there is no MCP server here")
        elif not route.admits(headers.get(b"authorization", b"")):
            await _refuse(send, 401, "the token is missing or wrong")
        else:
            await route.handle(scope, receive, send)


class _Route:
    """One server behind a route, started with its first request."""

    def __init__(self, server: ToolServer, tasks: Tasks) -> None:
        self.token = secrets.token_urlsafe(32)
        self._server = server
        self._tasks = tasks
        self._open = 0
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None

    def admits(self, authorization: bytes) -> bool:
        """Whether a request with this header may use the server."""
        return hmac.compare_digest(authorization, f"Bearer {self.token}".encode())

    def close(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._open >= REQUESTS:
            await _refuse(send, 429, f"{REQUESTS} requests to this MCP server are open; wait for one of them")
            return
        self._open += 1
        try:
            manager = await asyncio.shield(self._there())
        except Exception as error:
            log.info("the MCP server %s cannot be reached: %s", self._server.name, error)
            await _refuse(send, 502, "the MCP server cannot be reached")
        else:
            await manager.handle_request(scope, receive, send)
        finally:
            self._open -= 1

    def _there(self) -> asyncio.Future[StreamableHTTPSessionManager]:
        if self._manager is None or (self._manager.done() and self._manager.exception() is not None):
            self._manager = asyncio.get_running_loop().create_future()
            self._running = self._tasks.start(self._run(self._manager), f"mcp server {self._server.name}")
        return self._manager

    async def _run(self, there: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Hold the server: the package's contexts must be left by the task that entered them."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        try:
            async with self._server.opened() as server:
                manager = StreamableHTTPSessionManager(server, max_sessions=SESSIONS, max_request_body_size=BODY)
                async with manager.run():
                    there.set_result(manager)
                    await asyncio.Event().wait()
        except BaseException as error:
            if not there.done():
                there.set_exception(error if isinstance(error, Exception) else ConnectionError("the bridge is closed"))
                there.exception()  # a request may be gone by now
            elif isinstance(error, Exception):
                log.exception("the MCP server %s has failed", self._server.name)
                self._manager = None
            if not isinstance(error, Exception):
                raise


async def _refuse(send: Send, status: int, why: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})


Way: TypeAlias = Literal["acp", "stdio", "http"]
"""How an MCP server is reached."""


def way_of(declared: Any, *, version: int, is_here: bool) -> Way | None:
    """Return how an agent that declared this (the JSON of its capabilities) is reached; None if it cannot be.

    >>> way_of({"mcpCapabilities": {"acp": True}}, version=1, is_here=False)
    'acp'
    >>> way_of({"session": {"mcp": {"http": {}}}}, version=2, is_here=True)
    'http'
    """
    offers = _member(declared, "mcpCapabilities") if version == 1 else _member(_member(declared, "session"), "mcp")
    if _offered(offers, "acp"):
        return "acp"
    if not is_here:
        return None  # a process of its machine cannot reach ours
    if version == 1 or _offered(offers, "stdio"):
        return "stdio"
    return "http" if _offered(offers, "http") else None


class Bridges:
    """The two bridges of one connection, each opened when it is first needed."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._by_process: Bridge | None = None
        self._by_http: HttpBridge | None = None

    def describe(self, server: ToolServer, way: Literal["stdio", "http"]) -> v1.McpServerStdio | v1.McpServerHttp:
        """Offer this server over a bridge, and describe it for the agent."""
        if way == "stdio":
            self._by_process = self._by_process or Bridge(self._tasks)
            return self._by_process.add(server)
        self._by_http = self._by_http or HttpBridge(self._tasks)
        return self._by_http.add(server)

    def close(self) -> None:
        """Close the bridges, and end their connections."""
        for bridge in (self._by_process, self._by_http):
            if bridge is not None:
                bridge.close()


def _member(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


def _offered(offers: Any, name: str) -> bool:
    """Whether a capability is offered: true in version 1, an object in version 2."""
    value = _member(offers, name)
    return value is not None and value is not False
