"""Agents behind a URL: Streamable HTTP and WebSocket on one endpoint, server and client (extra `http`).

    app = accord.http.app(agent)                                  # mount it in any ASGI server
    await accord.http.serve(agent, port=8000)                     # or serve it with Accord's own server

    async with accord.connect("https://agents.example/acp") as remote: ...

`server` and `client` share `headers`, `h1`, `sse` and `ordering`, which are pure. On the server, `validation`, `calls`,
`streams` and `access` are pure as well; the other modules do I/O and call them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord._internal.lazy_names import on_first_use

if TYPE_CHECKING:
    from accord.confinement.containers import Container as Container
    from accord.confinement.limits import ProcessLimits as ProcessLimits
    from accord.http.client.transport import HttpTransport as HttpTransport
    from accord.http.client.urls import UrlTarget as UrlTarget, connect_transport as connect_transport
    from accord.http.server.access import Access as Access, Observer as Observer
    from accord.http.server.app import App as App, app as app
    from accord.http.server.hosting import CommandHost as CommandHost
    from accord.http.server.limits import ServerLimits as ServerLimits
    from accord.http.server.measured_host import MeasuredHost as MeasuredHost
    from accord.http.server.quotas import Quotas as Quotas
    from accord.http.server.serve import serve as serve, serving as serving
    from accord.http.sharing.shared_host import SharedHost as SharedHost

_HOMES = {
    "Access": "server.access",
    "App": "server.app",
    "CommandHost": "server.hosting",
    "Container": "server.hosting",
    "HttpTransport": "client.transport",
    "MeasuredHost": "server.measured_host",
    "Observer": "server.access",
    "ProcessLimits": "server.hosting",
    "Quotas": "server.quotas",
    "ServerLimits": "server.limits",
    "SharedHost": "sharing.shared_host",
    "UrlTarget": "client.urls",
    "app": "server.app",
    "connect_transport": "client.urls",
    "serve": "server.serve",
    "serving": "server.serve",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)
