"""Converts JSON text to messages and back; `OpenRequests`: which requests of a connection are open.

    frame ──▶ parse ──┬─ one strict decoder ──────────────▶ RequestFrame | NotificationFrame | ResponseFrame
                      ├─ refused ──▶ read with care ──┬───▶ the same, its text repaired
                      │                               └───▶ Malformed, which carries its reply
                      └─ past its limits (`frame_structure`) ──────▶ Malformed

`parse` accepts any bytes, never raises, and reads only the envelope: params and results stay raw JSON, as views of the
frame, until they are decoded to their types. The work is linear in the number of bytes, in both directions.

Some deviations are accepted, because peers send them:

- A null `method`, `params` or `error` counts as absent, and so does a null `result` beside a method or an error: some
  serialisers write every member they know.
- An id like `1.0` is the integer 1.
- An error may lack its code or message, may have one of the wrong type, and may be a string instead of an object.
- An error without an id has the id null: the peer could not read our message.
- Half of an emoji (`"\\ud83d"`), invalid UTF-8 and numbers of any size do not make a message malformed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from accord.jsonrpc.frame_structure import SMALL, Members, RawOrNone, TooDamagedError, excess, members_of
from accord.jsonrpc.line_frames import RequestId, as_id, outline


class ErrorObject(msgspec.Struct, frozen=True, gc=False):
    """The reason why a request failed, in the peer's words."""

    code: int
    message: str = ""
    data: Any = None


class RequestFrame(msgspec.Struct, frozen=True, gc=False, tag_field="jsonrpc", tag="2.0", forbid_unknown_fields=True):
    """A request: it expects a response with its id."""

    id: RequestId
    method: str
    params: RawOrNone = None


class NotificationFrame(
    msgspec.Struct, frozen=True, gc=False, tag_field="jsonrpc", tag="2.0", forbid_unknown_fields=True
):
    """A notification: it gets no response."""

    method: str
    params: RawOrNone = None


class ResponseFrame(msgspec.Struct, frozen=True, gc=False):
    """The response to a request: a result (the raw JSON `null` is one) or an error.

    An error whose id is None means that the peer could not read our message.
    """

    id: RequestId | None
    result: RawOrNone = None
    error: ErrorObject | None = None


class Malformed(msgspec.Struct, frozen=True, gc=False):
    """A frame that is not a valid message, and how to answer it."""

    code: int
    problem: str
    id: RequestId | None = None
    """The id of the reply."""
    answerable: bool = True
    """Whether it gets a reply. An answer gets none: two peers could answer each other endlessly."""
    pending: RequestId | None = None
    """The request of ours that this was meant to answer. It gets no other answer, so it fails."""

    def reply(self, *, named: bool = True) -> bytes | None:
        """The frame to send back, if one may be sent; not `named` where an unanswered request has the same id."""
        if not self.answerable:
            return None
        return encode_error(self.id if named else None, self.code, f"{_TITLES[self.code]}: {self.problem}")


Message: TypeAlias = RequestFrame | NotificationFrame | ResponseFrame


def parse(frame: bytes) -> Message | Malformed:
    """Return the message in this frame.

    >>> parse(b'{"jsonrpc":"2.0","id":1,"method":"session/new"}')
    RequestFrame(id=1, method='session/new', params=None)
    >>> parse(b"[]").problem
    'ACP has no batches; send each message on its own'
    """
    if len(frame) > SMALL:
        if problem := excess(frame):
            return _unreadable(frame, problem)
    # A stream consists of notifications, and most peers write the method as the second member. Such a message is
    # decoded without an envelope, and so is a request that begins with its id and its method. Others are refused
    # here, and read below.
    else:
        try:
            if frame[_END] == _TWO_BRACES:
                if frame[_SECOND_NAME] == _M:
                    return _decode_notification(frame)
                if frame.find(_METHOD, *_AFTER_VERSION) > 0:  # `in` raises an error and drops it, for any bytes
                    return _decode_request(frame)
        except _OTHER:
            pass
    try:
        envelope = _decode(frame)
    except RecursionError:
        return _unreadable(frame, "nested too deeply")
    except _REFUSALS:
        return _parse_with_care(frame)
    method, request_id = envelope.method, envelope.id
    if method is None:
        if request_id is not UNSET and (envelope.result is None) is not (envelope.error is None):
            return ResponseFrame(request_id, envelope.result, envelope.error)
    elif envelope.result is None and envelope.error is None:
        params = envelope.params
        if params is None or frame[_END] == _TWO_BRACES or memoryview(params)[0] == _BRACE:
            return (
                NotificationFrame(method, params) if request_id is UNSET else RequestFrame(request_id, method, params)
            )
    return _parse_with_care(frame)


