"""`address`: a URL at which our agent is reached over HTTP and WebSocket; each connection to it arrives as a client.

client ──HTTP, WebSocket──▶ Watched ──▶ _Visitors.serve ──▶ ConnectedClient ──▶ ScenarioRun
                               └──▶ HttpRequests, which judges the requests by their headers
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias

from msgspec import Raw

from accord.errors import DecodeError
from accord.http import Access, App, Host, headers_of, serving
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, parse
from accord.schema import codec
from accord.trace.meaning import body_of
from accord.transports import End, Transport
from accord.transports.wrapped_transport import WrappedTransport
from accord_check.client.launch_command import AcceptedClient
from accord_check.passive.observer import Tally, Verdict

Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

LEFT = "the client ended the connection"

# Named as in the transport's specification; the names of headers in lower case.
CONNECTION_ID, SESSION_ID, PROTOCOL_VERSION = "acp-connection-id", "acp-session-id", "acp-protocol-version"
JSON, EVENTS = "application/json", "text/event-stream"


class Address(NamedTuple):
    """The URLs of the agent."""

    url: str
    requests: HttpRequests

    @property
    def websocket(self) -> str:
        """The URL for WebSocket."""
        return self.url.replace("http", "ws", 1)


@asynccontextmanager
async def address(arrived: Callable[[ConnectedClient], None]) -> AsyncGenerator[Address]:
    """Serve the agent on this machine, and call `arrived` for each connection. Raises AccordError without `http`."""
    requests = HttpRequests()
    async with serving(Watched(_Visitors(arrived), requests)) as server:
        yield Address(server.url, requests)


class ConnectedClient(WrappedTransport, AcceptedClient):
    """One connection of a client to the URL."""

    starts_process = False

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        AcceptedClient.__init__(self)
        self.name = AcceptedClient.name
        self.over = asyncio.Event()
        """Set when the connection has ended."""
        self._leaving: asyncio.Task[End] | None = None

    def exit(self, code: int) -> None:  # noqa: ARG002 - a connection has no exit code
        """End the connection."""
        self._leaving = asyncio.create_task(self.close(0))

    async def close(self, grace: float = 2.0) -> End:
        end = await super().close(grace)
        self.over.set()
        return end

    def ended(self, end: End) -> None:
        self.over.set()
        super().ended(End(end.reason, end.detail or LEFT))


class Watched(App):
    """The application that serves the agent. It judges each HTTP request, and sets a cookie."""

    def __init__(self, host: Host, requests: HttpRequests) -> None:
        super().__init__(host, access=Access(hosts=["127.0.0.1", "localhost"]))
        self._requests = requests

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        headers, method, body = headers_of(scope), scope["method"], bytearray()
        if method != "POST":
            self._requests.asked(method, headers, b"")

        async def receiving() -> Event:
            event = await receive()
            body.extend(event.get("body", b""))
            return event

        async def sending(event: Event) -> None:
            if event["type"] == "http.response.start" and CONNECTION_ID not in headers:
                cookie = (b"set-cookie", f"{COOKIE}=given; Path=/".encode())
                event = {**event, "headers": [*event.get("headers", ()), cookie]}
            await send(event)

        # Without extensions of the server, the body comes through `receiving`, and not at once past it.
        await super().__call__({**scope, "extensions": {}}, receiving, sending)
        if method == "POST":
            self._requests.asked(method, headers, bytes(body))


class _Visitors(Host):
    """Serves each connection by passing it to the checks, until it ends."""

    name = "accord check"

    def __init__(self, arrived: Callable[[ConnectedClient], None]) -> None:
        self._arrived = arrived

    async def serve(self, transport: Transport, owner: str) -> End | None:  # noqa: ARG002
        client = ConnectedClient(transport)
        self._arrived(client)
        await client.over.wait()
        return None


COOKIE = "accord-check"
"""The cookie that the answer to `initialize` sets."""

_LATER = ("session/load", "session/resume", "session/fork")
"""Requests about a session whose stream the client may not have opened yet."""


class HttpRequests:
    """Judges requests; `bench` collects the observations and findings."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._connections = 0

    def asked(self, method: str, headers: Mapping[str, str], body: bytes) -> None:
        """Judge a request. Names of headers are in lower case."""
        message = parse(body) if body else None
        opens = isinstance(message, RequestFrame) and message.method == "initialize"
        if method == "POST":
            given = headers.get("content-type", "")
            is_json = given.partition(";")[0].strip().lower() == JSON
            self._judge("http.post.sends-json", is_json or f"a POST has the content type {given!r}")
        elif method == "GET":
            verdict = EVENTS in headers.get("accept", "").lower() or f"a GET accepts {headers.get('accept')!r}"
            self._judge("http.get.accepts-events", verdict)
        if opens:
            self._connections += 1
        elif self._connections:
            self._follows(method, headers)
        if isinstance(message, RequestFrame | NotificationFrame) and not opens:
            self._names_session(message, headers)

    def _follows(self, method: str, headers: Mapping[str, str]) -> None:
        """A request after `initialize`."""
        lacks = f"a {method} after initialize has no"
        has_id = CONNECTION_ID in headers
        self._judge("http.connection-header", has_id or f"{lacks} Acp-Connection-Id")
        if has_id:
            said = PROTOCOL_VERSION in headers
            self._judge("http.version-header", None if said else f"{lacks} Acp-Protocol-Version")
            returned = f"{COOKIE}=" in headers.get("cookie", "")
            self._judge("http.cookies-returned", returned or f"{lacks} cookie of the server")

    def _names_session(self, message: RequestFrame | NotificationFrame, headers: Mapping[str, str]) -> None:
        session, given = _session_of(message.params), headers.get(SESSION_ID)
        if session is None or message.method in _LATER:
            return
        said = "no Acp-Session-Id" if given is None else f"the Acp-Session-Id {given!r}"
        self._judge("http.session-header", given == session or f"a POST of {message.method} has {said}")

    def _judge(self, name: str, verdict: Verdict) -> None:
        self.tally.judge(name, verdict, by="client")


def _session_of(params: Raw | bytes | None) -> str | None:
    try:
        named = None if params is None else body_of(codec.loads(params)).get("sessionId")
    except DecodeError:
        return None
    return named if isinstance(named, str) else None
