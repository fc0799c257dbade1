"""Validates requests: parses one into a value of its kind, or refuses it with a status. PURE.

    method, headers, body ──▶ read ──▶ Opens | Posts | AnswersBadly | Reads | Ends
                                └────▶ Refusal
    Posts, the connection's calls ──▶ session_of_posted

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

The specification has 501 for a batch; the TypeScript SDK and others answer 400, and so do we. Refusals that depend on
the state of a connection or a stream (404, 409, 410) are made by `app` and `connection`, which know it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeAlias

from accord.engine.incoming_requests import session_of
from accord.http.headers import (
    CONNECTION_ID,
    EVENTS,
    JSON,
    LAST_EVENT_ID,
    MESSAGE,
    OPENS_A_SESSION,
    SESSION_ID,
)
from accord.http.server.unanswered_requests import INITIALIZE, UnansweredRequests
from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame, parse

Headers = Mapping[str, str]
"""Names in lower case."""

DIGITS = 18
"""The most digits of a number in a header."""


class Refusal(Exception):
    """A request that is refused: the status, the reason as text, and optionally a JSON body to send instead.

    `retry_after` is the number of seconds after which a client that may retry (429, 503) should do so.
    """

    def __init__(self, status: int, problem: str, body: bytes | None = None, *, retry_after: int = 5) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.body = body
        self.retry_after = retry_after


class Opens(NamedTuple):
    """A POST of `initialize`, which opens a connection."""

    call: RequestFrame
    body: bytes


class Posts(NamedTuple):
    """A POST of a message on a connection."""

    connection: str
    message: RequestFrame | NotificationFrame | ResponseFrame
    body: bytes
    session: str | None = None
    """The session in its header, which may be missing."""
    number: int | None = None
    """The number that the client gave it, so that a repeated POST is accepted once."""


class AnswersBadly(NamedTuple):
    """A POST of a malformed answer, which fails the request that it answers."""

    connection: str
    answer: Malformed
    body: bytes

    @property
    def refusal(self) -> Refusal:
        """Return the response to it."""
        return _malformed(self.answer)


class Reads(NamedTuple):
    """A GET: reads the stream of a session, or of the connection if `session` is None."""

    connection: str
    session: str | None
    last: int | None
    """The number of the last message that a resuming client has received."""


class Ends(NamedTuple):
    """A DELETE, which ends a connection."""

    connection: str


Request: TypeAlias = Opens | Posts | AnswersBadly | Reads | Ends


async def read(method: str, headers: Headers, body: Callable[[], Awaitable[bytes]]) -> Request:
    """Read a request; `body` is awaited for a POST of JSON only. Raises Refusal."""
    match method:
        case "POST":
            if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
                raise Refusal(415, f"Content-Type must be {JSON}")
            return posted(headers, await body())
        case "GET":
            # A missing Accept header or `*/*` is refused: the specification requires it to be explicit.
            if EVENTS not in headers.get("accept", "").lower():
                raise Refusal(406, f"Accept must include {EVENTS}")
            last = _number(headers, LAST_EVENT_ID, "Last-Event-ID must be an event id of this server")
            return Reads(_connection(headers), headers.get(SESSION_ID) or None, last)
        case "DELETE":
            return Ends(_connection(headers))
        case _:
            raise Refusal(405, "method not allowed; use POST, GET or DELETE")


def _connection(headers: Headers) -> str:
    if not (given := headers.get(CONNECTION_ID)):
        raise Refusal(400, "missing header Acp-Connection-Id")
    return given


def posted(headers: Headers, body: bytes) -> Opens | Posts | AnswersBadly:
    """Read a POST of JSON; raises Refusal."""
    message = parse(body)
    if isinstance(message, Malformed):
        if message.answerable or not headers.get(CONNECTION_ID):
            raise _malformed(message)
        return AnswersBadly(_connection(headers), message, body)
    if isinstance(message, RequestFrame) and message.method == INITIALIZE:
        if headers.get(CONNECTION_ID):
            raise Refusal(400, "`initialize` opens a connection: send it without Acp-Connection-Id")
        return Opens(message, body)
    number = _number(headers, MESSAGE, "Accord-Message must be a decimal number")
    return Posts(_connection(headers), message, body, headers.get(SESSION_ID) or None, number)


def _malformed(message: Malformed) -> Refusal:
    return Refusal(400, message.problem, message.reply())


def _number(headers: Headers, name: str, problem: str) -> int | None:
    given = headers.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= DIGITS):
        raise Refusal(400, problem)
    return int(given)


def session_of_posted(posts: Posts, calls: UnansweredRequests) -> str | None:
    """The session that a posted message belongs to; raises Refusal if its header names another one."""
    message = posts.message
    session = calls.session_of_ours(message.id) if isinstance(message, ResponseFrame) else session_of(message.params)
    if session is not None and not posts.session and not _says_enough(message):
        raise Refusal(400, "missing header Acp-Session-Id")
    if session is not None and posts.session and posts.session != session:
        raise Refusal(400, "Acp-Session-Id does not match the message's session")
    return session


def _says_enough(message: RequestFrame | NotificationFrame | ResponseFrame) -> bool:
    """Whether this message needs no Acp-Session-Id; the official Python SDK omits it here.

    An answer is found by its id, and a client that opens a session may have no stream of it yet.
    """
    return isinstance(message, ResponseFrame) or message.method in OPENS_A_SESSION or message.method == "session/fork"
