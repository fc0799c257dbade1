"""A turn: the prompt, its content, what is reported while it runs, how it ends, how it is cancelled."""

from __future__ import annotations

from accord.check.requirements.entry import agent, agent_engine, client, client_engine, host, proposed, stated

PROMPTS = (
    *stated(
        "prompt-turn, Prompt Turn",
        client.must("prompt.session-first", "prompts only in a session that is set up"),
    ),
    *stated(
        "prompt-turn, User Message",
        client.must("prompt.content.only-advertised", "puts into a prompt only what the agent declared it takes"),
    ),
    *stated(
        "prompt-turn, Agent Reports Output",
        agent.must("prompt.output-as-updates", "reports what it says and does as session updates"),
    ),
    *stated(
        "overview, Message Flow",
        agent_engine.must("prompt.updates-before-answer", "sends every update of a turn before the turn's answer"),
    ),
    *stated(
        "prompt-turn, Check for Completion",
        agent.must("prompt.answered-when-done", "answers the prompt once no tool call is left to run"),
    ),
    *stated(
        "prompt-turn, Stop Reasons",
        agent.must("prompt.stop-reason-fits", "ends a turn with the stop reason that tells why it ended"),
    ),
    *stated(
        "schema, StopReason",
        agent.must("prompt.refusal.forgotten", "leaves a refused prompt and what followed out of the next prompt"),
        client.should("prompt.refusal.shown", "shows that a refused prompt is not part of the conversation"),
    ),
    *stated(
        "prompt-turn, Cancellation",
        agent.must("prompt.context-kept", "builds each prompt on the turns before it"),
    ),
)

CANCELLING = (
    *stated(
        "prompt-turn, Cancellation",
        client.should("prompt.cancel.tools-marked", "shows unfinished tool calls as cancelled as soon as it cancels"),
        client_engine.must("prompt.cancel.permissions-cancelled", "answers open permission requests with cancelled"),
        client_engine.should("prompt.cancel.late-updates-taken", "takes updates that arrive after it cancelled"),
        agent_engine.should("prompt.cancel.stops-work", "stops model requests and tools soon after session/cancel"),
        agent_engine.must("prompt.cancel.answers-cancelled", "answers a cancelled prompt with stop reason cancelled"),
        agent_engine.must("prompt.cancel.errors-hidden", "turns errors that cancelling causes into that same answer"),
        agent_engine.must("prompt.cancel.updates-before-answer", "sends a cancelled turn's last updates first"),
    ),
)

CONTENT = (
    *stated(
        "content, Content Types",
        agent.must("content.agent-binary-base64", "encodes images, audio and blobs that it sends as base64"),
        client.must("content.client-binary-base64", "encodes images, audio and blobs of a prompt as base64"),
    ),
    *stated(
        "schema, ContentBlock",
        client.should("content.text-is-markdown", "shows text content as Markdown"),
    ),
    *stated(
        "prompt-turn, Message IDs",
        agent.must("message.id.shared", "gives all chunks of a message the same id, if any"),
        agent.must("message.id.changes", "gives the next message another id, unique in its session"),
        client.must("message.id.divides", "joins chunks of one id, and begins a message where the id changes"),
    ),
    *stated(
        "rfd-message-id, Proposed Structure",
        client.must("message.id.null-is-absent", "takes a null message id for none"),
        agent.should("message.id.on-user-messages", "gives user messages that it sends back an id, if it uses ids"),
    ),
    *stated(
        "rfd-message-id, Frequently asked questions",
        client.must("message.id.opaque", "compares message ids and reads nothing into them"),
    ),
    *stated(
        "rfd-message-id, Backward Compatibility",
        agent.should("message.id.sent", "puts ids on the chunks of messages that it can tell apart"),
    ),
)

