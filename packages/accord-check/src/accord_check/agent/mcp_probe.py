"""An MCP server with one tool, in a few lines: a program that records how it was started, and one over HTTP.

As a program it is started by an agent, from its file: it imports nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

TOOL = {"name": "accord_check", "description": "Says that it was called", "inputSchema": {"type": "object"}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None for an unknown method."""
    match method:
        case "initialize":
            version = params.get("protocolVersion", "2025-06-18")
            info = {"name": "accord-check", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "accord_check was called"}]}
        case "ping":
            return {}
        case _:
            return None


def reply_to(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer to a message; None for one that has none."""
    if "id" not in message or "method" not in message:
        return None
    result = answer(message["method"], message.get("params") or {})
    unknown = {"error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": message["id"], **({"result": result} if result is not None else unknown)}


def main(note: str, *arguments: str) -> None:
    said = {"arguments": list(arguments), "mark": os.environ.get("ACCORD_CHECK_MARK")}
    written = Path(f"{note}.part")
    written.write_text(json.dumps(said), encoding="utf-8")
    written.replace(note)  # the note appears complete
    for line in sys.stdin:
        reply = reply_to(json.loads(line))
        if reply is not None:
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


HEADER = "X-Accord-Check"
"""The header that the session asks the agent to send."""

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
            answer = reply_to(json.loads(body))
        except (ValueError, TypeError):  # it is no JSON, or no object
            self._reply(400)
            return
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


if __name__ == "__main__":
    main(*sys.argv[1:])
