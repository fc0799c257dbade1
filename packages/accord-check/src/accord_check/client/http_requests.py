"""`HttpRequests`: judges the HTTP requests of a client, one after the other: their headers, by what they carry."""

from __future__ import annotations

from collections.abc import Mapping

from accord.http.headers import (
    CONNECTION_ID,
    EVENTS,
    JSON,
    MAKES_SESSION_KNOWN,
    PROTOCOL_VERSION,
    SESSION_ID,
    session_of,
)
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, parse
from accord_check.passive.observer import Bench

COOKIE = "accord-check"
"""The cookie that the answer to `initialize` sets."""

_LATER = (*MAKES_SESSION_KNOWN, "session/fork")
"""Requests about a session whose stream the client may not have opened yet."""


class HttpRequests:
    """Judges requests; `bench` has what was seen and found."""

    def __init__(self) -> None:
        self.bench = Bench()
        self._connections = 0

    def asked(self, method: str, headers: Mapping[str, str], body: bytes) -> None:
        """Judge a request. Names of headers are in lower case."""
        message = parse(body) if body else None
        opens = isinstance(message, RequestFrame) and message.method == "initialize"
        if method == "POST":
            self._sends_json(headers)
        elif method == "GET":
            wrong = None if EVENTS in headers.get("accept", "").lower() else f"a GET accepts {headers.get('accept')!r}"
            self._judge("http.get.accepts-events", wrong)
        if opens:
            self._connections += 1
        elif self._connections:
            self._follows(method, headers)
        if isinstance(message, RequestFrame | NotificationFrame) and not opens:
            self._names_session(message, headers)

    def _sends_json(self, headers: Mapping[str, str]) -> None:
        given = headers.get("content-type", "")
        is_json = given.partition(";")[0].strip().lower() == JSON
        self._judge("http.post.sends-json", None if is_json else f"a POST has the content type {given!r}")

    def _follows(self, method: str, headers: Mapping[str, str]) -> None:
        """A request after `initialize`."""
        lacks = f"a {method} after initialize has no"
        has_id = CONNECTION_ID in headers
        self._judge("http.connection-header", None if has_id else f"{lacks} Acp-Connection-Id")
        if has_id:
            said = PROTOCOL_VERSION in headers
            self._judge("http.version-header", None if said else f"{lacks} Acp-Protocol-Version")
            returned = f"{COOKIE}=" in headers.get("cookie", "")
            self._judge("http.cookies-returned", None if returned else f"{lacks} cookie of the server")

    def _names_session(self, message: RequestFrame | NotificationFrame, headers: Mapping[str, str]) -> None:
        session, given = session_of(message.params), headers.get(SESSION_ID)
        if session is None or message.method in _LATER:
            return
        said = "no Acp-Session-Id" if given is None else f"the Acp-Session-Id {given!r}"
        wrong = None if given == session else f"a POST of {message.method} has {said}"
        self._judge("http.session-header", wrong)

    def _judge(self, name: str, problem: str | None) -> None:
        self.bench.judge(name, "client", problem)
