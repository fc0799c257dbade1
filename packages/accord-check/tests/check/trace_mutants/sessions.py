"""Sessions, lists, replays, modes and options that are wrong."""

from __future__ import annotations

from tests.check.healthy import OPTIONS, Mutation, both, drop, moved, put, says, text, without
from tests.check.trace_mutants.table import mutant, update

mutant("a session without a cwd", drop("new", "params.cwd"), "client session.new.states-cwd-and-servers")
mutant("a session without servers", drop("new", "params.mcpServers"), "client session.new.states-cwd-and-servers")
mutant("a load without servers", drop("load", "params.mcpServers"), "client session.load.states-cwd-and-servers")
mutant("a resume without a cwd", drop("resume", "params.cwd"), "client session.resume.states-cwd-and-servers")
mutant("a relative cwd", put("new", "params.cwd", "work"), "client paths.client-sends-absolute")
mutant("a URI as cwd", put("load", "params.cwd", "file:///work"), "client paths.client-sends-absolute")
mutant(
    "a relative root", put("new", "params.additionalDirectories[0]", "../more"), "client paths.client-sends-absolute"
)
mutant(
    "a relative folder to list",
    put("list", "params.cwd", "work"),
    "client paths.client-sends-absolute",
    "agent session.list.filtered-by-cwd",
)
mutant("a root twice", put("new", "params.additionalDirectories[1]", "/more"), "~client session.roots.no-duplicates")
mutant(
    "the cwd as a root", put("new", "params.additionalDirectories[0]", "/work"), "~client session.roots.no-duplicates"
)
mutant(
    "the id of another session",
    both(put("fork/answer", "result.sessionId", "s1"), without("delete", "delete/answer")),
    "agent session.new.unique-id",
)


def refused(name: str, session: str) -> Mutation:
    """A prompt in this session, which the agent refuses."""
    params = {"sessionId": session, "prompt": [text("x")]}
    return both(
        says(name, "agent", {"id": 90, "error": {"code": -32002, "message": "no such session"}}),
        says(name, "client", {"id": 90, "method": "session/prompt", "params": params}),
    )


mutant("a prompt in no session", refused("list2/answer", "s9"), "client prompt.session-first")
mutant("a prompt in a closed session", refused("close/answer", "s0"), "client prompt.session-first")
mutant("a prompt before the load is answered", refused("load", "s0"), "client prompt.session-first")
mutant(
    "updates of a session that is not there",
    put("chunk", "params.sessionId", "s9"),
    "agent lint.update.unknown-session",
)
mutant(
    "a chunk after the load",
    moved("replayed2", "load/answer"),
    "agent session.load.replay-before-answer",
)
mutant("a tool call after the load", moved("replayed3", "load/answer"), "agent session.load.replay-before-answer")
mutant(
    "commands after the load",
    says("load/answer", "agent", update("available_commands_update", "s0", availableCommands=[])),
)
mutant("a load answered first", both(moved("load/answer", "load")), "agent session.load.replay-before-answer")
mutant(
    "a chunk before the resume",
    says("resume", "agent", update("agent_message_chunk", "s0", content=text("hello"), messageId="r2")),
    "agent session.resume.no-replay",
)
mutant(
    "a plan before the resume",
    says("resume", "agent", update("plan", "s0", entries=[])),
    "agent session.resume.no-replay",
)
mutant(
    "one id for two replayed messages",
    put("replayed2", "params.update.messageId", "r1"),
    "agent session.load.message-ids-unique",
)
mutant(
    "a list of another folder",
    put("list/answer", "result.sessions[1].cwd", "/other"),
    "agent session.list.filtered-by-cwd",
)
mutant(
    "a listed relative folder", put("list2/answer", "result.sessions[0].cwd", "work"), "agent lint.list.cwd-absolute"
)
mutant(
    "an entry without a folder", drop("list2/answer", "result.sessions[0].cwd"), "agent session.list.entries-complete"
)
mutant(
    "an entry without an id",
    drop("list2/answer", "result.sessions[0].sessionId"),
    "agent session.list.entries-complete",
)
mutant(
    "a time in seconds",
    put("list/answer", "result.sessions[0].updatedAt", "1769860800"),
    "agent session.list.times-iso-8601",
)
mutant("a time in words", put("info", "params.update.updatedAt", "yesterday"), "agent session.list.times-iso-8601")
mutant(
    "a deleted session in the list",
    put("list2/answer", "result.sessions[1]", {"sessionId": "s2", "cwd": "/work"}),
    "agent session.delete.leaves-list",
)
mutant(
    "a folder in a session's info",
    put("info", "params.update.cwd", "/work"),
    "agent session.info.fixed-fields-absent",
)
mutant("commands before the session", moved("commands", "new"), "?agent commands.after-session-exists")

# Modes and options

mutant(
    "a current mode that is not there",
    put("new/answer", "result.modes.currentModeId", "none"),
    "agent mode.current-is-offered",
)
mutant(
    "an update to a mode that is not there",
    put("mode", "params.update.currentModeId", "none"),
    "agent mode.current-is-offered",
)
mutant(
    "two modes of one id",
    put("new/answer", "result.modes.availableModes[1].id", "ask"),
    "agent mode.ids-unique",
    "agent mode.current-is-offered",
)
mutant("a mode set that is not offered", put("set_mode", "params.modeId", "none"), "client mode.set.offered-only")
mutant(
    "two options of one id",
    put("set_boolean/answer", "result.configOptions[1].id", "model"),
    "agent config.ids-unique",
)
mutant(
    "an option without a value", drop("new/answer", "result.configOptions[0].currentValue"), "agent config.value-always"
)
mutant(
    "a value that is not listed",
    put("options", "params.update.configOptions[0].currentValue", "none"),
    "agent lint.config.current-is-offered",
)
mutant(
    "a value that a group lists",
    put(
        "set_option/answer",
        "result.configOptions[0].options",
        [{"group": "g", "name": "G", "options": [{"value": "big", "name": "Big"}]}],
    ),
)
mutant(
    "a category of one's own",
    put("set_option/answer", "result.configOptions[0].category", "taste"),
    "agent config.category.own-underscore",
)
mutant("a category with an underscore", put("set_option/answer", "result.configOptions[0].category", "_taste"))
mutant("a value set that is not listed", put("set_option", "params.value", "none"), "client config.set.offered-only")
mutant(
    "a boolean set as text",
    both(put("set_boolean", "params.value", "true"), drop("set_boolean", "params.type")),
    "client config.boolean.set-with-type",
)
mutant(
    "one option of two in an answer",
    put("set_option/answer", "result.configOptions", OPTIONS[:1]),
    "agent config.set.whole-state",
)
mutant("no option in an answer", put("set_option/answer", "result.configOptions", []), "agent config.set.whole-state")
mutant(
    "one option of two in an update",
    put("options", "params.update.configOptions", OPTIONS[:1]),
    "agent config.update.whole-state",
)
