"""Turns, tool calls and permissions that are wrong."""

from __future__ import annotations

from tests.check.healthy import GIVEN, both, drop, moved, put, says, text, without
from tests.check.trace_mutants.table import mutant, update

mutant("a chunk after the answer", moved("chunk3", "prompt3/answer"), "agent prompt.updates-before-answer")
mutant("a plan after the answer", moved("plan", "prompt/answer"), "agent prompt.updates-before-answer")
mutant(
    "a tool's end after the answer",
    moved("done", "prompt/answer"),
    "agent prompt.updates-before-answer",
    "~agent tool.end-reported",
)
mutant("usage after the answer", moved("usage", "prompt/answer"))
mutant("a title after the answer", moved("info", "prompt/answer"))
mutant(
    "a cancelled turn's update after the answer",
    moved("failed2", "prompt2/answer"),
    "agent prompt.cancel.updates-before-answer",
)
mutant(
    "a cancel that is ignored",
    put("prompt2/answer", "result.stopReason", "end_turn"),
    "agent prompt.cancel.answers-cancelled",
)
mutant(
    "a cancelled turn with an error",
    both(drop("prompt2/answer", "result"), put("prompt2/answer", "error", {"code": -32603, "message": "aborted"})),
    "agent prompt.cancel.errors-hidden",
)
mutant(
    "a turn that is cancelled unasked",
    put("prompt3/answer", "result.stopReason", "cancelled"),
    "~agent lint.prompt.cancelled-unasked",
)
mutant("an unknown stop reason", put("prompt3/answer", "result.stopReason", "done"), "~agent lint.prompt.stop-reason")
mutant("a prompt's answer without a stop reason", put("prompt3/answer", "result", {}), "agent lint.schema.misfit")
mutant(
    "one id for the words of both",
    says("chunk", "agent", update("user_message_chunk", content=text("go"), messageId="m1")),
    "~agent message.id.changes",
)
mutant("a thought and an answer of one id", put("thought", "params.update.messageId", "m2"))
mutant("usage without a size", drop("usage", "params.update.size"), "agent usage.sizes-always")
mutant("usage of null", put("usage", "params.update.used", None), "agent usage.sizes-always")
mutant("a cost without a currency", drop("usage", "params.update.cost.currency"), "agent usage.cost-complete")
mutant("a cost in words", put("usage", "params.update.cost.amount", "1 dollar"), "agent usage.cost-complete")
mutant("a currency by its sign", put("usage", "params.update.cost.currency", "$"), "agent lint.usage.currency")
mutant("a plan without states", drop("plan", "params.update.entries[0].status"), "agent plan.sent-whole")
mutant(
    "a plan with a bad priority", put("plan", "params.update.entries[0].priority", "urgent"), "agent plan.sent-whole"
)
mutant(
    "a compaction that begins again",
    says("compacted", "agent", update("compaction_update", compactionId="c1", status="in_progress")),
    "agent compaction.own-id",
)
mutant(
    "a summary of a failed compaction",
    put("compacted", "params.update.status", "failed"),
    "agent compaction.summary-only-completed",
)

# Tool calls

mutant(
    "a tool call's id twice",
    put("tool2", "params.update.toolCallId", "t1"),
    "agent tool.id-unique",
    "~agent lint.tool.announced",
)
mutant("a tool call that is not announced", without("tool2"), "~agent lint.tool.announced")
mutant("a tool call that never ends", drop("done", "params.update.status"), "~agent tool.end-reported")
mutant(
    "an ended tool call that runs",
    says("done", "agent", update("tool_call_update", toolCallId="t1", status="in_progress")),
    "~agent lint.tool.status-kept",
    "~agent tool.end-reported",
)
mutant(
    "a tool call that its cancelled turn leaves open",
    both(without("failed2"), put("prompt3", "params.sessionId", "s1"), put("chunk3", "params.sessionId", "s1")),
)
mutant("an id of a replay used in a turn", put("tool2", "params.sessionId", "s1"))
mutant(
    "a relative location", put("tool", "params.update.locations[0].path", "a.py"), "agent paths.agent-sends-absolute"
)
mutant(
    "a URI as location",
    put("tool", "params.update.locations[0].path", "file:///a.py"),
    "agent paths.agent-sends-absolute",
)
mutant("a Windows location", put("tool", "params.update.locations[0].path", "C:\\a.py"))
mutant("a relative diff", put("done", "params.update.content[0].path", "a.py"), "agent paths.agent-sends-absolute")
mutant("a relative read", put("read", "params.path", "a.py"), "agent paths.agent-sends-absolute")
mutant("a relative write", put("write", "params.path", "./a.py"), "agent paths.agent-sends-absolute")
mutant("a relative terminal", put("create", "params.cwd", "."), "agent paths.agent-sends-absolute")
mutant("line 0 in a location", put("tool", "params.update.locations[0].line", 0), "agent lines.agent-counts-from-one")
mutant("line 0 in a read", put("read", "params.line", 0), "agent lines.agent-counts-from-one")

# Permissions

mutant(
    "two options of one id in a question",
    put("ask2", "params.options[1].optionId", "yes"),
    "agent permission.ids-unique",
)
mutant("a permission with no option", both(put("ask2", "params.options", [])), "~agent lint.permission.has-options")
mutant(
    "an option that is not offered",
    put("ask/answer", "result.outcome.optionId", "maybe"),
    "client permission.selected-is-offered",
)
mutant(
    "a permission that is unknown to the client",
    both(drop("ask/answer", "result"), put("ask/answer", "error", {"code": -32601, "message": "unknown"})),
    "client permission.always-offered",
)
mutant(
    "a permission allowed after the cancel",
    put("ask2/answer", "result.outcome", {"outcome": "selected", "optionId": "yes"}),
    "client prompt.cancel.permissions-cancelled",
)
mutant(
    "a permission answered before the cancel",
    both(
        moved("ask2/answer", "ask2"), put("ask2/answer", "result.outcome", {"outcome": "selected", "optionId": "yes"})
    ),
)
mutant(
    "a tool that does not wait",
    says("ask", "agent", update("tool_call_update", toolCallId="t1", status="completed")),
    "agent tool.waits-for-permission",
    "~agent lint.tool.status-kept",
)
mutant(
    "a tool that runs although it was refused",
    put("ask/answer", "result.outcome.optionId", "no"),
    "~agent tool.waits-for-permission",
)
mutant(
    "a bad kind of option",
    put("ask", "params.options", [GIVEN[0] | {"kind": "allow"}, GIVEN[1]]),
    "agent lint.schema.misfit",
)
