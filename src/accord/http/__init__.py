"""Agents behind a URL: Streamable HTTP and WebSocket on one endpoint, as a server and as a client (extra `http`).

    app = accord.http.app(agent)                                  # mounts in any ASGI server
    await accord.http.serve(agent, port=8000)                     # or is served by itself

    async with accord.connect("https://agents.example/acp") as remote: ...

What decides is pure and has no sockets (`wire`, `judging`, `outbound`, `events`, `ordering`, `access`); around it are
the thin shells: `asgi` and `link` on the server's side, `transport` over `http1` and `http2` on the client's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loading import on_first_use

if TYPE_CHECKING:
    from accord.http.access import Access as Access
    from accord.http.asgi import App as App, app as app
    from accord.http.limits import Limits as Limits
    from accord.http.server import serve as serve, serving as serving
    from accord.http.transport import HttpTransport as HttpTransport
    from accord.http.urls import UrlTarget as UrlTarget, connect_transport as connect_transport

_HOMES = {
    "Access": "access",
    "App": "asgi",
    "HttpTransport": "transport",
    "Limits": "limits",
    "UrlTarget": "urls",
    "app": "asgi",
    "connect_transport": "urls",
    "serve": "server",
    "serving": "server",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)
