"""The signature of a request that one host forwards to another. PURE.

    Accord-Hop: v2 <from> <to> <moment> <nonce> <role> <owner> <length> <body> <mac>

The host that a client has reached checks its token. Between hosts, only the owner, and whether the token may only
watch, are sent, signed with a key that all hosts share.

**What is signed is what is executed.** The signature covers the method, the target, every header that is forwarded, and
the length and the digest of the body. The receiving host builds the request that it executes from exactly these
(`forwarder`), and compares the digest with the bytes that it has read, however they have arrived (`RequestBody.read`).
A handshake of a WebSocket has a method of its own here, so that no signature of a GET opens one.

**Each signature is accepted once.** It is for one receiver, whose id is never used again, and it names a nonce and a
moment on the receiver's own clock, which its peers learn with each answer about its health. That clock is monotonic, so
a step of the machine's wall clock changes nothing. A signature is valid for `GOOD_FOR` seconds from that moment;
`TakenNonces` remembers the nonces for as long.

A request is forwarded at most once: one that arrives with a signature is never forwarded again. Answers, and the
messages of a WebSocket, are not signed: TLS between the hosts protects these.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from accord.http.headers import CONNECTION_ID, LAST_EVENT_ID, MESSAGE, PROTOCOL_VERSION, SESSION_ID

VERSION = "v2"

OWNER, OBSERVER = "owner", "observer"
"""The roles: of a token that controls, and of one that may only watch."""

WEBSOCKET = "WEBSOCKET"
"""Instead of the method, for the handshake of a WebSocket."""

FORWARDED = (
    *("accept", "content-type", CONNECTION_ID, LAST_EVENT_ID, MESSAGE, PROTOCOL_VERSION, SESSION_ID),
    *("traceparent", "tracestate"),
)
"""The headers of a request that the host of its connection gets. Credentials stay where they were checked."""

GOOD_FOR = 30.0
"""Seconds for which a signature is accepted."""

AHEAD = 1.0
"""Seconds that a signature may be ahead of the receiver's clock. Senders know the clock a little late, never early."""

MOST_NONCES = 50_000
"""The most nonces in each of the two sets of `TakenNonces`: 150 bytes each."""

LEAST_KEY = 32
"""Bytes that a key has at least."""


class BadSignature(Exception):
    """The refusal of a request at the peer port; `status` is its HTTP status."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class SignedForward(NamedTuple):
    """The signed data besides the method, the target and the headers."""

    sender: str
    receiver: str
    moment: float
    """Seconds on the receiver's clock."""
    nonce: str
    owner: str = ""
    observes: bool = False
    """Whether the owner's token may only watch."""
    length: int = 0
    digest: str = sha256(b"").hexdigest()
    """The SHA-256 of the body, in hexadecimal digits."""


class Signer:
    """Signs requests of one host with the first of its keys, and checks those of others with all of them."""

    def __init__(self, keys: Sequence[bytes], me: Callable[[], str]) -> None:
        self._keys = keys
        self._me = me
        """The id of this host, which changes when it joins again."""

    def forward(
        self, receiver: str, moment: float, owner: str = "", body: bytes = b"", *, observes: bool = False
    ) -> SignedForward:
        """Create the signed data for a request to this receiver, with a fresh nonce."""
        nonce, digest = secrets.token_urlsafe(16), sha256(body).hexdigest()
        return SignedForward(self._me(), receiver, moment, nonce, owner, observes, len(body), digest)

    def sign(self, forward: SignedForward, method: str, target: str, headers: Mapping[str, str]) -> str:
        """Return the value of `Accord-Hop` for this request."""
        words = _words(forward)
        return f"{words} {_mac(self._keys[0], words, method, target, headers)}"

    def verify(self, value: str, method: str, target: str, headers: Mapping[str, str]) -> SignedForward:
        """Return the data that this value of `Accord-Hop` signs, for this host; raises BadSignature."""
        words = self._checked(value, lambda key, words: _mac(key, words, method, target, headers))
        forward = _read(words)
        if forward.receiver != self._me():
            raise BadSignature(404, "the host of this connection has ended: connect again")
        return forward

    def sign_clock(self, clock: float, question: SignedForward) -> str:
        """Return the answer to a peer that asks for the clock of this host."""
        words = f"{clock:.3f}"
        return f"{words} {_clock_mac(self._keys[0], words, question)}"

    def verify_clock(self, answer: str, question: SignedForward) -> float:
        """Return the clock in a peer's answer to this question; raises BadSignature."""
        return float(self._checked(answer, lambda key, words: _clock_mac(key, words, question)))

    def _checked(self, value: str, mac_of: Callable[[bytes, str], str]) -> str:
        """Return the signed words of this value, whose last word is their signature."""
        words, _, mac = value.rpartition(" ")
        # All that we sign is ASCII; other text may not even have an encoding.
        if value.isascii() and any(hmac.compare_digest(mac_of(key, words), mac) for key in self._keys):
            return words
        raise BadSignature(403, "not signed with the key of these hosts")


