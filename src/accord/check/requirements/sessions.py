"""Sessions: begun, loaded, resumed, closed, listed, deleted, forked; their roots and their MCP servers."""

from __future__ import annotations

from accord.check.requirements.entry import agent, agent_engine, client, host, proposed, stated

LIFECYCLE = (
    *stated(
        "session-setup, Session Setup",
        agent.must("session.independent", "keeps several sessions apart on one connection, in context and history"),
    ),
    *stated(
        "session-setup, Creating a Session",
        client.must("session.new.states-cwd-and-servers", "names a cwd and MCP servers, if only an empty list"),
        agent.must("session.new.unique-id", "answers with an id that no other of its sessions has"),
    ),
    *stated(
        "session-setup, Loading Sessions",
        client.must("session.load.only-when-advertised", "calls session/load only if the agent declared loadSession"),
        client.must("session.load.states-cwd-and-servers", "names the session, its cwd and MCP servers when loading"),
        agent.must("session.load.replays-everything", "replays the whole conversation, both sides, as updates"),
        agent_engine.must("session.load.replay-before-answer", "answers a load only after the last replayed update"),
        agent.must("session.load.message-ids-unique", "gives each replayed message, if any id, one of its own"),
        agent.must("session.load.goes-on", "takes prompts in a loaded session as if it had never ended"),
    ),
    *stated(
        "session-setup, Loading a Session",
        client.should("session.load.empty-answers-accepted", "takes null and an object alike as a load's success"),
    ),
    *stated(
        "session-setup, Resuming Sessions",
        client.must("session.resume.only-when-advertised", "calls session/resume only if the agent declared it"),
        client.must("session.resume.states-cwd-and-servers", "names the session, its cwd and MCP servers to resume"),
        agent.must("session.resume.no-replay", "replays nothing before it answers session/resume"),
        agent.must("session.resume.ready-when-answered", "answers a resume once the session can take a prompt"),
    ),
    *stated(
        "session-setup, Closing Active Sessions",
        client.must("session.close.only-when-advertised", "calls session/close only if the agent declared it"),
        agent.must("session.close.cancels-work", "ends running work on close just as session/cancel would"),
        agent.must("session.close.frees", "lets go of everything a closed session held"),
        agent.must("session.close.empty-result", "answers a successful close with an empty object"),
    ),
)

ROOTS = (
    *stated(
        "session-setup, Working Directory",
        agent.must("session.cwd.wins-over-spawn", "works in the session's cwd, wherever its own process was started"),
        agent.must("session.cwd.base-of-relative-paths", "resolves relative paths against cwd and no other root"),
        agent.must("session.cwd.is-a-root", "counts cwd among the session's roots, as the first"),
        agent.should("session.roots.bound-tools", "keeps what its tools do with files inside the roots"),
    ),
    *stated(
        "session-setup, Additional Workspace Roots",
        client.must("session.roots.only-when-advertised", "sends additional roots only if the agent declared them"),
        agent.must("session.roots.taken-everywhere", "takes additional roots on new, load and resume once declared"),
        agent.must(
            "session.roots.absent-means-none", "gives a session only the additional roots that its request names"
        ),
        client.must("session.roots.resent", "sends the full list of roots again on every load and resume"),
    ),
    *stated(
        "rfd-additional-directories, Validation and error handling",
        agent.must("session.roots.malformed-refused", "refuses a root that is empty, relative or no string, up front"),
        agent.should("session.roots.malformed-code", "refuses a malformed list of roots with -32602"),
        agent.must(
            "session.roots.none-dropped", "fails the request over a root it will not grant, drops none silently"
        ),
        agent.must(
            "session.roots.escape-proof", "lets no link or mount lead a path outside the roots; refuses in doubt"
        ),
    ),
    *stated(
        "rfd-additional-directories, Field definition",
        client.should("session.roots.no-duplicates", "sends each root once, and cwd not among them"),
    ),
    *stated(
        "rfd-additional-directories, Agent behavior expectations",
        agent.must("session.roots.in-scope", "treats every additional root as workspace, as it does cwd"),
    ),
    *stated(
        "rfd-additional-directories, Client responsibilities",
        client.must("session.roots.only-granted", "sends only roots that the user means to expose"),
        client.must("session.roots.nothing-inferred", "counts on no root that it did not send itself"),
        host.must("files.inside-roots", "serves file requests only inside the session's roots"),
    ),
    *stated(
        "rfd-additional-directories, Security considerations",
        host.must("files.escape-proof", "lets no link or odd path lead outside the roots it guards; refuses in doubt"),
    ),
)

