"""The beginning of a connection: versions, capabilities, authentication."""

from __future__ import annotations

from accord.check.requirements.entry import agent, agent_engine, client, client_engine, engine, host, proposed, stated

INITIALIZATION = (
    *stated(
        "initialization, Initialization",
        client_engine.must("initialize.client-goes-first", "has `initialize` answered before any session request"),
        client.must("initialize.client-states-version", "names the latest protocol version that it supports"),
        client.must("initialize.client-states-capabilities", "names the capabilities that it supports"),
        client.should("initialize.client-states-info", "gives its name and version in clientInfo"),
        agent.must("initialize.agent-states-version", "answers with the protocol version that it chose"),
        agent.must("initialize.agent-states-capabilities", "answers with the capabilities that it supports"),
        agent.should("initialize.agent-states-info", "gives its name and version in agentInfo"),
    ),
    *stated(
        "schema, initialize",
        client_engine.must("initialize.once", "calls `initialize` once a connection"),
    ),
    *stated(
        "session-setup, Session Setup",
        agent_engine.should("initialize.no-session-before", "opens no session on a connection not initialized"),
    ),
    *stated(
        "initialization, Protocol version",
        engine.must("initialize.version.integer", "writes a protocol version as one integer"),
        engine.must("initialize.version.agreed-is-spoken", "speaks only the version that both agreed on"),
    ),
    *stated(
        "initialization, Version Negotiation",
        agent.must("initialize.version.agent-echoes-supported", "answers a version it supports with the same version"),
        agent.must("initialize.version.agent-answers-latest", "answers any other version with its own latest"),
        client.should("initialize.version.client-leaves", "closes the connection over a version it does not support"),
        client.should("initialize.version.client-tells-user", "tells the user when no version could be agreed on"),
    ),
)

CAPABILITIES = (
    *stated(
        "initialization, Capabilities",
        agent.must("capabilities.agent-takes-none", "accepts a client that declares no capability at all"),
        agent.must("capabilities.agent-omitted-is-unsupported", "uses nothing that the client did not declare"),
        client.must("capabilities.client-omitted-is-unsupported", "uses nothing that the agent did not declare"),
        agent.should("capabilities.agent-any-combination", "works with whatever mix of capabilities a client declares"),
        client.should("capabilities.client-any-combination", "works with whatever mix of capabilities an agent has"),
        engine.must("capabilities.unknown-harmless", "works with a peer that declares an unknown capability"),
    ),
    *stated(
        "initialization, Client Capabilities",
        client.should("capabilities.client-states-files-and-terminal", "says whether it lends files and terminals"),
    ),
    *stated(
        "initialization, Agent Capabilities",
        agent.should("capabilities.agent-states-its-own", "says whether it loads sessions, and what a prompt may hold"),
    ),
    *stated(
        "initialization, Terminal",
        host.must("terminal.capability-means-all", "offers every `terminal/*` method once it declares terminals"),
    ),
    *stated(
        "initialization, Prompt capabilities",
        agent.must("prompt.content.agent-takes-text", "takes text blocks in a prompt"),
        agent.must("prompt.content.agent-takes-links", "takes resource links in a prompt"),
    ),
    *stated(
        "initialization, Session Capabilities",
        agent.must(
            "session.agent-baseline",
            "offers session/new, session/prompt and session/cancel, and sends session/update",
        ),
        client.must("capabilities.null-is-unsupported", "takes a null capability for an absent one and {} for support"),
    ),
)

AUTHENTICATION = (
    *stated(
        "authentication, Advertising Authentication",
        agent.must("auth.methods-advertised", "lists in authMethods, with an id each, the ways in that it offers"),
        client.must("auth.logout.only-when-advertised", "calls `logout` only if the agent declared it"),
    ),
    *stated(
        "authentication, Authentication Method Types",
        client.must("auth.method.untyped-is-agent", "treats an auth method without a type as type `agent`"),
    ),
    *stated(
        "authentication, Authenticating",
        client.must("auth.authenticate.offered-method", "authenticates only with a method that the agent listed"),
        agent.must("auth.authenticate.empty-result", "answers a successful `authenticate` with an empty object"),
        agent.must("auth.authenticate.opens-sessions", "no longer asks for authentication once it has succeeded"),
    ),
    *stated(
        "schema, ErrorCode",
        agent.must("auth.required-code", "refuses for want of authentication with -32000"),
    ),
    *stated(
        "authentication, Logging Out",
        agent.must("auth.logout.empty-result", "answers a successful `logout` with an empty object"),
        agent.must("auth.logout.closes-sessions", "asks for authentication again before a new session after `logout`"),
    ),
    *stated(
        "authentication, Active Sessions",
        client.should("auth.logout.sessions-may-fail", "copes with authentication errors of sessions open at `logout`"),
    ),
)

TYPED_AUTHENTICATION = (
    *stated(
        "rfd-auth-methods, Client capabilities",
        agent.must("auth.terminal.only-when-advertised", "offers terminal logins only to a client that declared them"),
    ),
    *stated(
        "rfd-auth-methods, Auth method types",
        agent.must("auth.terminal.no-command", "names no command for a terminal login, only arguments and environment"),
        client.must("auth.terminal.same-program", "runs for a terminal login the very program that is the agent"),
        client.must(
            "auth.terminal.adds-to-setup", "adds a terminal login's arguments and environment to the usual ones"
        ),
    ),
    *proposed(
        "rfd-auth-methods, Auth method types",
        client.must("auth.environment.set-at-start", "hands over the variables when it starts the agent's process"),
        client.must("auth.environment.defaults", "takes a variable as secret and needed unless it says otherwise"),
        client.should("auth.environment.secrets-hidden", "hides a secret variable's value while it is typed"),
    ),
)

OPENING = (*INITIALIZATION, *CAPABILITIES, *AUTHENTICATION, *TYPED_AUTHENTICATION)
