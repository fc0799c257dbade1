"""Messages and links: JSON-RPC, framing, cancelling a request, extensions."""

from __future__ import annotations

from accord.check.requirements.entry import agent, agent_engine, client, client_engine, engine, framing, stated

JSONRPC = (
    *stated(
        "overview, Error Handling",
        engine.must("jsonrpc.answer.result-or-error", "answers with a result or an error, never with both or neither"),
        engine.must("jsonrpc.error.code-and-message", "gives every error an integer code and a string message"),
        engine.must("jsonrpc.notification.never-answered", "sends nothing back for a notification, good or bad"),
    ),
    *stated(
        "json-rpc, Request object",
        engine.must("jsonrpc.version-member", 'marks every message with "jsonrpc": "2.0"'),
        engine.must("jsonrpc.params-by-name", "sends params as an object, or none at all"),
    ),
    *stated(
        "schema, RequestId",
        engine.must("jsonrpc.request.id-type", "gives a request an id that is a string, a number or null"),
        engine.should("jsonrpc.request.id-not-null", "gives no request the id null"),
        engine.should("jsonrpc.request.id-not-fractional", "gives no request an id with a fraction"),
        engine.must("jsonrpc.answer.id-echoed", "answers under the request's own id, its JSON type included"),
    ),
    *stated(
        "json-rpc, Response object",
        engine.must("jsonrpc.answer.exactly-one", "answers every request once, whatever its handler does"),
        engine.must("jsonrpc.answer.null-id-when-unknown", "answers under id null what has no readable id"),
    ),
    *stated(
        "json-rpc, Error object",
        agent_engine.must("jsonrpc.error.parse", "answers input that is not JSON with -32700"),
        engine.must("jsonrpc.error.invalid-request", "answers JSON that is no valid message with -32600"),
        engine.must("jsonrpc.error.method-not-found", "answers a request for an unknown method with -32601"),
        engine.must("jsonrpc.error.invalid-params", "answers a request whose params do not fit with -32602"),
        engine.must("jsonrpc.error.internal", "answers with -32603 when its own handling fails"),
    ),
    *stated(
        "schema, Error",
        engine.should("jsonrpc.error.message-brief", "keeps an error's message to one short sentence"),
    ),
)

VALUES = (
    *stated(
        "overview, Argument requirements",
        agent.must(
            "paths.agent-sends-absolute",
            "sends absolute paths only: in diffs, locations, file and terminal requests",
        ),
        client.must("paths.client-sends-absolute", "sends absolute paths only: as cwd, as roots, as a filter"),
        agent.must("lines.agent-counts-from-one", "numbers lines from 1, in locations and in file requests"),
    ),
    *stated(
        "overview, Conventions",
        engine.must("wire.names-cased", "writes property names in camelCase and discriminator values in snake_case"),
    ),
)

FRAMING = (
    *stated(
        "transports, Transports",
        framing.must("wire.utf-8", "encodes every message as UTF-8"),
        engine.should("stdio.supported", "can be reached over stdio"),
    ),
    *stated(
        "transports, stdio",
        client_engine.must("stdio.client-launches-agent", "starts the agent as a process of its own"),
        agent_engine.must("stdio.agent-on-standard-streams", "reads messages from stdin and writes them to stdout"),
        framing.must("stdio.newline-ends-message", "ends every message with a newline"),
        framing.must("stdio.no-newline-inside", "lets no newline stand inside a message"),
        engine.must("stdio.no-batches", "sends messages one by one, never as a batch"),
        agent_engine.must("stdio.stdout-only-messages", "lets nothing but messages reach its stdout"),
        client_engine.must("stdio.stdin-only-messages", "writes nothing but messages to the agent's stdin"),
        client_engine.must("stdio.stderr-is-no-protocol", "lets an agent log to stderr without harm to the link"),
        client_engine.should("stdio.client-closes-stdin", "ends an agent by closing its stdin first"),
    ),
    *stated(
        "transports, Custom Transports",
        framing.must("transport.custom-keeps-protocol", "keeps message format and lifecycle on any other channel"),
    ),
)

CANCELLING = (
    *stated(
        "cancellation, `$/cancel_request` Notification",
        engine.must("cancel-request.still-answered", "answers a cancelled request, with a result or with -32800"),
        engine.must("cancel-request.result-accepted", "takes an ordinary result for a request that it cancelled"),
        engine.must("cancel-request.optional", "needs no reaction of the other side to a cancellation"),
    ),
    *stated(
        "cancellation, Internal Cancellation",
        engine.should("cancel-request.internal-same-code", "answers -32800 also when it gives a request up by itself"),
    ),
    *stated(
        "cancellation, Example: Cascading Cancellation Flow",
        agent_engine.should(
            "cancel-request.follows-session-cancel",
            "cancels the requests it made within a turn when that turn is cancelled",
        ),
    ),
    *stated(
        "schema, Protocol Level",
        engine.must("protocol.unknown-dollar-ignored", "carries on after a `$/` notification it does not implement"),
    ),
    *stated(
        "rfd-request-cancellation, Frequently asked questions",
        # Its section on processing says MUST, but the protocol's own page leaves it at MAY.
        engine.should("cancel-request.stops-work", "stops the work of a cancelled request and what is nested in it"),
        engine.should(
            "cancel-request.finished-first", "sends the ordinary answer when the work ended before the cancel"
        ),
        engine.should("cancel-request.late-ignored", "ignores a cancel for a request that is already answered"),
    ),
)

EXTENDING = (
    *stated(
        "extensibility, The `_meta` Field",
        engine.must("meta.is-object", "sends `_meta` as an object, or as null or not at all where it has none"),
        engine.should("meta.trace-keys-reserved", "uses traceparent, tracestate and baggage for W3C traces alone"),
        engine.must("types.no-own-fields", "adds no field of its own beside those of a protocol type"),
    ),
    *stated(
        "schema, InitializeRequest",
        engine.must("meta.nothing-assumed", "works whatever stands in a peer's `_meta`"),
    ),
    *stated(
        "extensibility, Extension Methods",
        engine.must("extension.method-underscore", "begins the name of every method of its own with an underscore"),
    ),
    *stated(
        "extensibility, Custom Requests",
        engine.must("extension.request-answered", "answers a custom request under its id, like any other"),
        engine.should("extension.request-unknown", "answers a custom request that it does not know with -32601"),
    ),
    *stated(
        "extensibility, Custom Notifications",
        engine.should("extension.notification-unknown", "ignores a notification that it does not know"),
    ),
    *stated(
        "extensibility, Advertising Custom Capabilities",
        engine.should("extension.advertised", "announces its extensions in the `_meta` of its capabilities"),
    ),
)

WIRE = (*JSONRPC, *VALUES, *FRAMING, *CANCELLING, *EXTENDING)
