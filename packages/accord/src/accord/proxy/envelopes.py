"""Envelopes, and the version in `initialize`: what a conductor reads of messages. PURE.

A proxy has one link, and two neighbours. What it exchanges with its predecessor (towards the client) is plain. What it
exchanges with its successor (towards the agent) is the params of `proxy/successor`:

    {"jsonrpc":"2.0","id":7,"method":"proxy/successor","params":{"method":"session/prompt","params":{...}}}

The id belongs to the envelope, so the answer has no envelope. `$/cancel_request` is always plain: an id means
something on its own link only.

**The version.** The conductor speaks for the chain, so it offers no more than it knows: the highest version at or below
the one that the client asks for. Each component may choose a lower one in its answer, which nothing changes. After
`initialize` the conductor passes on bytes of any version."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.members import RawOrNone, members_of, value_of

INITIALIZE = "initialize"


class Spelling(NamedTuple):
    """The names of the two methods of proxies: today's, or those of the Rust SDK before version 5."""

    initialize: str
    successor: str


TODAY = Spelling("proxy/initialize", "proxy/successor")
OLDER = Spelling("_proxy/initialize", "_proxy/successor")

HANDSHAKES = {spelling.initialize: spelling for spelling in (TODAY, OLDER)}
ENVELOPES = {spelling.successor: spelling for spelling in (TODAY, OLDER)}
PROXY_METHODS = frozenset((*HANDSHAKES, *ENVELOPES))
"""The methods that only a conductor and a proxy may use with each other."""


class Envelope(msgspec.Struct, gc=False):
    """What an envelope holds. Its `_meta` is for one hop, and is not passed on."""

    method: str
    params: RawOrNone = None


class BadEnvelope(ValueError):
    """The params of `proxy/successor` name no method."""


def open_envelope(params: Raw | None) -> Envelope:
    """The message in an envelope, its params as they came; raises BadEnvelope."""
    if params is None:
        raise BadEnvelope("proxy/successor needs params with the member 'method'")
    try:
        envelope = _decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError):
        envelope = _opened_with_care(bytes(params))
    if envelope.params is not None and bytes(memoryview(envelope.params)[:1]) == b"n":
        return Envelope(envelope.method)
    return envelope


def _opened_with_care(params: bytes) -> Envelope:
    """Like `open_envelope`, for text with halves of emoji or invalid UTF-8."""
    try:
        members = members_of(params)
        method = None if members is None or members.method is None else value_of(members.method)
    except (msgspec.DecodeError, ValueError):
        method, members = None, None
    if members is None or not isinstance(method, str):
        raise BadEnvelope("the member 'method' of proxy/successor must be a string")
    return Envelope(method, members.params)


def enveloped_notification(spelling: Spelling, method: str, params: bytes | Raw | None) -> bytes:
    """The frame of a notification in an envelope."""
    if params is None:
        return b"".join((_notification_head(spelling, method), b"}}"))
    return b"".join((_notification_head(spelling, method), b',"params":', params, b"}}"))


def enveloped_request(spelling: Spelling, request_id: RequestId, method: str, params: bytes | Raw | None) -> bytes:
    """The frame of a request in an envelope."""
    head = b'{"jsonrpc":"2.0","id":%b%b' % (msgspec.json.encode(request_id), _envelope_head(spelling, method))
    return b"".join((head, b"}}")) if params is None else b"".join((head, b',"params":', params, b"}}"))


@lru_cache(maxsize=512)
def _envelope_head(spelling: Spelling, method: str) -> bytes:
    return b',"method":"%b","params":{"method":%b' % (spelling.successor.encode(), _json(method))


@lru_cache(maxsize=512)
def _notification_head(spelling: Spelling, method: str) -> bytes:
    return b'{"jsonrpc":"2.0"' + _envelope_head(spelling, method)


def _json(text: str) -> bytes:
    return msgspec.json.encode(text.encode("utf-8", "replace").decode())


_decode = msgspec.json.Decoder(Envelope).decode


LOWEST, HIGHEST = 1, 2
"""The versions of the protocol whose `initialize` is known."""


class BadVersion(ValueError):
    """The params of `initialize` name no version of the protocol."""


def offered_params(params: Raw | None) -> bytes | Raw:
    """The params of `initialize` for the chain: as they came, unless the client asks for a version that is not known.

    >>> bytes(offered_params(Raw(b'{"protocolVersion":7,"more":1}')))
    b'{"protocolVersion":2,"more":1}'
    """
    members = _members(params)
    asked = members.get("protocolVersion")
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 0:
        found = "nothing" if asked is None else msgspec.json.encode(asked).decode()[:40]
        raise BadVersion(f"protocolVersion must be a whole number of at least 0, got {found}")
    version = max(LOWEST, min(asked, HIGHEST))
    if version == asked and params is not None:
        return params
    return msgspec.json.encode({**members, "protocolVersion": version})


def version_in(value: Raw | bytes | None) -> int | None:
    """The version that the params or the result of `initialize` name; None if they name none."""
    try:
        version = _members(value).get("protocolVersion")
    except BadVersion:
        return None
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _members(value: Raw | bytes | None) -> dict[str, Any]:
    try:
        return {} if value is None else msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadVersion(f"the params of initialize cannot be read: {error}") from None
