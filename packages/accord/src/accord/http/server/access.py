"""Access control: bearer tokens, origins of browser pages (CORS), and host names. PURE.

A browser lets any page send requests to this machine. So a request from a page (it has an `Origin` header) is allowed
only if its origin was listed. A request to a loopback server must name the loopback in its `Host` header: another name
could belong to an attacker who points it at this machine later ("DNS rebinding").

Pages of the server's own origin need not be listed: their origin is the host and port of the `Host` header. This holds
only if the server's names are known, because any name can be pointed here, and only if `Host` has a port, because
proxies often send a plain `localhost` for every request.

For a page of another origin, a browser asks first (a *preflight*, OPTIONS without a token) and then lets the page send
its request; it shows the page a response, and of its headers those that are listed here, only if the response names the
page's origin. So every response to an admitted origin names it, refusals too: the page can then say why it was refused.
An origin that is not listed gets 403 and no such header.

Cookies are allowed, because the TypeScript SDK's client lets its browser send them (the protocol wants them returned to
load balancers). That gives a page no rights: this server reads no cookie, and a page sends its token itself.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import re
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, cast

import msgspec

from accord.http.headers import CONNECTION_ID, LAST_EVENT_ID, MESSAGE, NUMBERED, PROTOCOL_VERSION, SESSION_ID
from accord.http.server.validation import Headers, Refusal


class Observer(msgspec.Struct, frozen=True):
    """The user of a token that may only watch: it sees the sessions of this owner, and nothing else.

    >>> Access(tokens={"0ther": Observer("ada")}).owner({"authorization": "Bearer 0ther"})
    'ada'
    """

    owner: str = ""


User: TypeAlias = str | Observer
"""The sender of a request: an owner, or an observer of the owner's sessions."""

OwnerOf: TypeAlias = Callable[[str], User | None]
"""Returns the owner of a bearer token or an `Observer`, or None if the token is not valid."""

log = logging.getLogger("accord")

