"""An MCP server over HTTP, on this machine, for the time of a scenario. It notes a header of each request."""

from __future__ import annotations

import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from accord_check.agent.mcp_probe import reply_to
from accord_check.conversation import object_of

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
