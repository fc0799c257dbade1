"""Agents behind a URL: Streamable HTTP and WebSocket on one endpoint, server and client (extra `http`).

    app = accord.http.app(agent)                                  # mount it in any ASGI server
    await accord.http.serve(agent, port=8000)                     # or serve it with Accord's own server

    async with accord.connect("https://agents.example/acp") as remote: ...

`server` and `client` share `h1`, `sse` and `headers`. On the server, `validation`, `unanswered_requests`, `streams` and
`access` are pure as well; the other modules do I/O and call them.
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
    from accord.http.server.access_log import log_formatter as log_formatter
    from accord.http.server.agent_host import (
        CommandHost as CommandHost,
        Host as Host,
        MeasuredHost as MeasuredHost,
        WrappedHost as WrappedHost,
    )
    from accord.http.server.app import App as App, app as app
    from accord.http.server.asgi import headers_of as headers_of
    from accord.http.server.serve import (
        Server as Server,
        serve as serve,
        serving as serving,
        serving_asgi as serving_asgi,
    )
    from accord.http.server.server_limits import Quotas as Quotas, ServerLimits as ServerLimits
    from accord.http.server.shared_host import SharedHost as SharedHost
    from accord.http.server.validation import Refusal as Refusal

_HOMES = {
    "Access": "server.access",
    "App": "server.app",
    "CommandHost": "server.agent_host",
    "Container": "server.agent_host",
    "Host": "server.agent_host",
    "HttpTransport": "client.http_transport",
    "MeasuredHost": "server.agent_host",
    "Observer": "server.access",
    "ProcessLimits": "server.agent_host",
    "Quotas": "server.server_limits",
    "Refusal": "server.validation",
    "Server": "server.serve",
    "ServerLimits": "server.server_limits",
    "SharedHost": "server.shared_host",
    "UrlTarget": "client.url_target",
    "WrappedHost": "server.agent_host",
    "app": "server.app",
    "connect_transport": "client.url_target",
    "headers_of": "server.asgi",
    "log_formatter": "server.access_log",
    "serve": "server.serve",
    "serving": "server.serve",
    "serving_asgi": "server.serve",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)
