"""The application of the peer port: requests that other hosts have forwarded, checked and passed to the application.

It judges no tokens: the host that the client has reached did, and signed for the owner. The application gets a request
that is built from what was signed, and from nothing else of what has arrived.

A peer that asks for the health of this host, with a signature, gets its clock. Without one the answer says only that
the process is alive, for probes.
"""

from __future__ import annotations

import time

from accord.hosts.peers import HEALTH, METRICS
from accord.hosts.signed_forward import (
    WEBSOCKET,
    BadSignature,
    SignedForward,
    Signer,
    TakenNonces,
    forwarded_headers,
)
from accord.http.server.asgi import Receive, Scope, Send, header_pairs, headers_of, path_of
from accord.http.server.cluster import FORWARDED, HOP, ClusterApp, Signed


class PeerApp:
    """Passes signed requests on, in the name of the owner for whom they are signed."""

    def __init__(self, app: ClusterApp, path: str, signer: Signer) -> None:
        self._app = app
        self._path = path
        self._signer = signer
        self._taken = TakenNonces()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a question of a peer, or pass a signed request on."""
        path = path_of(scope) if scope["type"] == "http" else ""
        headers = headers_of(scope)
        if path == HEALTH and HOP not in headers:
            await _answer(send, 200, "ok")
            return
        try:
            forward = self._signer.verify(headers.get(HOP, ""), _method_of(scope), _target_of(scope), headers)
            if path == HEALTH:  # a replayed question gets nothing that the peer did not get
                await _answer(send, 200, self._signer.sign_clock(time.monotonic(), forward))
                return
            self._taken.take(forward, time.monotonic())
        except BadSignature as bad:
            await _refuse(scope, send, bad)
            return
        if path == METRICS:
            await _answer(send, 200, self._app.metrics_text())
            return
        await self._app(self._signed_scope(scope, forward, headers), receive, send)

    def _signed_scope(self, scope: Scope, forward: SignedForward, headers: dict[str, str]) -> Scope:
        """The request that was signed, with the ways of this connection to read it and to answer it."""
        fields = [*forwarded_headers(headers).items(), ("content-length", str(forward.length))]
        signed = Signed(forward.owner, forward.sender, forward.observes, forward.digest)
        return {
            **scope,
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in fields],
            "extensions": {**scope.get("extensions", {}), FORWARDED: signed},
        }


def _method_of(scope: Scope) -> str:
    return WEBSOCKET if scope["type"] == "websocket" else scope["method"]


def _target_of(scope: Scope) -> str:
    target: bytes = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    return target.decode("latin-1")


async def _refuse(scope: Scope, send: Send, bad: BadSignature) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})
    else:
        await _answer(send, bad.status, str(bad))


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode()
    more = [("retry-after", "1")] if status == 503 else []
    headers = header_pairs(("content-type", "text/plain"), *more)
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
