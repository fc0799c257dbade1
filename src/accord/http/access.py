"""Who may come in: tokens, the pages of browsers, and the names we are called by. PURE.

A browser lets any page send requests to this machine. So a request that says from which page it comes (`Origin`) is let
in only if that page was named, and one that calls a server on the loopback by another name than that (a name that its
owner points here later on, "DNS rebinding") is not let in at all.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from typing import cast

from accord.http.judging import Headers, Refusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Access:
    """The rules of one server.

    `tokens` are bearer tokens, each with its owner (or only the tokens, if there is one owner): without any, everybody
    may come in. They are kept as hashes. `origins` are the pages that browsers may come from. `hosts` are the names
    that the server may be called by: any, if None.

    >>> access = Access(tokens={"s3cret": "ada"})
    >>> access.owner({"authorization": "Bearer s3cret"})
    'ada'
    """

    def __init__(
        self,
        tokens: Mapping[str, str] | Collection[str] = (),
        *,
        origins: Collection[str] = (),
        hosts: Collection[str] | None = None,
    ) -> None:
        if isinstance(tokens, str):
            raise TypeError("tokens are a collection of strings, or a mapping of them to their owners")
        owners = cast("Mapping[str, str]", tokens) if isinstance(tokens, Mapping) else dict.fromkeys(tokens, "")
        if "" in owners:
            raise ValueError("an empty token would let everybody in")
        self._owners = {_hash(token): owner for token, owner in owners.items()}
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)

    @property
    def is_open(self) -> bool:
        """Whether everybody may come in."""
        return not self._owners

    def owner(self, headers: Headers) -> str:
        """Whose request this is; raises Refusal if nobody's who may come in."""
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            raise Refusal(403, "pages of this origin may not come in")
        if self._hosts is not None and _name(headers.get("host", "")) not in self._hosts:
            raise Refusal(421, "this server has another name")
        return self._owner_by_token(headers.get("authorization", ""))

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
    return host.lower() in LOOPBACK or host.startswith("127.")


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _name(host: str) -> str:
    """The name in a `Host` header, which may have a port, and brackets around an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
