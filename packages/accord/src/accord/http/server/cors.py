"""Pages of other origins (CORS): what a browser must be told before a page may use this server. PURE.

A browser asks first (a *preflight*, OPTIONS without a token) and then lets the page send its request; it shows the page
a response, and of its headers those that are listed here, only if the response names the page's origin. So every
response to an admitted origin names it, refusals too: the page can then say why it was refused. An origin that is not
listed gets 403 and no such header.

Cookies are allowed, because the TypeScript SDK's client lets its browser send them (the protocol wants them returned to
load balancers). That gives a page no rights: this server reads no cookie, and a page sends its token itself.
"""

from __future__ import annotations

from accord.http.headers import CONNECTION_ID, LAST_EVENT_ID, MESSAGE, NUMBERED, PROTOCOL_VERSION, SESSION_ID

Fields = tuple[tuple[str, str], ...]

_REMEMBERED = 600
"""Seconds for which a browser may remember an answer to a preflight."""

_SENT = ("accept", "authorization", "content-type", CONNECTION_ID, SESSION_ID, PROTOCOL_VERSION, LAST_EVENT_ID, MESSAGE)
_SHOWN = (CONNECTION_ID, SESSION_ID, NUMBERED, "retry-after")


def is_preflight(method: str, headers: dict[str, str]) -> bool:
    """Whether a browser asks with this request what a page may send."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def readable_by(origin: str | None) -> Fields:
    """The headers that let a page of this origin read a response; none if no origin is admitted."""
    if origin is None:
        return ()
    return (
        ("access-control-allow-origin", origin),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", ", ".join(_SHOWN)),
        ("vary", "Origin"),
    )


def allowed(headers: dict[str, str]) -> Fields:
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
