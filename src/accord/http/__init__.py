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
    from accord.http.client.transport import HttpTransport as HttpTransport
    from accord.http.client.urls import UrlTarget as UrlTarget, connect_transport as connect_transport
    from accord.http.server.access import Access as Access
    from accord.http.server.app import App as App, app as app
    from accord.http.server.limits import ServerLimits as ServerLimits
    from accord.http.server.serve import serve as serve, serving as serving

_HOMES = {
    "Access": "server.access",
    "App": "server.app",
    "HttpTransport": "client.transport",
    "ServerLimits": "server.limits",
    "UrlTarget": "client.urls",
    "app": "server.app",
    "connect_transport": "client.urls",
    "serve": "server.serve",
    "serving": "server.serve",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)
