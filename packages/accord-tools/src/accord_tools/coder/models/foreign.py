"""Requests to an endpoint that the client has set: its own headers go along, and nothing of this user's.

The packages of the providers read more than a key from the environment: organizations, projects, headers of the user's
own. They also send a key where there is none, and follow redirects with all headers. None of that may reach a server
that somebody else has named. So the last step before a request leaves drops every header that neither HTTP and the API
need nor the client has given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NEEDED = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)
"""Headers that HTTP and the APIs need; none of them says who the user is."""


def restrictions(headers: Iterable[str]) -> dict[str, Any]:
    """Options for an HTTP client of the providers' packages that sends these headers and those that are needed."""
    allowed = NEEDED | {name.lower() for name in headers}

    async def drop_others(request: Any) -> None:
        for name in [name for name in request.headers if name.lower() not in allowed]:
            del request.headers[name]

    return {"follow_redirects": False, "event_hooks": {"request": [drop_others]}}
