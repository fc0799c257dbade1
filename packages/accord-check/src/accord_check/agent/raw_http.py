"""Raw HTTP: the answers of an agent with a URL to invalid requests, and to the end of a connection.

The page is a proposal, so a broken MUST is a warning. The requests are made by the standard library, each over its own
connection: an HTTP client would not send invalid ones. They go through HTTP proxies. Behind a proxy of another kind
they are skipped, with the reason.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from accord.transports.server_access import network_proxy
from accord_check.agent.scenario_context import ScenarioContext, handshake
from accord_check.conversation import object_of

_JSON, _EVENTS = "application/json", "text/event-stream"
_NOTIFICATION: dict[str, Any] = {"jsonrpc": "2.0", "method": "_accord.check/nothing"}
_UNKNOWN = "accord-check-no-such-connection"
_NAMES = (
    "http.initialize.answered-at-once",
    "http.initialize.gives-connection-id",
    "http.post.accepted",
    "http.post.other-types-refused",
    "http.get.other-accept-refused",
    "http.connection-missing",
    "http.connection-unknown",
    "http.session-unknown",
    "http.delete-ends-connection",
    "lint.http.origin-refused",
)


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: dict[str, str]
    body: bytes


async def raw_http(context: ScenarioContext) -> None:
    """The status codes of an agent with a URL."""
    url = context.settings.url
    if url is None or not url.startswith(("http://", "https://")):
        context.skip(_NAMES, "the agent has no http address")
        return
    proxy = network_proxy(url, context.settings.proxy)
    if proxy is not None and proxy.scheme != "http":
        context.skip(_NAMES, f"these requests go through HTTP proxies only, and the agent is behind {proxy.name}")
        return
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake(context.version, can_do=False)}
    opened = await _ask(context, "POST", hello)
    if opened.status in (401, 403):
        context.skip(_NAMES, f"initialize was answered with {opened.status}")
        return
    _judge(context, "http.initialize.answered-at-once", opened, 200, "initialize")
    given = opened.headers.get("acp-connection-id")
    context.judge("http.initialize.gives-connection-id", None if given else "no Acp-Connection-Id came with initialize")
    if given:
        await _refusals(context, given)
        await _strange_session(context, given, opened)
        reply = await _ask(context, "POST", hello, {"Origin": "https://accord-check.example"})
        verdict = reply.status in (401, 403) or f"a page of another origin was answered with {reply.status}"
        context.judge("lint.http.origin-refused", verdict)
        await _ended(context, given)


async def _refusals(context: ScenarioContext, given: str) -> None:
    mine = {"Acp-Connection-Id": given}
    await _expect(context, "http.post.accepted", 202, "a notification", "POST", _NOTIFICATION, mine)
    plain = mine | {"Content-Type": "text/plain"}
    await _expect(context, "http.post.other-types-refused", 415, "a POST of text/plain", "POST", _NOTIFICATION, plain)
    page = mine | {"Accept": "text/html"}
    await _expect(context, "http.get.other-accept-refused", 406, "a GET for text/html", "GET", None, page)
    await _expect(context, "http.connection-missing", 400, "a POST without a connection id", "POST", _NOTIFICATION)
    stranger = {"Acp-Connection-Id": _UNKNOWN}
    await _expect(
        context, "http.connection-unknown", 404, "a POST for an unknown connection", "POST", _NOTIFICATION, stranger
    )


async def _strange_session(context: ScenarioContext, given: str, opened: _Reply) -> None:
    name = "http.session-unknown"
    try:
        offers = object_of(object_of(object_of(json.loads(opened.body)).get("result")).get("agentCapabilities"))
    except ValueError:
        offers = {}
    if context.version == 2 or offers.get("loadSession") or "resume" in object_of(offers.get("sessionCapabilities")):
        # The page's own example opens the stream first, and then loads the session.
        context.skip(name, "the agent can load sessions, and their streams are opened before")
        return
    stream = {"Acp-Connection-Id": given, "Accept": _EVENTS, "Acp-Session-Id": "accord-check-no-such-session"}
    await _expect(context, name, 404, "a stream of an unknown session", "GET", None, stream)


async def _ended(context: ScenarioContext, given: str) -> None:
    name, mine = "http.delete-ends-connection", {"Acp-Connection-Id": given}
    await _expect(context, name, 202, "DELETE", "DELETE", None, mine)
    await _expect(context, name, 404, "a POST after DELETE", "POST", _NOTIFICATION, mine)


async def _expect(
    context: ScenarioContext,
    name: str,
    status: int,
    what: str,
    method: str,
    message: Any,
    headers: dict[str, str] | None = None,
) -> None:
    """Send a request, and judge that it is answered with this status, as the check of this name."""
    _judge(context, name, await _ask(context, method, message, headers), status, what)


def _judge(context: ScenarioContext, name: str, reply: _Reply, wanted: int, what: str) -> None:
    context.judge(name, reply.status == wanted or f"{what} was answered with {reply.status}, not {wanted}")


async def _ask(context: ScenarioContext, method: str, message: Any, headers: dict[str, str] | None = None) -> _Reply:
    body = None if message is None else json.dumps(message).encode()
    said = {"Accept": f"{_JSON}, {_EVENTS}", **context.settings.headers}
    said |= {} if body is None else {"Content-Type": _JSON}
    return await asyncio.to_thread(_send, context, method, body, said | (headers or {}))


def _send(context: ScenarioContext, method: str, body: bytes | None, headers: dict[str, str]) -> _Reply:
    address = urlsplit(context.settings.url or "")
    within = context.settings.answer_within
    proxy = network_proxy(context.settings.url or "", context.settings.proxy)
    near = address.netloc if proxy is None else f"{proxy.host}:{proxy.port}"
    connection: http.client.HTTPConnection
    if address.scheme == "https":
        trusted = context.settings.tls or ssl.create_default_context()
        connection = http.client.HTTPSConnection(near, timeout=within, context=trusted)
    else:
        connection = http.client.HTTPConnection(near, timeout=within)
    if proxy is not None:
        connection.set_tunnel(
            address.hostname or "", address.port or (443 if address.scheme == "https" else 80), proxy.credentials
        )
    try:
        connection.request(method, address.path or "/", body, headers)
        reply = connection.getresponse()
        found = {name.lower(): value for name, value in reply.getheaders()}
        # A stream has no end to wait for: its status is all that is judged.
        is_stream = found.get("content-type", "").startswith(_EVENTS)
        return _Reply(reply.status, found, b"" if is_stream else reply.read(65_536))
    finally:
        connection.close()
