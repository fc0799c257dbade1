"""Headers that a user gives for the requests to a server: checked before anything is sent. PURE.

A line break in a value would begin a header, or a request, of somebody else's choice. A header that frames the message
would contradict the transport's own. Both are refused where they are given, with the name of the header. Values are
secrets, so no error shows one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from accord.errors import AccordError

OWN = frozenset(
    {"connection", "content-length", "content-type", "host", "keep-alive", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "accept", "last-event-id", "acp-connection-id", "acp-session-id", "accord-message"}
)
"""Headers that the transport sends itself."""

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def checked_headers(headers: Mapping[str, str] | None, token: str | None = None) -> dict[str, str]:
    """These headers, and the one with the bearer token if there is one; raises AccordError for a wrong one.

    >>> checked_headers({"X-Team": "blue"}, token="s3cret")
    {'X-Team': 'blue', 'Authorization': 'Bearer s3cret'}
    """
    for name, value in (headers or {}).items():
        _check(name, value)
    given = dict(headers or {})
    if token is not None:
        if not token.strip():
            raise AccordError("'token' is empty: pass None to send none")
        if not _VALUE.fullmatch(token):
            raise AccordError("'token' contains a line break or another control character: pass the token alone")
        given["Authorization"] = f"Bearer {token}"
    return given


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise AccordError(f"'headers' has the name {name!r}: a name has letters, digits and hyphens only")
    if name.lower() in OWN or name.lower().startswith("sec-websocket-"):
        raise AccordError(f"'headers' must not contain {name}: Accord sends this header itself")
    if not _VALUE.fullmatch(value):
        raise AccordError(f"the value of {name} in 'headers' contains a line break or another control character")
