"""The table of requests: invalid ones and a few valid ones, each with its expected response."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


def call(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


JSON = {"Content-Type": "application/json"}
EVENTS = {"Accept": "text/event-stream"}
INITIALIZE = call(1, "initialize", protocolVersion=1)
NEW = call(2, "session/new", cwd="/project", mcpServers=[])
PROMPT = call(3, "session/prompt", sessionId="s", prompt=[])

CONNECTION = object()
"""The id of a connection that was opened for the request."""


@dataclass(frozen=True)
class Asked:
    """A request, and what its answer has to be."""

    name: str
    status: int
    method: str = "POST"
    headers: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    path: str = "/acp"
    code: int | None = None
    """The error of JSON-RPC in the answer."""
    has: dict[str, str] = field(default_factory=dict)
    """Headers of the answer."""

    @property
    def data(self) -> bytes | None:
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode()


def post(name, status, body, /, *, code=None, has=None, path="/acp", **headers):
    named = {**JSON, **{key.replace("_", "-"): value for key, value in headers.items()}}
    return Asked(name, status, "POST", named, body, path, code, has or {})


def get(name, status, /, *, path="/acp", has=None, **headers):
    return Asked(
        name,
        status,
        "GET",
        {key.replace("_", "-"): value for key, value in headers.items()},
        None,
        path,
        None,
        has or {},
    )


HERE = {"Acp_Connection_Id": CONNECTION}
NOBODY = {"Acp_Connection_Id": "nobody"}
TEXT = {"has": {"content-type": "text/plain"}}

TABLE = (
    # What is right
    post("initialize", 200, INITIALIZE, has={"content-type": "application/json"}),
    post("a charset does no harm", 200, INITIALIZE, Content_Type="application/json; charset=utf-8"),
    post("any other good POST", 202, NEW, **HERE),
    post("a notification", 202, {"jsonrpc": "2.0", "method": "_example.com/hello"}, **HERE),
    post("an answer to nothing", 202, {"jsonrpc": "2.0", "id": 7, "result": {}}, **HERE),
    post("a session's message with its header", 202, PROMPT, Acp_Session_Id="s", **HERE),
    post(
        "what opens a session, without its header",
        202,
        call(3, "session/load", sessionId="s", cwd="/p", mcpServers=[]),
        **HERE,
    ),
    post("a header that the message does not need", 202, NEW, Acp_Session_Id="s", **HERE),
    Asked("DELETE", 202, "DELETE", {"Acp-Connection-Id": CONNECTION}),
    get("health", 200, path="/healthz"),
    get("readiness", 200, path="/readyz"),
    # Not JSON
    post("another content type", 415, INITIALIZE, Content_Type="text/plain"),
    post("a content type that only begins so", 415, INITIALIZE, Content_Type="application/jsonx"),
    post("a form", 415, b"a=b", Content_Type="application/x-www-form-urlencoded"),
    post("two content types", 415, INITIALIZE, Content_Type="application/json, text/plain"),
    post("no body", 400, b"", code=-32700),
    post("bad JSON", 400, b"{oops", code=-32700),
    post("half of a message", 400, b'{"jsonrpc":"2.0","id":1,"meth', code=-32700),
    post("bytes that are no text", 400, b"\xff\xfe\x00", code=-32700),
    post("JSON that is too deep", 400, b"[" * 15_000 + b"]" * 15_000, code=-32600),
    # No message
    post("a batch", 400, [INITIALIZE], code=-32600),
    post("an empty batch", 400, [], code=-32600),
    post("a number", 400, b"7", code=-32600),
    post("a text", 400, b'"initialize"', code=-32600),
    post("null", 400, b"null", code=-32600),
    post("an empty object", 400, {}, code=-32600),
    post("a method that is a number", 400, b'{"jsonrpc":"2.0","id":1,"method":5}', code=-32600),
    post("an id that is an object", 400, b'{"jsonrpc":"2.0","id":{},"method":"initialize"}', code=-32600),
    post("a batch on a connection", 400, [NEW, NEW], code=-32600, **HERE),
    # Connections
    post("a message without a connection", 400, NEW, **TEXT),
    post("initialize on a connection", 400, INITIALIZE, **HERE),
    post("a message on an unknown connection", 404, NEW, **NOBODY),
    post("two connections", 404, NEW, Acp_Connection_Id="one, two"),
    get("a stream without a connection", 400, Accept="text/event-stream"),
    get("a stream of an unknown connection", 404, Accept="text/event-stream", **NOBODY),
    Asked("DELETE without a connection", 400, "DELETE"),
    Asked("DELETE of an unknown connection", 404, "DELETE", {"Acp-Connection-Id": "nobody"}),
    # Sessions
    post("a session's message without its header", 400, PROMPT, **HERE),
    post("a session's message with another header", 400, PROMPT, Acp_Session_Id="t", **HERE),
    post(
        "a session's cancel without its header",
        400,
        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}},
        **HERE,
    ),
    # Streams
    get("a GET that says nothing of what it accepts", 406, Accept="", **HERE),
    get("a GET that accepts anything", 406, Accept="*/*", **HERE),
    get("a GET that accepts JSON", 406, Accept="application/json", **HERE),
    get("a stream from an event that is no number", 400, Accept="text/event-stream", Last_Event_ID="x", **HERE),
    get("a stream from an event that never was", 410, Accept="text/event-stream", Last_Event_ID="99", **HERE),
    # Methods, paths, sizes
    *(
        Asked(f"the method {method}", 405, method, has={"allow": "POST, GET, DELETE"})
        for method in ("PUT", "PATCH", "OPTIONS")
    ),
    get("another path", 404, path="/acp/more", Accept="text/event-stream", **HERE),
    post("another path, posted to", 404, INITIALIZE, path="/"),
    post("health is no place to post", 405, INITIALIZE, path="/healthz"),
    post("readiness is no place to post", 405, INITIALIZE, path="/readyz"),
    post("too large", 413, call(1, "initialize", protocolVersion=1, _meta={"x": "y" * 70_000})),
    post(
        "too large, and in pieces", 413, call(1, "initialize", _meta={"x": "y" * 70_000}), Transfer_Encoding="chunked"
    ),
    post("too large, and of another type", 415, b"x" * 3_000_000, Content_Type="text/plain"),
    # Pages of browsers
    post("a page", 403, INITIALIZE, Origin="https://page.example"),
    post("a page without an origin", 403, INITIALIZE, Origin="null"),
    Asked(
        "a page that asks whether it may",
        403,
        "OPTIONS",
        {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"},
    ),
    post("another name", 421, INITIALIZE, Host="rebound.example"),
    post("another name with a port", 421, INITIALIZE, Host="rebound.example:80"),
)
"""To a server on the loopback, for one message of at most 64 KiB."""
