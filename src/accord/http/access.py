"""Who may come in: tokens, the pages of browsers, and the names we are called by. PURE.

A browser lets any page send requests to this machine. So a request that says from which page it comes (`Origin`) is let
in only if that page was named, and one that calls a server on the loopback by another name than that (a name that its
owner points here later on, "DNS rebinding") is not let in at all.

A page of the server's own origin is let in without being named: its host and port are those of the `Host` header. That
holds only where the names of the server are known, as a page of any name could point that name here, and only where
`Host` has a port, as proxies often put a plain `localhost` there for all that comes to them.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Collection, Mapping
from typing import cast

from accord.http.judging import Headers, Refusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\s\[\]:/?#@,]+))(?P<port>:[0-9]*)?")


class Access:
    """The rules of one server.

    `tokens` are bearer tokens, each with its owner (or only the tokens, if there is one owner). They are kept as
    hashes. None lets everybody in; an empty collection is refused, as it is most often one that failed to load.
    `origins` are the pages that browsers may come from. `hosts` are the names that the server may be called by: any,
    if None.

    >>> access = Access(tokens={"s3cret": "ada"})
    >>> access.owner({"authorization": "Bearer s3cret"})
    'ada'
    """

    def __init__(
        self,
        tokens: Mapping[str, str] | Collection[str] | None = None,
        *,
        origins: Collection[str] = (),
        hosts: Collection[str] | None = None,
    ) -> None:
        if isinstance(tokens, str):
            raise TypeError("tokens are a collection of strings, or a mapping of them to their owners")
        owners = cast("Mapping[str, str]", tokens) if isinstance(tokens, Mapping) else dict.fromkeys(tokens or (), "")
        if tokens is not None and not owners:
            raise ValueError("'tokens' is empty, which would let everybody in: pass None if that is what you want")
        if any(not token.strip() for token in owners):
            raise ValueError("'tokens' contains an empty token: every token must have at least one visible character")
        self._owners = {_hash(token): owner for token, owner in owners.items()}
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)

    @property
    def is_open(self) -> bool:
        """Whether everybody may come in."""
        return not self._owners

    def owner(self, headers: Headers) -> str:
        """Whose request this is; raises Refusal if nobody's who may come in."""
        host = headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            raise Refusal(421, "this server does not answer to the name in the Host header")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins and not self._is_own(origin, host):
            raise Refusal(403, "pages of this origin may not come in")
        return self._owner_by_token(headers.get("authorization", ""))

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether this is the origin of the server itself."""
        is_certain = self._hosts is not None and host.rpartition(":")[2].isdecimal()
        return is_certain and origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())

    def _owner_by_token(self, authorization: str) -> str:
        if self.is_open:
            return ""
        scheme, _, token = authorization.partition(" ")
        given = _hash(token.strip())
        # Each is compared, in a time that says nothing of how much of it was right.
        found = [owner for kept, owner in self._owners.items() if hmac.compare_digest(kept, given)]
        if scheme.lower() != "bearer" or not found:
            raise Refusal(401, "a bearer token is wanted")
        return found[0]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches this address or name.

    >>> is_loopback("127.0.0.2"), is_loopback("127.evil.example")
    (True, False)
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_of(host: str) -> frozenset[str] | None:
    """The names of a server that listens here: those of the loopback and its own, or any if it listens elsewhere."""
    if not is_loopback(host):
        return None
    own = host.lower() if host.lower() == "localhost" else str(ipaddress.ip_address(host))
    return LOOPBACK | {host.lower(), own}


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _name(host: str) -> str | None:
    """The name in a `Host` header, which may have a port, and brackets around an IPv6 address; None if malformed."""
    found = _HOST.fullmatch(host.lower())
    return None if found is None else found["address"] or found["name"]
