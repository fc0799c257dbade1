"""What a request deserves, decided from its headers and its body alone. PURE.

| request | answer |
|---|---|
| POST of another type than JSON | 415 |
| POST that is no JSON, no message, or a batch | 400, and in it the error that JSON-RPC has for it |
| POST without a connection's id that is no `initialize`, or `initialize` with one | 400 |
| POST, GET or DELETE for a connection that is not there | 404 |
| POST of a session's message without its header, but for answers and what opens a session | 400 |
| POST of a session's message, or of the answer to one, with another session in its header | 400 |
| GET that accepts no event stream | 406 |
| GET for a session that is not known and cannot be loaded | 404 |
| GET for a stream that has a reader | 409, unless it says how far it got: then the earlier reader goes |
| GET that goes on from a message that is not kept any more | 410 |
| any other method | 405 |

The page would have 501 for a batch; the TypeScript SDK, and with it everybody else, answers 400.
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
    """The answer to a request that cannot be served. `body` is JSON, where there is something to say in it."""

    def __init__(self, status: int, problem: str, body: bytes | None = None) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.body = body


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A message that was posted, and the session that it belongs to."""

    message: Call | Tell | Answer
    session: str | None


def method(given: str) -> str:
    """POST, GET or DELETE; refuses all others."""
    if given not in ("POST", "GET", "DELETE"):
        raise Refusal(405, "this is POST, GET and DELETE")
    return given


def media_type(headers: Headers) -> None:
    """Refuse a POST of anything but JSON."""
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != JSON:
        raise Refusal(415, f"a message is posted as {JSON}")


def malformed(message: Malformed) -> Refusal:
    """The answer to a body that is no message."""
    return Refusal(400, message.problem, message.reply())


def opens(message: Call | Tell | Answer, headers: Headers) -> bool:
    """Whether this POST opens a connection; refuses what belongs to one and does not say to which."""
    is_initialize = isinstance(message, Call) and message.method == "initialize"
    has_connection = bool(headers.get(CONNECTION_ID))
    if is_initialize and has_connection:
        raise Refusal(400, "`initialize` opens a connection, and is not sent on one")
    if not is_initialize and not has_connection:
        raise Refusal(400, "the header Acp-Connection-Id is missing")
    return is_initialize


def connection_id(headers: Headers) -> str:
    """The connection that a request is about."""
    if not (given := headers.get(CONNECTION_ID)):
        raise Refusal(400, "the header Acp-Connection-Id is missing")
    return given


def posted(message: Call | Tell | Answer, headers: Headers, outbound: Streams) -> PostedMessage:
    """The message with its session; refuses one whose header does not say the same as it."""
    session = outbound.session_of_ours(message.id) if isinstance(message, Answer) else session_of(message.params)
    given = headers.get(SESSION_ID)
    if session is not None and not given and not _says_enough(message):
        raise Refusal(400, "the header Acp-Session-Id is missing")
    if session is not None and given and given != session:
        raise Refusal(400, "the header Acp-Session-Id names another session than the message")
    return PostedMessage(message, session)


def _says_enough(message: Call | Tell | Answer) -> bool:
    """Whether this may go without its session's header, as the official Python SDK sends it.

    An answer is found by its id, and who opens a session may not have a stream of it yet.
    """
    return isinstance(message, Answer) or message.method in MAKES_SESSION_KNOWN or message.method == "session/fork"


def accepts_events(headers: Headers) -> None:
    """Refuse a GET that could not read its stream. Nothing said, or `*/*`, is not enough: the page wants it said."""
    if EVENTS not in headers.get("accept", "").lower():
        raise Refusal(406, f"a stream is {EVENTS}")


def last_event(headers: Headers) -> int | None:
    """The last message that a reader has received, if it is one that comes back."""
    return _number(headers, LAST_EVENT_ID, "Last-Event-ID is no id that was given here")


def number(headers: Headers) -> int | None:
    """The number that a client gives to what it posts, if it does."""
    return _number(headers, MESSAGE, "Accord-Message is no number")


def _number(headers: Headers, name: str, problem: str) -> int | None:
    given = headers.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < _DIGITS):
        raise Refusal(400, problem)
    return int(given)


_DIGITS = 19
