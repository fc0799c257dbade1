"""`JsonsFile`: writes the trace of a chain as the Rust SDK's conductor does (`.jsons`), for its viewer.

Each line is a request, a response or a notification between two neighbours, which are called `Client`, `Proxy(0)` and
so on, and `Agent`. A message to an MCP server over ACP is written as the MCP message in it. Secrets are masked as in
our own traces.
"""

from __future__ import annotations

import logging
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame
from accord.mcp.mcp_line import MESSAGE
from accord.redaction import masked
from accord.trace import TraceEvent
from accord.trace.meaning import body_of
from accord.trace.trace_file import open_private

log = logging.getLogger("accord")


_PROXY = re.compile(r"proxy (\d+) \(")


class JsonsFile:
    """An observer of a chain that writes a `.jsons` file; `problem` is the reason if it has ended before the chain."""

    SUFFIX = ".jsons"

    def __init__(self, path: str | Path, *, secrets: bool = False) -> None:
        self.problem: OSError | None = None
        self._path = path
        self._file = open_private(path)
        self._secrets = secrets
        self._began = time.monotonic()
        self._mcp: set[int | str | None] = set()
        """Requests to MCP servers that have no answer yet."""

    def __call__(self, event: TraceEvent) -> None:
        """Write this event, if it is a message between two components."""
        if self.problem is not None or event.frame is None or event.hop is None:
            return
        frame = event.frame if self._secrets else masked(event.frame) or event.frame
        said = self._said(TraceEvent(event.time, event.direction, frame).message)
        if said is None:
            return
        sender, to = _names(event)
        kind, members = said
        line = {"type": kind, "ts": event.time - self._began, "from": sender, "to": to, **members}
        try:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            self.problem = error
            log.warning("cannot write %s: %s; the recording has ended", self._path, error.strerror or error)

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # each line was flushed, so an error was reported there already
            self._file.close()

    def _said(
        self, message: RequestFrame | NotificationFrame | ResponseFrame | Malformed | None
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the kind of line for a message, and its own members."""
        if isinstance(message, RequestFrame):
            about = _about(message.method, message.params)
            if about["protocol"] == "mcp":
                self._mcp.add(message.id)
            return "request", {"id": message.id, **about}
        if isinstance(message, NotificationFrame):
            return "notification", _about(message.method, message.params)
        if isinstance(message, ResponseFrame):
            is_mcp = message.id in self._mcp
            self._mcp.discard(message.id)
            return "response", {"id": message.id, **_outcome(message, is_mcp=is_mcp)}
        return None


def _about(method: str, given: Any) -> dict[str, Any]:
    """Describe a request or a notification; for a message to an MCP server, its content."""
    params = _plain(given)
    fields = body_of(params)
    if method == MESSAGE and isinstance(fields.get("method"), str):
        return {"protocol": "mcp", "method": fields["method"], "params": fields.get("params")}
    session = fields.get("sessionId")
    named = {"session": session} if isinstance(session, str) else {}
    return {"protocol": "acp", "method": method, **named, "params": params}


def _outcome(answer: ResponseFrame, *, is_mcp: bool) -> dict[str, Any]:
    """Describe an answer. An error of an MCP server may come in an answer that succeeds."""
    if answer.error is not None:
        domain = {"error_domain": "acp"} if is_mcp else {}
        return {"is_error": True, **domain, "payload": _plain(answer.error)}
    payload = _plain(answer.result)
    if is_mcp and isinstance(payload, dict):
        fields = cast("dict[str, Any]", payload)
        if "result" in fields:
            return {"is_error": False, "payload": fields["result"]}
        if "error" in fields:
            return {"is_error": True, "error_domain": "mcp", "payload": fields["error"]}
    return {"is_error": False, "payload": payload}


def _plain(value: Any) -> Any:
    return None if value is None else msgspec.json.decode(msgspec.json.encode(value))


def _names(event: TraceEvent) -> tuple[str, str]:
    """Return the names of both components. If the chain is a proxy itself, both its neighbours have the same link."""
    sender, to = cast("tuple[str, str]", event.hop)
    nearer, further = (sender, to) if event.direction == "out" else (to, sender)
    names = _name(nearer, "Client"), _name(further, "Agent")
    return names if event.direction == "out" else (names[1], names[0])


def _name(link: str, otherwise: str) -> str:
    found = _PROXY.match(link)
    return f"Proxy({int(found[1]) - 1})" if found is not None else otherwise
