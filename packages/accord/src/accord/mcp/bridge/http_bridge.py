"""`HttpBridge`: MCP servers of this program over HTTP on loopback, for agents that cannot start processes.

    the agent ── POST /mcp/1, its token ──▶ checks ──▶ the official package's HTTP ──▶ the server, in this program

The door is on this machine only, and each server has a token of its own, which is sent in a header. A page in a browser
may reach loopback too, so a request that names an origin is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from accord._internal.tasks import Tasks
from accord.mcp.over_acp.tool_server import ToolServer
from accord.schema import v1

if TYPE_CHECKING:
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

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
        """Hold the server: the package's contexts have to be left by the task that entered them."""
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
