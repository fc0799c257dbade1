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
    from accord.confinement.container import Container as Container
    from accord.confinement.process_limits import ProcessLimits as ProcessLimits
    from accord.http.client.http_transport import HttpTransport as HttpTransport
    from accord.http.client.url_target import UrlTarget as UrlTarget, connect_transport as connect_transport
    from accord.http.server.access import Access as Access, Observer as Observer
    from accord.http.server.agent_host import CommandHost as CommandHost, MeasuredHost as MeasuredHost
    from accord.http.server.app import App as App, app as app
    from accord.http.server.owner_quotas import Quotas as Quotas
    from accord.http.server.serve import serve as serve, serving as serving
    from accord.http.server.server_limits import ServerLimits as ServerLimits
    from accord.http.server.shared_host import SharedHost as SharedHost

_HOMES = {
    "Access": "server.access",
    "App": "server.app",
    "CommandHost": "server.agent_host",
    "Container": "server.agent_host",
    "HttpTransport": "client.http_transport",
    "MeasuredHost": "server.agent_host",
    "Observer": "server.access",
    "ProcessLimits": "server.agent_host",
    "Quotas": "server.owner_quotas",
    "ServerLimits": "server.server_limits",
    "SharedHost": "server.shared_host",
    "UrlTarget": "client.url_target",
    "app": "server.app",
    "connect_transport": "client.url_target",
    "serve": "server.serve",
    "serving": "server.serve",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)
