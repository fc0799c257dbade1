"""Validates requests by their headers and body, and decides the status of a refusal. PURE.

| request | answer |
|---|---|
| POST with another media type than JSON | 415 |
| POST with invalid JSON, an invalid message, or a batch | 400 with the JSON-RPC error |
| POST without a connection id that is not `initialize`, or `initialize` with one | 400 |
| POST, GET or DELETE for an unknown connection | 404 |
| POST of a session's message without Acp-Session-Id, except answers and requests that open it | 400 |
| POST of a session's message, or of an answer to one, with another session in its header | 400 |
| GET whose Accept does not name event streams | 406 |
| GET for an unknown session that cannot be loaded | 404 |
| GET for a stream that has a reader | 409; with Last-Event-ID it replaces the reader |
| GET that resumes after a message that is no longer kept | 410 |
| any other method | 405 |

The specification has 501 for a batch; the TypeScript SDK and others answer 400, and so do we.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from accord.http.headers import (
    CONNECTION_ID,
    EVENTS,
    JSON,
    LAST_EVENT_ID,
    MAKES_SESSION_KNOWN,
    MESSAGE,
    SESSION_ID,
    session_of,
)
from accord.http.server.streams import Streams
from accord.jsonrpc.messages import Answer, Call, Malformed, Tell

Headers = Mapping[str, str]
"""Names in lower case."""


class Refusal(Exception):
    """A request that is refused: the status, the reason as text, and optionally a JSON body to send instead."""

    def __init__(self, status: int, problem: str, body: bytes | None = None) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.body = body


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A posted message and the session it belongs to."""

    message: Call | Tell | Answer
    session: str | None


def method(given: str) -> str:
    """Check the method: POST, GET or DELETE."""
    if given not in ("POST", "GET", "DELETE"):
        raise Refusal(405, "method not allowed; use POST, GET or DELETE")
    return given


def media_type(headers: Headers) -> None:
    """Refuse a POST whose Content-Type is not JSON."""
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != JSON:
        raise Refusal(415, f"Content-Type must be {JSON}")


def malformed(message: Malformed) -> Refusal:
    """The refusal of a body that is not a valid message."""
    return Refusal(400, message.problem, message.reply())


def opens(message: Call | Tell | Answer, headers: Headers) -> bool:
    """Whether this POST opens a connection; refuses one that does not and names no connection."""
    is_initialize = isinstance(message, Call) and message.method == "initialize"
    has_connection = bool(headers.get(CONNECTION_ID))
    if is_initialize and has_connection:
        raise Refusal(400, "`initialize` opens a connection: send it without Acp-Connection-Id")
    if not is_initialize and not has_connection:
        raise Refusal(400, "missing header Acp-Connection-Id")
    return is_initialize


def connection_id(headers: Headers) -> str:
    """The id of the connection that a request names."""
    if not (given := headers.get(CONNECTION_ID)):
        raise Refusal(400, "missing header Acp-Connection-Id")
    return given


def posted(message: Call | Tell | Answer, headers: Headers, outbound: Streams) -> PostedMessage:
    """The message with its session; refuses it if the header names another one."""
    session = outbound.session_of_ours(message.id) if isinstance(message, Answer) else session_of(message.params)
    given = headers.get(SESSION_ID)
    if session is not None and not given and not _says_enough(message):
        raise Refusal(400, "missing header Acp-Session-Id")
    if session is not None and given and given != session:
        raise Refusal(400, "Acp-Session-Id does not match the message's session")
    return PostedMessage(message, session)


def _says_enough(message: Call | Tell | Answer) -> bool:
    """Whether this message needs no Acp-Session-Id; the official Python SDK omits it here.

    An answer is found by its id, and a client that opens a session may have no stream of it yet.
    """
    return isinstance(message, Answer) or message.method in MAKES_SESSION_KNOWN or message.method == "session/fork"


def accepts_events(headers: Headers) -> None:
    """Refuse a GET that does not accept event streams.

    A missing Accept header or `*/*` is refused: the specification requires it to be explicit.
    """
    if EVENTS not in headers.get("accept", "").lower():
        raise Refusal(406, f"Accept must include {EVENTS}")


def last_event(headers: Headers) -> int | None:
    """The number in Last-Event-ID: the last message that a resuming client has received, or None."""
    return _number(headers, LAST_EVENT_ID, "Last-Event-ID must be an event id of this server")


def number(headers: Headers) -> int | None:
    """The number that the client gave this POST, or None."""
    return _number(headers, MESSAGE, "Accord-Message must be a decimal number")


def _number(headers: Headers, name: str, problem: str) -> int | None:
    given = headers.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < _DIGITS):
        raise Refusal(400, problem)
    return int(given)


_DIGITS = 19