def encode_request(request_id: RequestId, method: str, params: bytes | Raw | None = None) -> bytes:
    """Encode a request whose params are JSON."""
    if params is None:
        return b"".join((_ID, _json(request_id), _method(method), b"}"))
    return b"".join((_ID, _json(request_id), _method(method), _PARAMS, params, b"}"))


def encode_notification(method: str, params: bytes | Raw | None = None) -> bytes:
    """Encode a notification whose params are JSON."""
    if params is None:
        return b"".join((_VERSION, _method(method), b"}"))
    return b"".join((_VERSION, _method(method), _PARAMS, params, b"}"))


def notification_head(method: str) -> bytes:
    """Return the start of a notification's frame, up to its params, as most peers spell it."""
    return b"".join((_VERSION, _method(method), _PARAMS))


def encode_response(request_id: RequestId, result: bytes | Raw) -> bytes:
    """Encode a response whose result is JSON."""
    return b"".join((_ID, _json(request_id), _RESULT, result, b"}"))


def encode_error(request_id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """Encode an error response.

    Data that cannot be written as JSON is left out: the answer matters more.
    """
    error = b',"error":{"code":%d,"message":%b' % (code, _json(message))
    return b"".join((_ID, _json(request_id), error, _data(data), b"}}"))


def encode_raw_error(request_id: RequestId | None, error: bytes | Raw) -> bytes:
    """Encode an error response whose error object is JSON."""
    return b"".join((_ID, _json(request_id), b',"error":', error, b"}"))


def _data(data: Any) -> bytes:
    try:
        return b"" if data is None else b',"data":' + _json(data)
    except (TypeError, ValueError, RecursionError):
        return b""


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # half of an emoji: only an escape can represent it
        import json

        return json.dumps(value, allow_nan=False).encode()


@lru_cache(maxsize=512)
def _method(method: str) -> bytes:
    return b',"method":' + _json(method)


# Most frames are decoded directly into their class: the version is its tag, and further members are refused.
# But msgspec requires a tag only in a union, where tags tell the classes apart. So there is a second class. It has no
# members, so no frame that ends in an object can be one.
class _NoMessage(msgspec.Struct, tag_field="jsonrpc", tag="", forbid_unknown_fields=True):
    pass


class UnencodedNotification(msgspec.Struct, gc=False, tag_field="jsonrpc", tag="2.0"):
    """A notification whose params are not encoded yet: encoding it gives its frame in one pass, without a copy."""

    method: str
    params: Any


class UnencodedRequest(msgspec.Struct, gc=False, tag_field="jsonrpc", tag="2.0"):
    """A request whose params are not encoded yet; `UNSET` for none."""

    id: RequestId
    method: str
    params: Any


class UnencodedResponse(msgspec.Struct, gc=False, tag_field="jsonrpc", tag="2.0"):
    """A response whose result is not encoded yet."""

    id: RequestId
    result: Any


class _Envelope(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    method: str | None = None
    params: RawOrNone = None
    id: RequestId | UnsetType = UNSET
    result: RawOrNone = None
    error: ErrorObject | None = None


def _parse_with_care(frame: bytes) -> Message | Malformed:
    try:
        members = members_of(frame)
        values = None if members is None else members.values()
    except RecursionError:
        return _unreadable(frame, "nested too deeply")
    except TooDamagedError as error:
        return _unreadable(frame, str(error))
    except msgspec.DecodeError as error:
        return Malformed(PARSE_ERROR, str(error), pending=_pending(outline(frame)))
    if members is None or values is None:
        is_batch = frame.removeprefix(_BOM).lstrip()[:1] == b"["
        return Malformed(INVALID_REQUEST, _NO_BATCHES if is_batch else "a message must be an object")
    if _is_response(values):
        return _read_response(values, members)
    return _read_request(values, members)


def _unreadable(frame: bytes, problem: str) -> Malformed:
    members = outline(frame)
    if _is_response(members):
        return Malformed(INVALID_REQUEST, problem, answerable=False, pending=_pending(members))
    return Malformed(INVALID_REQUEST, problem, id=as_id(members.get("id")), pending=_pending(members))


def _read_request(values: dict[str, Any], members: Members) -> RequestFrame | NotificationFrame | Malformed:
    request_id = as_id(values.get("id"))
    method: Any = values.get("method")
    params: Any = values.get("params")
    problem = _first_of(
        (values.get("jsonrpc") != "2.0", _WRONG_VERSION),
        (not isinstance(method, str), "method must be a string"),
        (_has_outcome(values), "a message with a method must not have a result or an error"),
        (not isinstance(params, dict | None), "params must be an object"),
        ("id" in values and request_id is None, "id must be a string or a whole number"),
    )
    if problem:
        # JSON-RPC, Response object: the id is null only if it could not be read; without it the caller waits for ever.
        asker = None if _has_outcome(values) else request_id
        return Malformed(INVALID_REQUEST, problem, id=asker, pending=_pending(values))
    raw = None if params is None else members.params
    return NotificationFrame(method, raw) if request_id is None else RequestFrame(request_id, method, raw)


def _read_response(values: dict[str, Any], members: Members) -> ResponseFrame | Malformed:
    request_id, result, error = as_id(values.get("id")), values.get("result"), values.get("error")
    # JSON-RPC, Response object: the id is null if the other side could not read that of our message.
    unread = error is not None and values.get("id") is None
    problem = _first_of(
        (values.get("jsonrpc") != "2.0", _WRONG_VERSION),
        (result is not None and error is not None, "both a result and an error; an answer has one of them"),
        ("result" not in values and error is None, "neither a method nor a result nor an error"),
        (request_id is None and not unread, "an answer must have the id of its request"),
    )
    if problem:
        return Malformed(INVALID_REQUEST, problem, answerable=False, pending=request_id)
    if error is not None:
        return ResponseFrame(request_id, error=_error_object(error))
    return ResponseFrame(request_id, members.result)


def _error_object(error: Any) -> ErrorObject:
    if isinstance(error, str):
        return ErrorObject(INTERNAL_ERROR, error)
    if not isinstance(error, dict):
        return ErrorObject(INTERNAL_ERROR, data=error)
    members = cast("dict[str, Any]", error)
    code, message = as_id(members.get("code")), members.get("message")
    return ErrorObject(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) else "",
        members.get("data"),
    )


def _is_response(values: dict[str, Any]) -> bool:
    """Whether this was meant as an answer, even if it is malformed.

    An id alone counts as one: JavaScript leaves out a result that is undefined.
    """
    if values.get("method") is not None:
        return False
    return "result" in values or _has_outcome(values) or ("id" in values and values.get("params") is None)


def _has_outcome(values: dict[str, Any]) -> bool:
    return values.get("result") is not None or values.get("error") is not None


def _pending(values: dict[str, Any]) -> RequestId | None:
    return as_id(values.get("id")) if _is_response(values) or _has_outcome(values) else None


def _first_of(*checks: tuple[bool, str]) -> str | None:
    return next((problem for is_wrong, problem in checks if is_wrong), None)


_decode_notification = cast(
    "msgspec.json.Decoder[NotificationFrame]", msgspec.json.Decoder(NotificationFrame | _NoMessage)
).decode
_decode_request = cast("msgspec.json.Decoder[RequestFrame]", msgspec.json.Decoder(RequestFrame | _NoMessage)).decode
_decode = msgspec.json.Decoder(_Envelope).decode
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_OTHER = (*_REFUSALS, IndexError)

_SECOND_NAME = len(b'{"jsonrpc":"2.0","')
_AFTER_VERSION = (_SECOND_NAME, 72)  # an id as long as a UUID, and the name of the next member
_METHOD = b',"method":'
_M = ord("m")
# If a frame ends in two braces, its last member is an object. Of the members that the decoders know, only params,
# result and error can be objects. So this check shows that params are one, for half the cost of reading them.
_TWO_BRACES = b"}}"
_END = slice(-2, None)
_BRACE = ord("{")

_VERSION = b'{"jsonrpc":"2.0"'
_ID = b'{"jsonrpc":"2.0","id":'
_PARAMS = b',"params":'
_RESULT = b',"result":'

_BOM = b"\xef\xbb\xbf"
_NO_BATCHES = "ACP has no batches; send each message on its own"
_WRONG_VERSION = 'jsonrpc must be "2.0"'
_TITLES = {PARSE_ERROR: "Parse error", INVALID_REQUEST: "Invalid request"}


# The requests of one connection, both ways: ids, open requests, owed answers, abandoned requests. Pure.
#
# Each direction has ids of its own: a 1 that we send and a 1 that we receive are two requests. Ids are compared with
# their type: Python's dictionaries keep `1` and `"1"` apart, and `parse` accepts no boolean or fraction as an id.
#
# | our requests | |
# |---|---|
# | `add_outgoing(note) -> id` | we send a request |
# | `answered(id) -> note` | its answer arrives: its note, once; None if no open request has this id |
# | `abandon(id) -> bool` | we no longer want the answer; if it still arrives, it does not count as a stray |
#
# | the peer's requests | |
# |---|---|
# | `add_incoming(key, note) -> bool` | a request arrives; False if an unanswered one has the same key |
# | `remove_incoming(key) -> bool` | we answer it: True once, then False |
#
# A *note* is the object that the engine keeps with an open request.


OutgoingT = TypeVar("OutgoingT")
IncomingT = TypeVar("IncomingT")

MOST_ABANDONED = 10_000
"""The most ids of abandoned requests that are remembered. Past it the oldest is forgotten; its late answer is then a
stray.
"""


def key_of(request_id: RequestId) -> Hashable:
    """Return a dictionary key for an id that the peer has chosen.

    Python hashes an integer to its remainder modulo 2**61 - 1. A peer that may choose integers of any size could make
    them all collide, and each look-up would compare them all. Of the integers within 64 bits only a few share a hash.
    Larger ones are looked up by their text, whose hash the peer cannot predict.
    """
    if isinstance(request_id, int) and not _LEAST <= request_id <= _MOST:
        return (hex(request_id),)  # a tuple, so that it differs from each id that is a string
    return request_id


def head_of(request_id: int) -> bytes:
    """Return the beginning that nearly every peer gives the answer to our request with this id: up to the result or
    error.

    Open requests are looked up by it, so an answer that begins like this is found before its envelope is read.
    """
    return _HEAD % request_id


class OpenRequests(Generic[OutgoingT, IncomingT]):
    """The open requests of both sides of one connection."""

    __slots__ = ("_abandoned", "_next_id", "incoming", "outgoing", "strays")

    def __init__(self) -> None:
        self.outgoing: dict[bytes, OutgoingT] = {}
        """Our open requests, by the `head_of` their answers."""
        self.incoming: dict[Hashable, IncomingT] = {}
        """The peer's unanswered requests, by the `key_of` their ids."""
        self.strays = 0
        """How many answers belonged to no request of ours."""
        self._abandoned: OrderedDict[int, None] = OrderedDict()
        self._next_id = 1

    def add_outgoing(self, note: OutgoingT) -> int:
        """A new id for our request; it is never used again on this connection."""
        request_id = self._next_id
        self._next_id = request_id + 1
        self.outgoing[_HEAD % request_id] = note
        return request_id

    def is_open(self, request_id: int) -> bool:
        """Whether this request of ours is neither answered nor abandoned."""
        return head_of(request_id) in self.outgoing

    def forget(self, request_id: int) -> OutgoingT | None:
        """Remove this request of ours, without expecting its answer; returns its note, or None if it is not open."""
        return self.outgoing.pop(head_of(request_id), None)

    def answered(self, request_id: RequestId | None) -> OutgoingT | None:
        """Note that an answer has arrived; returns the note of its request, or None if no open request has this id."""
        if isinstance(request_id, int):
            note = self.forget(request_id)
            if note is not None:
                return note
            if request_id in self._abandoned:
                del self._abandoned[request_id]
                return None
        self.strays += 1
        return None

    def abandon(self, request_id: int) -> bool:
        """Forget this request. Returns False if its answer has arrived: then there is nothing to cancel."""
        if self.forget(request_id) is None:
            return False
        self._abandoned[request_id] = None
        if len(self._abandoned) > MOST_ABANDONED:
            self._abandoned.popitem(last=False)
        return True

    def add_incoming(self, key: Hashable, note: IncomingT) -> bool:
        """A request of the peer has arrived. False if an unanswered one has the same key."""
        if key in self.incoming:
            return False
        self.incoming[key] = note
        return True

    def has_incoming(self, request_id: RequestId | None) -> bool:
        """Whether a request with this id is unanswered: an answer with the id would be its answer."""
        return request_id is not None and key_of(request_id) in self.incoming

    def remove_incoming(self, key: Hashable) -> bool:
        """Mark this request as answered. True exactly once: after False, no answer may be sent."""
        return self.incoming.pop(key, None) is not None

    def drop_all(self) -> Iterator[OutgoingT]:
        """Remove and yield all open requests of ours, oldest first, at the end of the connection."""
        while self.outgoing:
            for head in list(self.outgoing):
                # The caller's work on one request may have abandoned another.
                if (note := self.outgoing.pop(head, None)) is not None:
                    yield note


_HEAD = b'{"jsonrpc":"2.0","id":%d'
_LEAST, _MOST = -(2**63), 2**64 - 1
