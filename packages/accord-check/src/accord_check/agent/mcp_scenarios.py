"""Sessions with MCP servers of ours, which note how they were reached: two programs, and one over HTTP."""

from __future__ import annotations

import json
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from accord_check.agent.mcp_probe import reply_to
from accord_check.agent.raw_connection import Link
from accord_check.agent.scenario_context import ScenarioContext
from accord_check.conversation import object_of

SERVER = Path(__file__).with_name("mcp_probe.py")
_NAME, _VALUE = "ACCORD_CHECK_MARK", "as told"
_STDIO = ("mcp.stdio-supported", "mcp.untyped-is-stdio", "mcp.launched-as-told", "mcp.all-connected")
_HTTP = ("mcp.http-supported", "mcp.headers-sent")


async def stdio_servers(context: ScenarioContext) -> None:
    """A session with two MCP servers that are programs."""
    notes = [context.folder / f"mcp-started-{number}.json" for number in (1, 2)]
    for note in notes:
        note.unlink(missing_ok=True)
    async with context.logged_in() as link:
        if context.lacks(link, "stdio", *_STDIO):
            return
        session = await _opened(context, link, [_program(note) for note in notes])
        if not all(note.exists() for note in notes):  # some agents connect at the first prompt
            await context.prompt(link, session, context.settings.prompts.mcp or context.settings.prompts.plain)
        started = [note for note in notes if note.exists()]
        if not started:
            for name in _STDIO[2:]:
                context.skip(name, "the agent did not start the MCP servers of its session")
            return
        said = json.loads(started[0].read_text(encoding="utf-8"))
        odd = said["arguments"] != ["an argument"] or said["mark"] != _VALUE
        wrong = f"the MCP server got the arguments {said['arguments']} and {_NAME}={said['mark']!r}" if odd else None
        context.judge("mcp.launched-as-told", wrong, link.last)
        context.judge(
            "mcp.all-connected",
            None if len(started) == len(notes) else "one of two MCP servers was started",
            link.last,
        )


def _program(note: Path) -> dict[str, Any]:
    return {
        "name": f"accord-check-{note.stem[-1]}",
        "command": sys.executable,
        "args": [str(SERVER), str(note), "an argument"],
        "env": [{"name": _NAME, "value": _VALUE}],
    }


async def _opened(context: ScenarioContext, link: Link, servers: list[dict[str, Any]]) -> str:
    """Open the session. In version 1 a server that is a program has no type; an agent may want one by mistake."""
    typed = [{"type": "stdio"} | server for server in servers]
    if context.version == 2:
        return await context.new_session(link, "mcp.stdio-supported", mcpServers=typed)
    exchange = await link.ask("session/new", {"cwd": str(context.folder), "mcpServers": servers})
    made = exchange.fields.get("sessionId")
    if exchange.succeeded and isinstance(made, str):
        context.judge("mcp.untyped-is-stdio", None, exchange.answered)
        context.judge("mcp.stdio-supported", None, exchange.answered)
        return made
    session = await context.new_session(link, "mcp.stdio-supported", mcpServers=typed)
    refused = "session/new was refused for an MCP server without a type, and not for one of the type stdio"
    context.judge("mcp.untyped-is-stdio", refused, exchange.frame, exchange.answered)
    return session


async def http_server(context: ScenarioContext) -> None:
    """A session with an MCP server over HTTP, for an agent that says it can use one."""
    async with context.logged_in() as link:
        if context.lacks(link, "http", *_HTTP):
            return
        with McpOverHttp() as server:
            lent = {
                "type": "http",
                "name": "accord-check",
                "url": server.url,
                "headers": [{"name": HEADER, "value": _VALUE}],
            }
            session = await context.new_session(link, "mcp.http-supported", mcpServers=[lent])
            if not server.marks:  # some agents connect at the first prompt
                await context.prompt(link, session, context.settings.prompts.mcp or context.settings.prompts.plain)
            if not server.marks:
                context.skip("mcp.headers-sent", "the agent did not connect to the MCP server of its session")
                return
            without = sum(mark != _VALUE for mark in server.marks)
            wrong = f"{without} of {len(server.marks)} requests came without the header {HEADER}" if without else None
            context.judge("mcp.headers-sent", wrong, link.last)


HEADER = "X-Accord-Check"
"""The header that the session tells the agent to send."""

_POLL = 0.05
"""Seconds that the end of the server may take."""


class McpOverHttp(ThreadingHTTPServer):
    """The server; it serves from `with` until its end."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.path = f"/{secrets.token_urlsafe(8)}"
        self.url = f"http://127.0.0.1:{self.server_port}{self.path}"
        self.marks: list[str | None] = []
        """The value of the header in each request; None for a request without it."""
        self._thread = threading.Thread(target=self.serve_forever, args=(_POLL,), name="accord-check-mcp", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Requests(BaseHTTPRequestHandler):
    """One connection. A request is answered with JSON; there is no stream to open."""

    server: McpOverHttp  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.path != self.server.path:
            self._reply(404)
            return
        self.server.marks.append(self.headers.get(HEADER))
        try:
            message = object_of(json.loads(body))
        except ValueError:
            self._reply(400)
            return
        answer = reply_to(message)
        self._reply(202 if answer is None else 200, b"" if answer is None else json.dumps(answer).encode())

    def do_GET(self) -> None:
        self._reply(405)

    def do_DELETE(self) -> None:
        self._reply(200)

    def _reply(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing: the terminal belongs to the report."""
