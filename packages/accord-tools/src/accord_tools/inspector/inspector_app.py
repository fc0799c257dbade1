"""`InspectorApp`: the ASGI application of the inspector: access control, the files of the page, the API, and live
events.

    request ──▶ Host and Origin ──┬─▶ /            the page and its modules: they hold no secrets
                                  └─▶ /api/...     with the token ──▶ api.answer
                                            /live  server-sent events: how far the trace is read

The token is in the fragment of the page's URL, which a browser never sends. The page sends it as a bearer token. It is
not a cookie, because a browser sends the cookies of one port to every port of the machine.

`inspecting` runs its server on the loopback, during a block (extra `http`).

The page may send messages to an agent that the inspector has started, a `StartedAgent`. It gets the methods of the
protocol with the JSON Schema of their params, and makes a form of each. Its messages are sent unchanged: nothing is
added, and a mistake reaches the agent. The trace that the page shows records them. A client without files, terminals
and permissions holds the connection, so the agent can do nothing here that its own process could not.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
import secrets
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

import accord
from accord import AccordError
from accord.http import Access, Refusal, ServerLimits, headers_of, serving_asgi
from accord.schema.codec import encode, loads
from accord.schema.describe import json_schema
from accord.trace.query import FilterError
from accord_tools.inspector.api import BadRequest, Params, answer
from accord_tools.inspector.library import Library, OpenTrace, UnknownTrace

LONGEST = 16 * 1024 * 1024
"""Bytes of a message that the page sends."""


class StartedAgent:
    """The agent at the end of a connection that the inspector holds, and the trace of that connection."""

    def __init__(self, remote: accord.RemoteAgent, folder: str) -> None:
        self._remote = remote
        self._folder = str(Path(folder).absolute())

    def plain(self) -> dict[str, Any]:
        """The schemas from which the page makes its forms."""
        definitions: dict[str, Any] = json_schema(self._remote.version)["$defs"]  # pyright: ignore[reportAssignmentType]
        methods = [
            {"method": it["x-method"], "params": name, "answers": name.endswith("Request")}
            for name, it in definitions.items()
            if it.get("x-side") == "agent"
            and name.endswith(("Request", "Notification"))
            and it["x-method"] != "initialize"
        ]
        return {
            "methods": sorted(methods, key=lambda it: it["method"]),
            "definitions": definitions,
            "folder": self._folder,
        }

    async def send(self, message: bytes) -> dict[str, Any]:
        """Send the page's message, `{method, params, answers}`; returns the answer's `result` or `error`."""
        wanted: Any = loads(message)
        match wanted:
            case {"method": str(method), "answers": bool(answers)}:
                params = wanted.get("params")
            case _:
                raise accord.AccordError("a message to send must be an object with method, params and answers")
        if not answers:
            await self._remote.notify_raw(method, params)
            return {}
        try:
            return {"result": await self._remote.request_raw(method, params)}
        except accord.PeerError as error:
            return {"error": {"code": error.code, "message": error.message, "data": error.data}}


@asynccontextmanager
async def starting_agent(
    words: Sequence[str], cwd: str | None = None, env: Mapping[str, str | None] | None = None
) -> AsyncGenerator[tuple[StartedAgent, Path]]:
    """Start an agent and connect to it during the block; yields it with the trace of the connection."""
    with tempfile.TemporaryDirectory(prefix="accord-inspect-") as folder:
        trace = Path(folder) / "live.jsonl"
        client = accord.Client(name="accord-inspect", version=accord.__version__)
        async with accord.connect(words, client, cwd=cwd, env=env, trace=trace) as remote:
            yield StartedAgent(remote, cwd or "."), trace


POLICIES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    # No string can become markup or a script, even by a mistake in the page.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)

HEADERS = (
    ("content-security-policy", "; ".join(POLICIES)),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
)

TELL_EVERY = 0.2
"""Seconds between two live events."""

KEEPALIVE = 15.0
"""Seconds of silence before a comment is sent, which notices a page that has gone."""

STATUS: dict[type[AccordError], int] = {BadRequest: 400, FilterError: 400, UnknownTrace: 404}

Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

log = logging.getLogger("accord.http")


class InspectorApp:
    """The application of one inspector."""

    def __init__(
        self,
        library: Library,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        agent: StartedAgent | None = None,
    ) -> None:
        self.library = library
        self.agent = agent
        self.token = token or secrets.token_urlsafe(24)
        self._access = Access([self.token], hosts=Access.loopback_names(host) or {host})
        self._is_closed = asyncio.Event()

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close"})
            return
        try:
            await self._handle(scope, receive, send)
        except Refusal as refusal:
            await _respond(send, refusal.status, refusal.problem.encode(), "text/plain; charset=utf-8")

    async def close(self) -> None:
        """End the live events, and close the traces."""
        self._is_closed.set()
        await self.library.close()

    async def _handle(self, scope: Event, receive: Receive, send: Send) -> None:
        if self._is_closed.is_set():
            raise Refusal(503, "the inspector has ended")
        headers = headers_of(scope)
        self._access.check_sender(headers)
        path: str = scope["path"]
        if scope["method"] == "POST" and path == "/api/agent" and self.agent is not None:
            self._access.owner(headers)
            if headers.get("content-type") != "application/json":
                raise Refusal(415, "a message to send must be application/json")
            await _respond(send, *await self._send_message(self.agent, receive), "application/json")
            return
        if scope["method"] != "GET":
            raise Refusal(405, "method not allowed; use GET")
        if not path.startswith("/api/"):
            found = static_file("index.html" if path == "/" else path.removeprefix("/"))
            if found is None:
                raise Refusal(404, "not found; the page is at /")
            await _respond(send, 200, *found)
            return
        self._access.owner(headers)
        params = Params(dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)))
        if path.endswith("/live"):
            try:
                trace = await self.library.open(path.split("/")[-2])
            except AccordError as error:
                raise Refusal(STATUS.get(type(error), 422), str(error)) from error
            await self._tell_changes(trace, receive, send)
            return
        status, body = await self._answer(path.removeprefix("/api/"), params)
        await _respond(send, status, body, "application/json")

    async def _send_message(self, agent: StartedAgent, receive: Receive) -> tuple[int, bytes]:
        message, is_whole = b"", False
        while not is_whole:
            event = await receive()
            message += event.get("body", b"")
            is_whole = not event.get("more_body")
            if len(message) > LONGEST:
                raise Refusal(413, f"the message has more than {LONGEST:,} bytes")
        try:
            return 200, encode(await agent.send(message))
        except AccordError as error:
            return 422, encode({"error": str(error)})

    async def _answer(self, path: str, params: Params) -> tuple[int, bytes]:
        try:
            if path == "agent":
                return 200, encode(None if self.agent is None else self.agent.plain())
            return 200, encode(await answer(self.library, path, params))
        except AccordError as error:
            return STATUS.get(type(error), 422), encode({"error": str(error)})

    async def _tell_changes(self, trace: OpenTrace, receive: Receive, send: Send) -> None:
        """Send how far a trace is read, each time that it has grown, until the page leaves."""
        await _start(send, 200, ("content-type", "text/event-stream"))
        leaving = asyncio.create_task(_gone(receive), name="accord inspect: page leaves")
        closing = asyncio.create_task(self._is_closed.wait(), name="accord inspect: server ends")
        last_sent: object = None
        try:
            while not (leaving.done() or closing.done()):
                status = trace.status()
                event = b":\n\n" if status == last_sent else b"data: " + encode(status) + b"\n\n"
                last_sent = status
                await send({"type": "http.response.body", "body": event, "more_body": True})
                if status == trace.status():
                    changing = asyncio.create_task(trace.changed(KEEPALIVE), name="accord inspect: trace changes")
                    await asyncio.wait([changing, leaving, closing], return_when=asyncio.FIRST_COMPLETED)
                    changing.cancel()
                    await asyncio.wait([changing])
                await asyncio.wait([leaving, closing], timeout=TELL_EVERY, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            closing.cancel()
            await asyncio.wait([leaving, closing])
        await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def static_file(name: str) -> tuple[bytes, str] | None:
    """Return a file of the page, and its media type; None if there is no such file."""
    folder = resources.files("accord_tools.inspector") / "static"
    if "/" in name or "\\" in name or name not in {entry.name for entry in folder.iterdir()}:
        return None
    kind = {"js": "text/javascript", "svg": "image/svg+xml"}.get(name.rpartition(".")[2])
    kind = kind or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return (folder / name).read_bytes(), f"{kind}; charset=utf-8"


async def _respond(send: Send, status: int, body: bytes, media_type: str) -> None:
    await _start(send, status, ("content-type", media_type), ("content-length", str(len(body))))
    await send({"type": "http.response.body", "body": body})


async def _start(send: Send, status: int, *headers: tuple[str, str]) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in (*headers, *HEADERS)]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


HOST = "127.0.0.1"
_SERVER_LIMITS = ServerLimits(sockets=256)
"""One user's browser needs few connections."""


class Inspector(NamedTuple):
    """A running inspector: its `app`, and the `url` of its page, with the token."""

    app: InspectorApp
    url: str


@asynccontextmanager
async def inspecting(
    library: Library, *, port: int = 0, token: str | None = None, agent: StartedAgent | None = None
) -> AsyncGenerator[Inspector]:
    """Run the inspector during the block. With port 0 the system chooses a free one.

    The page may send messages to `agent`.
    """
    app = InspectorApp(library, host=HOST, token=token, agent=agent)
    async with serving_asgi(app, host=HOST, port=port, limits=_SERVER_LIMITS) as url:
        try:
            yield Inspector(app, f"{url}/#{app.token}")
        finally:
            await asyncio.shield(app.close())