MOST_REPORTED = 100
"""The most unknown names in `Host` headers that are logged, each once."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

LONGEST_NAME = 253
"""Characters of a name of the domain name system."""

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\s\[\]:/?#@,]+))(?P<port>:[0-9]*)?")


class Access:
    """The access rules of one server.

    `tokens` maps bearer tokens to their owners, or is a collection of tokens if there is one owner. An `Observer`
    instead of an owner makes it a token that may only watch the owner's sessions. Only hashes are stored. `tokens` may
    also be a function, for an application with its own users: it takes the bearer token of a request and returns its
    owner, an `Observer`, or None to refuse it; it is called for each request, so it must be fast. None allows everyone;
    an empty collection raises ValueError, because it usually failed to load. `origins` are the origins of browser pages
    that are allowed. `hosts` are the names allowed in the `Host` header; None allows any. `proxies` are the addresses
    and networks of proxies in front, which are trusted when they name the client (`X-Forwarded-For`).

    >>> access = Access(tokens={"s3cret": "ada"})
    >>> access.owner({"authorization": "Bearer s3cret"})
    'ada'
    """

    def __init__(
        self,
        tokens: Mapping[str, str] | Mapping[str, User] | Collection[str] | OwnerOf | None = None,
        *,
        origins: Collection[str] = (),
        hosts: Collection[str] | None = None,
        proxies: Collection[str] = (),
    ) -> None:
        if isinstance(tokens, str):
            raise TypeError("'tokens' must be a collection of strings or a mapping from token to owner, got a string")
        self._owner_of: OwnerOf | None = None
        if callable(tokens):
            self._owner_of, tokens = tokens, None
        owners: Mapping[str, User]
        owners = cast("Mapping[str, User]", tokens) if isinstance(tokens, Mapping) else dict.fromkeys(tokens or (), "")
        if tokens is not None and not owners:
            raise ValueError("'tokens' is empty, which would allow everyone: pass None if you want that")
        if any(not token.strip() for token in owners):
            raise ValueError("'tokens' contains an empty token: every token must have at least one visible character")
        self._owners = {_hash(token): owner for token, owner in owners.items()}
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._reported: set[str] = set()
        self._proxies = [_network(proxy) for proxy in proxies]

    @staticmethod
    def loopback_names(address: str) -> frozenset[str] | None:
        """Return the host names to allow for a server on this address if it is a loopback's; None for any other
        address.

        >>> sorted(Access.loopback_names("127.0.0.1") or ())
        ['127.0.0.1', '::1', 'localhost']
        """
        if not is_loopback(address):
            return None
        own = address.lower() if address.lower() == "localhost" else str(ipaddress.ip_address(address))
        return LOOPBACK | {address.lower(), own}

    @property
    def is_open(self) -> bool:
        """Whether no token is required."""
        return self._owner_of is None and not self._owners

    def owner(self, headers: Headers) -> str:
        """The owner of this request; raises Refusal if access is denied."""
        return owner_of(self.user(headers))

    def user(self, headers: Headers) -> User:
        """Return the owner of this request, or the `Observer` of its token; raises Refusal."""
        self.check_sender(headers)
        return self._user_by_token(headers.get("authorization", ""))

    def client(self, peer: tuple[str, int] | None, headers: Headers) -> str:
        """Return the address of the client: of the peer, or from trusted proxies. For the log, not for access.

        Each proxy appends the address that it has seen to the header. So the client is the last address that is not a
        trusted proxy's; the client has written anything before it.
        """
        address = "" if peer is None else peer[0]
        if not self._proxies or not self._is_proxy(address):
            return address
        for named in reversed(headers.get("x-forwarded-for", "").split(",")):
            try:
                address = str(ipaddress.ip_address(named.strip()))
            except ValueError:
                break
            if not self._is_proxy(address):
                break
        return address

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)

    def check_sender(self, headers: Headers) -> None:
        """Raise Refusal if this request names another server, or comes from a page that is not allowed."""
        if self._hosts is not None and _name(headers.get("host", "")) not in self._hosts:
            raise self._unknown(headers.get("host", ""), self._hosts)
        if "origin" in headers and self.admitted_origin(headers) is None:
            raise Refusal(403, "pages of this origin are not allowed")

    def _unknown(self, host: str, known: Collection[str]) -> Refusal:
        """Return the refusal of a request for another name. Only the log has the allowed names."""
        name = _name(host)
        if name is None:
            return Refusal(421, "the Host header is missing or malformed: it must name this server")
        if name not in self._reported and len(self._reported) < MOST_REPORTED:
            self._reported.add(name)
            log.warning(
                "a request was refused because its Host header names %s, which is not among the names of this server "
                "(%s): if it should be, start with --allow-host %s, or name it in Access(hosts=...); "
                "a proxy in front can also forward one of these names as Host",
                *(name, ", ".join(sorted(known)), name),
            )
        problem = f"the Host header names {name[:LONGEST_NAME]}, which this server does not serve"
        return Refusal(421, f"{problem}: ask its operator to admit that name (accord serve --allow-host)")

    def admitted_origin(self, headers: Headers) -> str | None:
        """Return the origin of the page that sends this request, if it is allowed; None without one."""
        origin = headers.get("origin")
        if origin is None:
            return None
        is_listed = origin.lower() in self._origins
        return origin if is_listed or self._is_own(origin, headers.get("host", "")) else None

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether this is the server's own origin."""
        is_certain = self._hosts is not None and host.rpartition(":")[2].isdecimal()
        return is_certain and origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())

    def _user_by_token(self, authorization: str) -> User:
        if self.is_open:
            return ""
        scheme, _, token = authorization.partition(" ")
        user = self._known(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise Refusal(401, "missing or wrong bearer token")
        return user

    def _known(self, token: str) -> User | None:
        """Return the owner of a token; None if the token is not accepted."""
        if self._owner_of is not None:
            return _asked(self._owner_of, token) if token else None
        given = _hash(token)
        # Every token is compared, each in constant time, so that timing reveals nothing.
        found = [owner for kept, owner in self._owners.items() if hmac.compare_digest(kept, given)]
        return found[0] if found else None


def owner_of(user: User) -> str:
    """Return the owner whose sessions this user has."""
    return user.owner if isinstance(user, Observer) else user


def _asked(user_of: OwnerOf, token: str) -> User | None:
    try:
        user = user_of(token)
        # An owner without a name would share the sessions of a server without tokens.
        return user if user is not None and owner_of(user) else None
    except Exception as error:
        log.exception("the function that knows the owners of tokens failed; the request is refused")
        raise Refusal(500, "the token could not be checked") from error


def is_loopback(host: str) -> bool:
    """Whether this address or name can be reached from this machine only.

    >>> is_loopback("127.0.0.2"), is_loopback("127.evil.example")
    (True, False)
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _network(proxy: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(proxy)
    except ValueError as error:
        raise ValueError(f"'proxies' takes addresses and networks like '10.0.0.0/8', got {proxy!r}: {error}") from None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _name(host: str) -> str | None:
    """Return the name in a `Host` header, which may have a port, and brackets around an IPv6 address; None if
    malformed.
    """
    found = _HOST.fullmatch(host.lower())
    return None if found is None else found["address"] or found["name"]


Fields = tuple[tuple[str, str], ...]

_REMEMBERED = 600
"""Seconds for which a browser may remember an answer to a preflight."""

_SENT = ("accept", "authorization", "content-type", CONNECTION_ID, SESSION_ID, PROTOCOL_VERSION, LAST_EVENT_ID, MESSAGE)
_SHOWN = (CONNECTION_ID, SESSION_ID, NUMBERED, "retry-after")


def is_preflight(method: str, headers: dict[str, str]) -> bool:
    """Whether a browser asks with this request what a page may send."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def cors_headers(origin: str | None) -> Fields:
    """Return the headers that let a page of this origin read a response; none if no origin is admitted."""
    if origin is None:
        return ()
    return (
        ("access-control-allow-origin", origin),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", ", ".join(_SHOWN)),
        ("vary", "Origin"),
    )


def preflight_headers(headers: dict[str, str]) -> Fields:
    """The headers that answer a preflight of an admitted origin."""
    answer = (
        ("access-control-allow-methods", "GET, POST, DELETE"),
        ("access-control-allow-headers", ", ".join(_SENT)),
        ("access-control-max-age", str(_REMEMBERED)),
    )
    # Private Network Access: a page of a public site may reach a server on this machine only if that agrees.
    if headers.get("access-control-request-private-network") == "true":
        return (*answer, ("access-control-allow-private-network", "true"))
    return answer
