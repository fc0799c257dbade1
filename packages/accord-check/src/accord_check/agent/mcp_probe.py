"""An MCP server with one tool, in a few lines; it writes down how it was started. It is run as a program of its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOL = {"name": "accord_check", "description": "Says that it was called", "inputSchema": {"type": "object"}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for a method that the server does not know."""
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
    """The answer to a message; None for one that has none."""
    if "id" not in message or "method" not in message:
        return None
    result = answer(message["method"], message.get("params") or {})
    unknown = {"error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": message["id"], **({"result": result} if result is not None else unknown)}


def main(note: str, *arguments: str) -> None:
    said = {"arguments": list(arguments), "mark": os.environ.get("ACCORD_CHECK_MARK")}
    written = Path(f"{note}.part")
    written.write_text(json.dumps(said), encoding="utf-8")
    written.replace(note)  # the note is whole as soon as it is there
    for line in sys.stdin:
        reply = reply_to(json.loads(line))
        if reply is not None:
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