class TakenNonces:
    """The nonces that one host has accepted, so that it accepts none twice.

    Two sets alternate: when the newer one has been filled for long enough, or is full, the older one is forgotten. All
    signatures made before the newer one was begun are refused from then on. So memory is bounded, and a nonce that was
    forgotten cannot be used again: a host with very many requests accepts them for a shorter time.
    """

    def __init__(self, most: int = MOST_NONCES) -> None:
        self._most = most
        self._newer: set[str] = set()
        self._older: set[str] = set()
        self._began = self._floor = float("-inf")
        """When the newer set was begun, and the moment after which signatures are accepted."""

    def take(self, forward: SignedForward, now: float) -> None:
        """Take the nonce of this request; raises BadSignature."""
        if now - self._began > GOOD_FOR + AHEAD or len(self._newer) >= self._most:
            self._floor = self._began + AHEAD
            self._began = now
            self._newer, self._older = set(), self._newer
        if not max(self._floor, now - GOOD_FOR) < forward.moment <= now + AHEAD:
            # The sender learns the clock again within a beat.
            raise BadSignature(503, f"signed more than {GOOD_FOR:g} seconds ago, or for another clock; try again")
        if forward.nonce in self._newer or forward.nonce in self._older:
            raise BadSignature(403, "this request was taken before")
        self._newer.add(forward.nonce)


def forwarded_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that are forwarded, signed and used."""
    return {name: headers[name] for name in FORWARDED if name in headers}


def _words(forward: SignedForward) -> str:
    owner = urlsafe_b64encode(forward.owner.encode("utf-8", "surrogatepass")).decode() or "-"
    role = OBSERVER if forward.observes else OWNER
    return (
        f"{VERSION} {forward.sender} {forward.receiver} {forward.moment:.3f} {forward.nonce} {role} {owner} "
        f"{forward.length} {forward.digest}"
    )


def _read(words: str) -> SignedForward:
    version, _, rest = words.partition(" ")
    if version != VERSION:
        raise BadSignature(400, f"Accord-Hop has version {version!r}, this host reads {VERSION}: update all hosts")
    try:
        sender, receiver, moment, nonce, role, owner, length, digest = rest.split(" ")
        name = "" if owner == "-" else urlsafe_b64decode(owner).decode("utf-8", "surrogatepass")
        return SignedForward(sender, receiver, float(moment), nonce, name, role == OBSERVER, int(length), digest)
    except (ValueError, NotBase64):
        raise BadSignature(400, "malformed Accord-Hop") from None


def _mac(key: bytes, words: str, method: str, target: str, headers: Mapping[str, str]) -> str:
    # As JSON, so that no value can run into the next.
    signed = msgspec.json.encode([words, method, target, forwarded_headers(headers)])
    return hmac.new(key, signed, sha256).hexdigest()


def _clock_mac(key: bytes, words: str, question: SignedForward) -> str:
    signed = msgspec.json.encode(["clock", words, question.receiver, question.nonce])
    return hmac.new(key, signed, sha256).hexdigest()
