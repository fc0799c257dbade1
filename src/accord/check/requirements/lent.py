"""What a client lends to agents: files, terminals, tools over the same connection; and what configures an agent."""

from __future__ import annotations

from accord.check.requirements.entry import agent, client, host, proposed, stated, tool_bridge

FILES = (
    *stated(
        "file-system, Checking Support",
        agent.must("files.read.only-when-advertised", "reads through the client only if the client declared it"),
        agent.must("files.write.only-when-advertised", "writes through the client only if the client declared it"),
    ),
    *stated(
        "file-system, Reading Files",
        host.must("files.read.unsaved-edits", "reads a file as the user sees it, unsaved edits included"),
        host.must("files.read.line-and-limit", "starts at the given line, counted from 1, and stops at the limit"),
    ),
    *stated(
        "file-system, Writing Files",
        host.must("files.write.creates", "creates the file that it is told to write if it does not exist"),
        agent.should("files.write.empty-answers-accepted", "takes null and an object alike as a write's success"),
    ),
    *stated(
        "schema, ErrorCode",
        host.should("files.missing-code", "answers for a file that is not there with -32002"),
    ),
)

TERMINALS = (
    *stated(
        "terminals, Checking Support",
        agent.must("terminal.only-when-advertised", "calls `terminal/*` only if the client declared terminals"),
    ),
    *stated(
        "terminals, Executing Commands",
        host.must("terminal.create.as-told", "runs the command with its arguments, environment and directory"),
        host.must("terminal.create.at-once", "answers with the terminal's id without waiting for the command"),
        host.must("terminal.output.oldest-dropped", "drops the oldest output past the byte limit"),
        host.must("terminal.output.whole-characters", "cuts output between characters, never inside one"),
        agent.must("terminal.released", "releases every terminal that it created"),
    ),
    *stated(
        "terminals, Getting Output",
        host.must("terminal.output.at-once", "answers with the output so far, the command running or not"),
        host.must("terminal.output.truncation-told", "says whether output was dropped"),
        host.must("terminal.output.exit-status", "adds an exit status to the output once the command has exited"),
    ),
    *stated(
        "terminals, Waiting for Exit",
        host.must("terminal.wait.until-exit", "answers a wait when the command exits, with its code or its signal"),
    ),
    *stated(
        "terminals, Killing Commands",
        host.must("terminal.kill.keeps-terminal", "keeps a killed command's terminal readable and waitable"),
        agent.must("terminal.kill.still-released", "releases a terminal also after killing its command"),
    ),
    *stated(
        "terminals, Releasing Terminals",
        host.must("terminal.release.kills", "kills a command that still runs when its terminal is released"),
        host.must("terminal.release.ends-id", "refuses the id of a released terminal from then on"),
    ),
)

MCP_OVER_ACP = (
    *proposed(
        "rfd-mcp-over-acp, Capability advertising",
        client.must("mcp.acp.only-when-advertised", "hands over servers of type acp only if the agent declared them"),
    ),
    *proposed(
        "rfd-mcp-over-acp, Routing by ID",
        client.must("mcp.acp.ids-unique", "gives each server that it offers over the connection an id of its own"),
        agent.must("mcp.acp.addressed-by-id", "addresses a server by the id that it was declared with"),
    ),
    *proposed(
        "rfd-mcp-over-acp, Connection multiplexing",
        host.must("mcp.acp.connection-ids-fresh", "answers every mcp/connect with a connection id not used before"),
    ),
    *proposed(
        "rfd-mcp-over-acp, How it works",
        agent.must("mcp.acp.disconnected", "ends with mcp/disconnect a connection it began with mcp/connect"),
        tool_bridge.must("mcp.acp.both-ways", "carries MCP messages from the server to the agent as well"),
    ),
    *proposed(
        "rfd-mcp-over-acp, Message reference",
        tool_bridge.must("mcp.acp.kind-kept", "carries an MCP request in a request, a notification in a notification"),
        tool_bridge.must("mcp.acp.params-optional", "reads missing and null inner params alike, as none"),
    ),
)

PROVIDERS = (
    *proposed(
        "rfd-custom-llm-endpoint, Types",
        agent.must("providers.agent-unknown-protocol", "carries on when named a protocol that it does not know"),
        client.must("providers.client-unknown-protocol", "lists a provider whose protocol it does not know"),
    ),
    *proposed(
        "rfd-custom-llm-endpoint, Behavior",
        agent.must("providers.advertised", "declares the providers capability if it offers the methods"),
        client.should("providers.only-when-advertised", "calls `providers/*` only if the agent declared it"),
        client.must("providers.after-initialize", "calls `providers/*` only after `initialize`"),
        agent.should("providers.applied-to-new-sessions", "uses a changed provider in sessions opened after it"),
        client.should("providers.required-kept", "disables no provider that the agent requires"),
        agent.must("providers.required-refused", "refuses to disable a required provider with -32602"),
        agent.must("providers.disabled-listed", "goes on listing a disabled provider, without a current setting"),
        agent.must("providers.disabled-unused", "calls no model through a disabled provider"),
        agent.must("providers.set-replaces", "replaces a provider's whole setting, headers left out included"),
        agent.should("providers.set-invalid", "refuses unknown ids, unsupported protocols and bad params with -32602"),
        agent.should("providers.disable-idempotent", "succeeds in disabling a provider that it does not know"),
        agent.should("providers.not-stored", "keeps provider settings in memory, for this process only"),
    ),
    *proposed(
        "rfd-custom-llm-endpoint, Frequently asked questions",
        agent.should("providers.headers-kept-secret", "never lists the headers that a provider was set with"),
    ),
)

LENT = (*FILES, *TERMINALS, *MCP_OVER_ACP, *PROVIDERS)
