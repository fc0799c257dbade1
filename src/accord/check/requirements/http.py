"""The proposed remote transport: Streamable HTTP and WebSocket on one endpoint."""

from __future__ import annotations

from accord.check.requirements.entry import http_client, http_link, http_server, proposed

PAGE = "rfd-streamable-http-websocket-transport"

PROFILES = (
    *proposed(
        f"{PAGE}, Deviations from MCP Streamable HTTP",
        http_server.must(
            "http.initialize.id-in-result", "gives the connection id in the result of that answer as well"
        ),
    ),
    *proposed(
        f"{PAGE}, Elevator pitch",
        http_client.must("http.client-speaks-both", "speaks both Streamable HTTP and WebSocket"),
    ),
    *proposed(
        f"{PAGE}, Adds an HTTP Transport",
        http_link.must("http.version-two", "uses HTTP/2 for Streamable HTTP"),
        http_server.must("http.initialize.answered-at-once", "answers `initialize` in the POST itself: 200 and JSON"),
        http_server.must("http.initialize.gives-connection-id", "gives a connection id in that answer's header"),
        http_server.must("http.post.accepted", "answers every other good POST at once with 202 and no body"),
        http_server.must("http.stream.carries-answers", "sends answers over a GET stream, under the request's id"),
        http_server.must("http.stream.session-messages", "sends a session's messages over that session's stream only"),
        http_server.must("http.stream.connection-messages", "sends what has no session over the connection's stream"),
    ),
    *proposed(
        f"{PAGE}, Requires cookie support on HTTP transports",
        http_client.must("http.cookies-returned", "sends the server's cookies back for as long as it is connected"),
    ),
    *proposed(
        f"{PAGE}, Preserves the full ACP lifecycle",
        http_link.must("http.lifecycle-kept", "keeps the lifecycle and the messages that stdio has"),
    ),
    *proposed(
        f"{PAGE}, Durability and reliability expectations",
        http_server.must(
            "http.sessions-outlive-connections", "lets a lost connection's session be loaded from a new one"
        ),
    ),
)

HEADERS = (
    *proposed(
        f"{PAGE}, Identity Model",
        http_client.must("http.connection-header", "sends Acp-Connection-Id with all that follows `initialize`"),
        http_client.must("http.session-header", "sends Acp-Session-Id with a session's POSTs and its stream"),
        http_server.must("http.many-sessions", "serves several sessions on one connection, each with its own stream"),
    ),
    *proposed(
        f"{PAGE}, Content Negotiation and Validation",
        http_client.must("http.post.sends-json", "posts with content type application/json"),
        http_server.must("http.post.other-types-refused", "answers a POST of another content type with 415"),
        http_client.must("http.get.accepts-events", "opens a stream with an Accept that includes text/event-stream"),
        http_server.must("http.get.other-accept-refused", "answers a GET that accepts no event stream with 406"),
        http_server.must("http.batch-refused", "answers a batch with 501"),
    ),
    *proposed(
        f"{PAGE}, Frequently asked questions",
        http_client.should("http.version-header", "sends Acp-Protocol-Version with all that follows `initialize`"),
    ),
)

ROUTING = (
    *proposed(
        f"{PAGE}, Unified Endpoint Routing",
        http_server.must("http.connection-missing", "answers a request that lacks its connection id with 400"),
        http_server.must("http.connection-unknown", "answers a request for an unknown connection with 404"),
        http_server.must("http.session-missing", "answers a session's POST that lacks the session id with 400"),
        http_server.must("http.session-unknown", "answers a stream for a session unknown to the connection with 404"),
        http_server.must("http.delete-ends-connection", "ends a connection and its streams on DELETE, with 202"),
    ),
)

WEBSOCKET = (
    *proposed(
        f"{PAGE}, Connection Establishment (GET with Upgrade)",
        http_server.must("websocket.same-endpoint", "upgrades a GET on the same endpoint when it is asked to"),
        http_server.must("websocket.gives-connection-id", "gives a connection id in the upgrade's headers"),
        http_client.must("websocket.initialize-first", "sends `initialize` as the first message"),
    ),
    *proposed(
        f"{PAGE}, Bidirectional Messaging",
        http_link.must("websocket.text-frames", "sends each message as one text frame"),
        http_link.must("websocket.binary-ignored", "ignores binary frames"),
        http_server.must("websocket.cleaned-up", "frees what a connection held once its socket is gone"),
    ),
)

HTTP = (*PROFILES, *HEADERS, *ROUTING, *WEBSOCKET)
