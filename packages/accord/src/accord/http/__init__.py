"""Agents behind a URL: Streamable HTTP and WebSocket on one endpoint, server and client (extra `http`).

    app = accord.http.app(agent)                                  # mount it in any ASGI server
    await accord.http.serve(agent, port=8000)                     # or serve it with Accord's own server

    async with accord.connect("https://agents.example/acp") as remote: ...

`server` and `client` share `h1`, `sse` and `headers`. On the server, `validation`, `unanswered_requests`, `streams` and
`access` are pure as well; the other modules do I/O and call them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

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
    "client.http_transport": "HttpTransport",
    "client.url_target": "UrlTarget connect_transport",
    "server.access": "Access Observer",
    "server.access_log": "log_formatter",
    "server.agent_host": "CommandHost Container Host MeasuredHost ProcessLimits WrappedHost",
    "server.app": "App app",
    "server.asgi": "headers_of",
    "server.serve": "Server serve serving serving_asgi",
    "server.server_limits": "Quotas ServerLimits",
    "server.shared_host": "SharedHost",
    "server.validation": "Refusal",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