SERVERS = (
    *stated(
        "session-setup, MCP Servers",
        agent.must("mcp.stdio-supported", "connects to MCP servers over stdio"),
        agent.should("mcp.http-supported", "connects to MCP servers over HTTP"),
    ),
    *stated(
        "session-setup, Stdio Transport",
        client.must("mcp.command-absolute", "names a stdio server's program by its absolute path"),
        agent.must("mcp.launched-as-told", "starts a stdio server with the arguments and environment it was given"),
        agent.must("mcp.untyped-is-stdio", "takes an MCP server without a type for a stdio one"),
    ),
    *stated(
        "session-setup, HTTP Transport",
        agent.must("mcp.headers-sent", "sends a remote MCP server the headers it was given"),
    ),
    *stated(
        "session-setup, Checking Transport Support",
        client.must("mcp.http-only-when-advertised", "hands over HTTP MCP servers only if the agent declared HTTP"),
        client.must("mcp.sse-only-when-advertised", "hands over SSE MCP servers only if the agent declared SSE"),
        agent.should("mcp.all-connected", "connects to every MCP server that the client named"),
    ),
)

LISTING = (
    *stated(
        "session-list, Checking Support",
        client.must("session.list.only-when-advertised", "calls session/list only if the agent declared it"),
    ),
    *stated(
        "session-list, Listing Sessions",
        agent.must("session.list.needs-no-params", "answers a list request without params with the first page"),
        agent.must("session.list.filtered-by-cwd", "lists under a cwd filter only sessions with that cwd"),
        agent.must("session.list.entries-complete", "gives every listed session its id and its absolute cwd"),
        agent.must("session.list.empty-list", "answers with an empty list when no session matches"),
        agent.must("session.list.times-iso-8601", "writes times of activity in ISO 8601"),
        agent.must("session.list.roots-complete", "lists a session's additional roots in full and in order, or not"),
        client.must("session.list.roots-taken-as-given", "takes listed roots as they are, mixed with nothing older"),
    ),
    *stated(
        "session-list, Pagination",
        client.must("session.list.last-page", "takes a missing nextCursor for the end of the list"),
        client.must("session.list.cursor-opaque", "hands a cursor back unread and unchanged, and never stores it"),
        agent.must("session.list.cursor-goes-on", "continues at a cursor where the page before it stopped"),
        agent.should("session.list.cursor-invalid", "answers a cursor that it cannot use with an error"),
        agent.should("session.list.pages-bounded", "limits the size of a page by itself"),
    ),
    *stated(
        "session-list, Interaction with Other Session Methods",
        agent.must("session.list.changes-nothing", "neither opens nor alters a session by listing it"),
    ),
    *stated(
        "rfd-session-list, Security Considerations",
        agent.must("session.list.own-only", "lists to an authenticated client no session of another"),
    ),
    *stated(
        "session-list, Updating Session Metadata",
        client.must("session.info.omitted-stays", "keeps what a session info update leaves out"),
        client.must("session.info.null-clears", "clears what a session info update sets to null"),
        agent.must("session.info.fixed-fields-absent", "puts neither cwd nor roots into a session info update"),
    ),
    *stated(
        "rfd-session-info-update, Frequently asked questions",
        agent.should("session.info.shown-in-list", "lists a session with the title that it last announced"),
        client.should("session.info.in-order", "applies session info updates in the order they came"),
        client.must("update.unknown-ignored", "carries on after a session update of a kind that it does not know"),
    ),
)

DELETING = (
    *stated(
        "session-delete, Checking Support",
        client.must("session.delete.only-when-advertised", "calls session/delete only if the agent declared it"),
    ),
    *stated(
        "session-delete, Deleting a Session",
        agent.must("session.delete.empty-result", "answers a successful delete with an empty object"),
    ),
    *stated(
        "session-delete, Semantics",
        agent.must("session.delete.leaves-list", "never lists a deleted session again"),
        agent.should("session.delete.idempotent", "succeeds in deleting a session that is not there"),
    ),
)

FORKING = (
    *proposed(
        "rfd-session-fork, Implementation details and plan",
        client.must("session.fork.only-when-advertised", "calls session/fork only if the agent declared it"),
        agent.must("session.fork.advertised", "declares the fork capability if it forks sessions"),
        agent.must("session.fork.leaves-source", "keeps what happens in a fork out of the session it came from"),
    ),
    *proposed(
        "rfd-additional-directories, Request-specific behavior",
        agent.must("session.fork.roots-not-inherited", "gives a fork the roots of its request, not its source's"),
    ),
)

SESSIONS = (*LIFECYCLE, *ROOTS, *SERVERS, *LISTING, *DELETING, *FORKING)
