"""Values that do not fit their types, and methods that are used wrongly."""

from __future__ import annotations

from tests.check.healthy import both, drop, put, rename, says, text, without
from tests.check.trace_mutants.table import CAPABILITIES, OFFERS, mutant

# Types

mutant("a tool call without a title", drop("tool", "params.update.title"), "agent lint.schema.misfit")
mutant("a chunk without content", drop("chunk", "params.update.content"), "agent lint.schema.misfit")
mutant("content without a type", drop("chunk", "params.update.content.type"), "agent lint.schema.misfit")
mutant("a text that is a number", put("chunk", "params.update.content.text", 7), "agent lint.schema.misfit")
mutant("an update without a kind", drop("chunk", "params.update.sessionUpdate"), "agent lint.schema.misfit")
mutant(
    "an update of an extension without its id",
    put("chunk", "params.update", {"sessionUpdate": "async_task_spawned", "name": "sleep"}),
    "agent lint.schema.misfit",
)
mutant("a prompt as a string", put("prompt3", "params.prompt", "on"), "client lint.schema.misfit")
mutant("a new session without an id", put("fork/answer", "result", {}), "agent lint.schema.misfit")
mutant("null for a result", put("list2/answer", "result", None), "agent lint.schema.misfit")
mutant("a permission without options", drop("ask", "params.options"), "agent lint.schema.misfit")
mutant("a bare block in a tool call", put("done", "params.update.content[1]", text("x")), "agent lint.schema.damaged")
mutant("an outcome without a kind", put("ask/answer", "result", {"outcome": {}}), "client lint.schema.misfit")
mutant("a file without its content", put("read/answer", "result", {}), "client lint.schema.misfit")
mutant(
    "a terminal without an id", both(put("create/answer", "result", {}), without("embeds")), "client lint.schema.misfit"
)
mutant("a bad status", put("tool2", "params.update.status", "done"), "agent lint.schema.damaged")
mutant("a bad kind", put("tool", "params.update.kind", "write"), "agent lint.schema.damaged")
mutant("a word as a capability", put("initialize/answer", f"{OFFERS}.loadSession", "yes"), "agent lint.schema.damaged")
mutant(
    "a word as a client's capability",
    put("initialize", f"{CAPABILITIES}.terminal", "yes"),
    "client lint.schema.damaged",
)
mutant("a negative line", put("tool", "params.update.locations[0].line", -1), "agent lint.schema.damaged")
mutant("a location without a path", put("tool", "params.update.locations[0]", {"line": 1}), "agent lint.schema.damaged")
mutant(
    "a null capability",
    put("initialize", f"{CAPABILITIES}.auth", None),
    "?client lint.schema.null-for-absent",
    "agent auth.terminal.only-when-advertised",
)
mutant(
    "an unknown update", put("thought", "params.update.sessionUpdate", "hologram"), "?agent lint.schema.unknown-variant"
)
mutant("an update of one's own", put("thought", "params.update.sessionUpdate", "_mine"))
mutant(
    "an unknown content", put("chunk", "params.update.content.type", "hologram"), "?agent lint.schema.unknown-variant"
)
mutant("a session id in a load's result", put("load/answer", "result", {"sessionId": "s0"}), "?agent lint.legacy")
mutant("a mode by its older name", rename("mode", "params.update.currentModeId", "modeId"), "?agent lint.legacy")
mutant("a null load", put("load/answer", "result", None), "?agent lint.result-null")
mutant("a null write", put("write/answer", "result", None), "?client lint.result-null")
mutant("a field of one's own", put("tool", "params.update.color", "red"), "~agent types.no-own-fields")
mutant("a field of one's own in a result", put("new/answer", "result.color", "red"), "~agent types.no-own-fields")
mutant("a field of one's own in params", put("prompt", "params.color", "red"), "~client types.no-own-fields")
mutant("a member beside those of JSON-RPC", put("chunk", "source", "x"), "~agent types.no-own-fields")
mutant("a list as _meta", put("chunk", "params._meta", []), "agent meta.is-object")
mutant("text as _meta of a prompt", put("prompt", "params._meta", "x"), "client meta.is-object")
mutant("a number as _meta within", put("tool", "params.update._meta", 7), "agent meta.is-object")
mutant("null as _meta", put("chunk", "params._meta", None))
mutant("a camelCase update", put("chunk", "params.update.sessionUpdate", "agentMessageChunk"), "agent wire.names-cased")
mutant(
    "a snake_case field",
    rename("tool", "params.update.toolCallId", "tool_call_id"),
    "agent wire.names-cased",
    "~agent lint.tool.announced",
)
mutant("a camelCase status", put("runs", "params.update.status", "inProgress"), "agent wire.names-cased")
mutant("a camelCase stop reason", put("prompt3/answer", "result.stopReason", "endTurn"), "agent wire.names-cased")
mutant("a snake_case field of the client", rename("list", "params.cwd", "Cwd"), "client wire.names-cased")
mutant(
    "a client's method sent to the agent",
    says(
        "new/answer",
        "client",
        {"id": 80, "method": "terminal/output", "params": {"sessionId": "s1", "terminalId": "x"}},
    ),
    "client lint.method.wrong-side",
)
mutant(
    "an agent's method sent to the client",
    says("chunk", "agent", {"method": "session/cancel", "params": {"sessionId": "s1"}}),
    "agent lint.method.wrong-side",
)
mutant(
    "a notification sent as a request",
    both(put("chunk3", "id", 60), says("chunk3", "client", {"id": 60, "result": {}})),
    "agent lint.method.wrong-kind",
)
mutant(
    "a request sent as a notification",
    both(drop("set_mode", "id"), without("set_mode/answer")),
    "client lint.method.wrong-kind",
)
mutant(
    "a cancel sent as a request",
    both(
        put("cancel", "id", 61),
        says("cancel", "agent", {"id": 61, "result": {}}),
        put("prompt2/answer", "result.stopReason", "end_turn"),
    ),
    "client lint.method.wrong-kind",
)
mutant(
    "a method of one's own without underscore",
    put("extension", "method", "status/changed"),
    "~agent extension.method-underscore",
)
mutant(
    "a client's method without underscore",
    put("custom", "method", "workspace/open"),
    "~client extension.method-underscore",
)
