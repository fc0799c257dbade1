"""The application of the peer port: requests that other hosts have forwarded, checked and passed to the application.

It answers health questions with the id of this host, so that a peer notices when another process has its address, and
tells the figures of this process. It judges no tokens: the host that the client has reached did, and signed for the
owner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from hashlib import sha256

from accord.hosts.hop import BadHop, Hop, verified
from accord.hosts.peers import HEALTH, METRICS
from accord.http.server.asgi import Event, Receive, Scope, Send, header_pairs, headers_of, path_of
from accord.http.server.elsewhere import FORWARDED, HOP, Joinable, Signed
from accord.http.server.limits import ServerLimits


class PeerDoor:
    """Lets signed requests in, in the name of the owner for whom they are signed."""

    def __init__(self, app: Joinable, path: str, keys: Sequence[bytes], me: Callable[[], str]) -> None:
        self._app = app
        self._path = path
        self._keys = keys
        self._me = me

    @property
    def limits(self) -> ServerLimits:
        """The limits of the application."""
        return self._app.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a health question, or pass a signed request on."""
        if path_of(scope) == HEALTH and scope["type"] == "http":
            await _answer(send, 200, self._me())
            return
        if path_of(scope) == METRICS and scope["type"] == "http":
            await _answer(send, 200, self._app.metrics_text())
            return
        headers = headers_of(scope)
        try:
            value = headers.get(HOP, "")
            hop = verified(value, self._keys, self._me(), time.time(), scope.get("method", "GET"), headers)
        except BadHop as bad:
            await _refuse(scope, send, bad)
            return
        signed = Signed(hop.owner, hop.sender, hop.observes)
        let_in = {**scope, "path": self._path, "extensions": {**scope.get("extensions", {}), FORWARDED: signed}}
        body = _SignedBody(hop, receive) if scope["type"] == "http" else None
        await self._app(let_in, receive if body is None else body.receive, send)


class _SignedBody:
    """The body of a request, which must be the one that was signed."""

    def __init__(self, hop: Hop, receive: Receive) -> None:
        self._signed = hop.body
        self._receive = receive
        self._digest = sha256()
        self._is_whole = False

    async def receive(self) -> Event:
        """The next event; if the body is another one, the client has left before its last part."""
        event = await self._receive()
        if event["type"] == "http.request" and not self._is_whole:
            self._digest.update(event.get("body", b""))
            self._is_whole = not event.get("more_body")
            if self._is_whole and self._digest.hexdigest() != self._signed:
                return {"type": "http.disconnect"}
        return event


async def _refuse(scope: Scope, send: Send, bad: BadHop) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})
    else:
        await _answer(send, bad.status, str(bad))


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = header_pairs(("content-type", "text/plain"), ("content-length", str(len(body))))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
