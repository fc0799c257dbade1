"""The active checks of a client: each takes a scenario that asks for it."""

from __future__ import annotations

from accord.check.checks import Check, lint, on

_STDIO = "transports, stdio"
_ROOTS = "refuse a path that, with its links resolved, is outside of the session's roots"


def _lints() -> tuple[Check, ...]:
    """The checks that no requirement names."""
    return (
        lint(
            "client.answers",
            "answers every request that needs no user",
            "requests",
            page="json-rpc, Response object",
            of="client",
            fix="answer each request, with an error if nothing else",
            active=True,
        ),
        lint(
            "client.takes-updates",
            "goes on after each update that the protocol has",
            "updates",
            page="schema, SessionUpdate",
            of="client",
            fix="ignore an update that you cannot show",
            active=True,
        ),
        lint(
            "client.stays-in-turn",
            "keeps the connection open until its prompt is answered",
            "turns",
            page="prompt-turn, The Prompt Turn Lifecycle",
            of="client",
            level="SHOULD",
            fix="await the answer to the prompt",
            active=True,
        ),
        lint(
            "client.waits",
            "waits for answers that come after a second or two",
            "late turns",
            page="prompt-turn, The Prompt Turn Lifecycle",
            of="client",
            level="SHOULD",
            fix="give a model the time that it takes",
            active=True,
        ),
        lint(
            "client.takes-large-messages",
            "reads messages of several megabytes",
            "large messages",
            page=_STDIO,
            of="client",
            level="SHOULD",
            fix="raise the limit of the line reader, 64 KiB in asyncio for instance",
            active=True,
        ),
        lint(
            "client.takes-many-updates",
            "takes thousands of updates at once",
            "floods",
            page=_STDIO,
            of="client",
            level="SHOULD",
            fix="stop reading while your queue is full, and close nothing",
            active=True,
        ),
        lint(
            "client.survives-noise",
            "goes on after a line that is no message",
            "bad lines",
            page=_STDIO,
            of="client",
            level="SHOULD",
            fix="log the line, and read on",
            active=True,
        ),
        lint(
            "client.ends-after-agent",
            "ends, or reports the loss, when its agent's process ends in a turn",
            "lost agents",
            page=_STDIO,
            of="client",
            level="SHOULD",
            fix="fail the open requests at the end of the agent's output",
            active=True,
        ),
    )


_REQUIRED = (
    on("capabilities.client-any-combination", "sessions", fix="work with an agent that declares nothing", active=True),
    on("capabilities.unknown-harmless", "initializations", fix="ignore a capability that you do not know", active=True),
    on(
        "initialize.version.client-leaves",
        "initializations",
        fix="close the connection, and tell the user",
        active=True,
    ),
    on("config.unknown-type-ignored", "options", fix="leave the option out", active=True),
    on("config.category.unknown-accepted", "options", fix="show the option without a category", active=True),
    on("update.unknown-ignored", "updates", fix="ignore an update of a kind that you do not know", active=True),
    on("message.id.null-is-absent", "updates", fix="take null for a missing messageId", active=True),
    on("tool.defaults", "tool calls", fix="take the kind as other, and the status as pending", active=True),
    on("stdio.stderr-is-no-protocol", "logs", fix="read standard error apart from standard output", active=True),
    on("elicitation.complete.unknown-ignored", "completions", fix="ignore an unknown elicitationId", active=True),
    on("elicitation.undeclared-mode-code", "questions", fix="refuse another mode with -32602", active=True),
    on("prompt.cancel.late-updates-taken", "cancelled turns", fix="read on until the prompt is answered", active=True),
    on(
        "stdio.client-closes-stdin",
        "ends",
        fix="close the agent's standard input, and give it a second before a signal",
        active=True,
    ),
    on("files.missing-code", "missing files", fix="answer with -32002", active=True),
    on("files.write.creates", "writes", fix="create the file, and its folders", active=True),
    on("files.inside-roots", "outside reads", fix=_ROOTS, active=True),
    on("files.escape-proof", "links", fix=_ROOTS, active=True),
    on("terminal.capability-means-all", "terminals", fix="offer all five methods, or declare none", active=True),
    on("terminal.create.at-once", "terminals", fix="answer before the command has ended", active=True),
    on("terminal.create.as-told", "terminals", fix="use args, env and cwd as they are", active=True),
    on("terminal.output.at-once", "outputs", fix="answer with what there is", active=True),
    on("terminal.output.oldest-dropped", "long outputs", fix="drop from the start", active=True),
    on("terminal.output.whole-characters", "long outputs", fix="cut between characters", active=True),
    on("terminal.kill.keeps-terminal", "killed commands", fix="keep the terminal until its release", active=True),
    on("terminal.release.kills", "releases", fix="kill the command at the release", active=True),
)

_OVER_HTTP = tuple(
    on(name, "HTTP requests", fix=fix, severity="warn", because="only a proposal demands it", active=True)
    for name, fix in (
        ("http.post.sends-json", "send Content-Type: application/json"),
        ("http.get.accepts-events", "send Accept: text/event-stream"),
        ("http.connection-header", "send the Acp-Connection-Id that came with the answer to initialize"),
        ("http.session-header", "send the params' sessionId as Acp-Session-Id as well"),
        ("http.version-header", "send Acp-Protocol-Version with the version that the agent has chosen"),
        ("http.cookies-returned", "keep the cookies of a connection, and send them back"),
    )
)

ACTIVE_OF_CLIENT = {check.id: check for check in (*_lints(), *_REQUIRED, *_OVER_HTTP)}
"""Every check that only the scenarios for clients have, by its id."""
