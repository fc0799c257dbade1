"""Version 2: what is wrong with its states, its upserts and its requests."""

from __future__ import annotations

from tests.check.healthy import both, drop, moved, put, says, text, without
from tests.check.healthy_v2 import SERVER
from tests.check.trace_mutants.table import mutant_v2 as mutant, update

# States

mutant("output before running", moved("running", "chunk"), "~agent lint.work.running-first")
mutant("work that is never reported to run", without("running6"), "~agent lint.work.running-first")
mutant("running before the echo", moved("running", "prompt"))
mutant("an answer after the whole work", moved("prompt/answer", "end"))
mutant(
    "an idle state without a reason at an end",
    drop("end", "params.update.stopReason"),
    "~agent lint.work.stop-reason-told",
)
mutant(
    "an idle state that is repeated", says("end", "agent", update("state_update", state="idle", stopReason="end_turn"))
)
mutant(
    "a stop reason that no page has", put("end", "params.update.stopReason", "done"), "~agent lint.prompt.stop-reason"
)
mutant("a stop reason of its own", put("end", "params.update.stopReason", "_example.com/done"))
mutant("an error that is not told", drop("end5", "params.update.error"), "~agent lint.work.error-told")
mutant(
    "cancelled work that ends as done",
    put("end3", "params.update.stopReason", "end_turn"),
    "agent lint.work.cancelled-told",
)
mutant("an echo that is missing", without("echo5"), "agent lint.prompt.echoed")
mutant("an echo under another id", put("echo5", "params.update.messageId", "u9"), "agent lint.prompt.echoed")
mutant(
    "a waiting prompt that fails at the cancel",
    put("prompt4/answer", "error.code", -32603),
    "agent lint.prompt.held-cancelled",
)
mutant(
    "a prompt that is refused because the agent is busy",
    both(
        drop("prompt5/answer", "result"),
        put("prompt5/answer", "error", {"code": -32600, "message": "busy"}),
        without("echo5"),
    ),
    "~agent lint.prompt.taken-while-busy",
)
mutant("a resumed session without a state", without("state"), "~agent lint.resume.state-told")
mutant("a state only before the end of a replay", moved("complete", "state"), "~agent lint.resume.state-told")
mutant("a replay without its mark", without("complete"), "agent lint.replay.complete-once")
mutant(
    "a replay that is marked twice",
    says("complete", "agent", update("replay_complete")),
    "agent lint.replay.complete-once",
)
mutant("a replay that goes on after its mark", moved("replayed3", "complete"), "agent lint.replay.complete-once")
mutant(
    "a mark after the answer",
    moved("complete", "resume/answer"),
    "agent lint.replay.complete-once",
    "agent lint.replay.complete-only-asked",
)
mutant(
    "a mark without a resume", says("end", "agent", update("replay_complete")), "agent lint.replay.complete-only-asked"
)
mutant(
    "a mark in a replay, for a session that no answer opened",
    says("complete", "agent", update("replay_complete", "s9")),
    "agent lint.update.unknown-session",
)
mutant(
    "a state in the replay of a session at work",
    both(
        says("end5", "agent", update("state_update", state="running")),
        says("replayed", "agent", update("state_update", state="running")),
    ),
    "agent lint.replay.live-held",
)
mutant(
    "a close before the work has ended",
    moved("close/answer", "close"),
    "agent lint.close.work-ended",
    "agent lint.close.nothing-after",
)
mutant(
    "an update after the close",
    says("close/answer", "agent", update("session_info_update", title="late")),
    "agent lint.close.nothing-after",
)
mutant("an answer without a message id", put("prompt/answer", "result", {}), "agent lint.schema.misfit")
mutant(
    "a replay that was not asked for",
    drop("resume", "params.replayFrom"),
    "agent session.resume.no-replay",
    "agent lint.replay.complete-only-asked",
)
mutant(
    "a replay after the answer",
    moved("replayed", "resume/answer"),
    "agent session.load.replay-before-answer",
)

# Upserts

mutant("a tool call without a title", drop("tool3", "params.update.title"), "~agent lint.tool.titled")
mutant("a tool call that is left open", drop("done", "params.update.status"), "~agent tool.end-reported")
mutant(
    "an ended tool call that runs on",
    says("done", "agent", update("tool_call_update", toolCallId="t1", status="in_progress")),
    "~agent lint.tool.status-kept",
    "~agent tool.end-reported",
)
mutant(
    "background work that no update has shown",
    without("watch", "stop", "stop/answer"),
    "agent lint.background.announced",
    "~agent lint.tool.titled",
)
mutant("background work that only disappears", moved("stopped", "none"), "agent lint.background.ended-first")
mutant("output that is no base64", put("output", "params.update.data", "ok!"), "agent content.agent-binary-base64")
mutant(
    "a relative path in a diff of files",
    put("done", "params.update.content[0].changes[0].path", "b.py"),
    "agent paths.agent-sends-absolute",
)
mutant(
    "a relative folder of a terminal", put("terminal", "params.update.cwd", "work"), "agent paths.agent-sends-absolute"
)
mutant("a replay into what the client has", without("replayed2"), "?agent lint.replay.messages-cleared")

# The client's requests, and the version

mutant(
    "a tool call cancelled without the offer",
    drop("watch", "params.update.capabilities"),
    "client lint.tool.cancel-offered",
)
mutant("a prompt without content", put("prompt", "params.prompt", []), "client lint.prompt.not-empty")
mutant("two MCP servers of one name", put("new", "params.mcpServers", [SERVER, SERVER]), "client lint.mcp.names-unique")
mutant("an update of version 1", says("tool", "agent", update("plan", entries=[])), "~agent lint.version.updates")
mutant(
    "a method of version 1",
    says("end", "client", {"id": 77, "method": "session/set_mode", "params": {"sessionId": "s1", "modeId": "a"}}),
    "~client lint.version.methods",
)
mutant(
    "a file read as in version 1",
    says("tool", "agent", {"id": 78, "method": "fs/read_text_file", "params": {"sessionId": "s1", "path": "/a"}}),
    "~agent lint.version.methods",
)
mutant("a login by another way", put("login", "params.methodId", "shell"), "client auth.authenticate.offered-method")
mutant(
    "an option's value that it does not list",
    put("new/answer", "result.configOptions[0].currentValue", "huge"),
    "agent lint.config.current-is-offered",
)
mutant(
    "an image that the agent did not offer",
    both(
        drop("initialize/answer", "result.capabilities.session.prompt.image"),
        put("prompt", "params.prompt", [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]),
    ),
    "client prompt.content.only-advertised",
)
mutant(
    "a mode of an update of version 2 in chunks",
    says("echo5", "agent", update("user_message_chunk", messageId="u5", content=text("!"))),
)
