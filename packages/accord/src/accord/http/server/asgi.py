"""ASGI as the server's shells and its application use it: types, scopes, and responses. PURE."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote

from accord.http.headers import CONNECTION_ID, LAST_EVENT_ID, MESSAGE, PROTOCOL_VERSION, SESSION_ID

if TYPE_CHECKING:
    from accord.http.h1 import Fields

Event: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An application as every ASGI server runs it."""


OWN_SOCKET = "accord.socket"
"""The ASGI extension with which our own server hands over the socket itself, instead of an event for each frame."""

OWN_REQUEST = "accord.request"
"""The ASGI extension with which our own server hands over its `AsgiRequest`.

It gives the whole body if that has arrived, and calls a function when the client has left: waiting for `receive` takes
a task, two KiB. It continues a response when the application has returned: an event stream stays open for hours, and
then keeps nothing of what has read its request.
"""


def scope_of(
    kind: str, version: str, method: bytes, target: bytes, fields: Fields, transport: asyncio.BaseTransport
) -> Scope:
    """Create the scope of a request: `kind` is `http` or `websocket`, `version` the version of HTTP."""
    path, _, query = target.partition(b"?")
    if not path.startswith(b"/"):  # RFC 9112, 3.2.2: absolute form, as sent to proxies
        path = b"/" + path.partition(b"://")[2].partition(b"/")[2]
    return {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": version,
        "method": method.decode(),
        "scheme": ("ws" if kind == "websocket" else "http") + ("s" if transport.get_extra_info("ssl_object") else ""),
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": fields,
        "client": _address(transport.get_extra_info("peername")),
        "server": _address(transport.get_extra_info("sockname")),
        "extensions": {},
    }


def _address(address: Any) -> tuple[str, int] | None:
    # The transport's own tuple, if it has only these two. A Unix socket has a path.
    return cast("tuple[str, int]", address[:2]) if isinstance(address, tuple) else None


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request, an ASGI scope, with names in lower case.

    Repeated headers are joined (RFC 9110, 5.3), so that a proxy in front of us cannot see another value than we do.
    """
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = _USUAL.get(name) or name.decode("latin-1").lower()
        text = value.decode("utf-8", "replace")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


_USUAL = {
    name.encode(): name
    for name in (
        *(CONNECTION_ID, SESSION_ID, PROTOCOL_VERSION, LAST_EVENT_ID, MESSAGE),
        *("accept", "authorization", "content-length", "content-type", "host", "origin", "user-agent"),
    )
}
"""Names that nearly every request has, so that those of open streams are in memory once."""


def path_of(scope: Scope) -> str:
    """The path of a request, relative to the mount point."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path


async def gone(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def header_pairs(*headers: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers in the form of ASGI."""
    return [_pair(*header) for header in headers]


@lru_cache(maxsize=128)  # most responses have the same ones, and a table of HPACK stores them for each connection
def _pair(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode(), value.encode()