TOOLS = (
    *stated(
        "tool-calls, Creating",
        agent.should("tool.reported", "reports each tool call that the model asks for"),
        agent.must("tool.id-unique", "gives each tool call of a session an id of its own"),
        client.must("tool.defaults", "treats a tool call without kind or status as other and pending"),
    ),
    *stated(
        "prompt-turn, Tool Invocation and Status Reporting",
        agent.must("tool.waits-for-permission", "runs no tool whose permission it asked for and did not get"),
        agent.should("tool.start-reported", "reports in_progress when the tool starts to run"),
        agent.must("tool.end-reported", "reports the final status, completed or failed, when the tool is done"),
    ),
    *stated(
        "tool-calls, Updating",
        client.must("tool.update.omitted-stays", "keeps what a tool call update leaves out"),
    ),
    *stated(
        "schema, ToolCallUpdate",
        client.must("tool.update.lists-replaced", "replaces content and locations with those of an update"),
    ),
    *stated(
        "tool-calls, Diffs",
        agent.must("tool.diff.new-file", "leaves a diff's old text out, or null, only for a new file"),
    ),
    *stated(
        "schema, Terminal",
        agent.must("tool.terminal.embedded-before-release", "embeds only a terminal it has created and not released"),
    ),
    *stated(
        "tool-calls, Terminals",
        client.must("tool.terminal.live", "shows an embedded terminal's output while it grows"),
    ),
    *stated(
        "terminals, Releasing Terminals",
        client.should("tool.terminal.kept", "keeps showing an embedded terminal's output after its release"),
    ),
)

PERMISSIONS = (
    *stated(
        "overview, Baseline Methods",
        host.must("permission.always-offered", "answers session/request_permission, whatever else it lends"),
    ),
    *stated(
        "tool-calls, Requesting Permission",
        host.must("permission.selected-is-offered", "selects one of the options that it was given, or none"),
    ),
    *stated(
        "schema, session/request_permission",
        host.should("permission.user-decides", "puts the options to the user and returns what was chosen"),
    ),
    *stated(
        "tool-calls, Permission Options",
        agent.must("permission.ids-unique", "gives each option of a permission request an id of its own"),
    ),
)

PLANS = (
    *stated(
        "agent-plan, Creating Plans",
        agent.should("plan.reported", "reports the plan that the model makes"),
    ),
    *stated(
        "agent-plan, Updating Plans",
        agent.should("plan.progress-reported", "sends the plan again as it progresses"),
        agent.must("plan.sent-whole", "sends all entries of a plan, with their status, every time"),
        client.must("plan.replaced-whole", "replaces its plan with each new one"),
    ),
    *proposed(
        "rfd-plan-operations, Client Capabilities",
        agent.must("plan.operations.only-when-advertised", "sends plan_update and plan_removed only where declared"),
        agent.must("plan.operations.falls-back", "sends the plain `plan` update to every other client"),
    ),
    *proposed(
        "rfd-plan-operations, Multiple Plans",
        client.must("plan.operations.by-id", "replaces by a plan update only the plan with that id"),
    ),
    *proposed(
        "rfd-plan-operations, Plan Removal",
        client.must("plan.operations.removed", "drops exactly the plan that the agent removed"),
    ),
)

USAGE = (
    *stated(
        "prompt-turn, Session Usage Updates",
        agent.must("usage.sizes-always", "sends used and size, both numbers, in every usage update"),
        agent.must("usage.cost-complete", "gives a cost both its amount and an ISO 4217 currency"),
    ),
    *stated(
        "rfd-session-usage, Context Window Fields",
        agent.should("usage.not-without-size", "sends no usage update while it knows no context size"),
        agent.should("usage.size-change-sent", "sends another usage update when the context size changes"),
    ),
    *stated(
        "rfd-session-usage, Frequently asked questions",
        agent.should("usage.after-restore", "sends the usage it knows when a session is loaded or resumed"),
    ),
    *proposed(
        "rfd-end-turn-token-usage, Strawman Fields",
        agent.must("usage.turn.totals-complete", "reports a turn's total, input and output tokens together or not"),
        client.must("usage.turn.null-is-absent", "treats a null token count as not reported"),
    ),
)

COMPACTIONS = (
    *stated(
        "schema, CompactionUpdate",
        agent.must("compaction.only-when-advertised", "tells of a compaction only to a client that declared them"),
        agent.must("compaction.own-id", "gives each compaction of a session an id of its own"),
        agent.must(
            "compaction.summary-only-completed", "leaves no summary to a compaction that failed or was cancelled"
        ),
    ),
    *stated(
        "schema, Notice",
        agent.must("notice.only-when-advertised", "sends notices only to a client that declared them"),
    ),
)

TURNS = (*PROMPTS, *CANCELLING, *CONTENT, *TOOLS, *PERMISSIONS, *PLANS, *USAGE, *COMPACTIONS)
