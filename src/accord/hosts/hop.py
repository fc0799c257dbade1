"""The signature of a request that one host forwards to another. PURE.

    Accord-Hop: v1 <from> <to> <milliseconds> <owner> <body> <mac>
    Accord-Hop: v1-observer ...                                             the token may only watch

The host that a client has reached judges its token; between hosts travels only the owner, and whether the token may
only watch, signed with a key that all hosts share. The signature covers the method, every forwarded header and the
body, is accepted by one host only, and for `GOOD_FOR` seconds. A host takes part in no second hop: a request that
arrives with a signature is never forwarded.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from accord.hosts.passing import SIGNED

VERSION, OF_OBSERVER = "v1", "v1-observer"
"""The first word, for a controller and for an observer. A host that does not know of observers refuses the second."""

GOOD_FOR = 30.0
"""Seconds for which a signature is accepted. The clocks of two hosts may differ by less than that."""

LEAST_KEY = 32
"""Bytes that a key has at least."""

NO_BODY = sha256(b"").hexdigest()


class BadHop(Exception):
    """A request at the peer port that is refused; `status` says how."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class Hop(NamedTuple):
    """What is signed besides the request itself."""

    sender: str
    receiver: str
    moment: int
    """Milliseconds since 1970."""
    owner: str
    body: str
    """The SHA-256 of the body, in hexadecimal digits."""
    observes: bool = False
    """Whether the owner's token may only watch."""


def body_digest(body: bytes) -> str:
    """The SHA-256 of a body."""
    return sha256(body).hexdigest() if body else NO_BODY


def signed(hop: Hop, key: bytes, method: str, headers: Mapping[str, str]) -> str:
    """The value of `Accord-Hop` for this request."""
    words = _words(hop)
    return f"{words} {_mac(words, key, method, headers)}"


def verified(value: str, keys: Sequence[bytes], me: str, now: float, method: str, headers: Mapping[str, str]) -> Hop:
    """The hop that this value signs; raises BadHop. `now` is the time in seconds."""
    words, _, mac = value.rpartition(" ")
    given = mac.encode("utf-8", "replace")
    if not any(hmac.compare_digest(_mac(words, key, method, headers).encode(), given) for key in keys):
        raise BadHop(403, "not signed with the key of these hosts")
    hop = _read(words)
    if hop.receiver != me:
        raise BadHop(404, "the host of this connection has ended: connect again")
    if abs(now - hop.moment / 1000) > GOOD_FOR:
        raise BadHop(403, f"signed more than {GOOD_FOR:g} seconds ago: the clocks of the hosts differ")
    return hop


def _words(hop: Hop) -> str:
    owner = urlsafe_b64encode(hop.owner.encode("utf-8", "surrogatepass")).decode() or "-"
    return f"{OF_OBSERVER if hop.observes else VERSION} {hop.sender} {hop.receiver} {hop.moment} {owner} {hop.body}"


def _read(words: str) -> Hop:
    try:
        version, sender, receiver, moment, owner, body = words.split(" ")
        name = "" if owner == "-" else urlsafe_b64decode(owner).decode("utf-8", "surrogatepass")
        hop = Hop(sender, receiver, int(moment), name, body, version == OF_OBSERVER)
    except (ValueError, NotBase64):
        raise BadHop(400, "malformed Accord-Hop") from None
    if version not in (VERSION, OF_OBSERVER):
        raise BadHop(400, f"Accord-Hop has version {version}, this host reads {VERSION}")
    return hop


def _mac(words: str, key: bytes, method: str, headers: Mapping[str, str]) -> str:
    values = [f"{name}:{headers.get(name, '')}" for name in SIGNED]
    text = "\n".join((words, method, *values))
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), sha256).hexdigest()
