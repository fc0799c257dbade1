"""What schema 1.20 adds: keys of prompts, cursors, options before a session, suggestions and skills."""

from __future__ import annotations

from tests.check.healthy import again, both, cursor_at, drop, put, says, text
from tests.check.healthy_v2 import COMMANDS, SKILL
from tests.check.trace_mutants.table import CAPABILITIES, SESSIONS, mutant, mutant_v2, update

# Keys of prompts

mutant_v2("a prompt without a key", drop("prompt", "params.idempotencyKey"), "?client lint.prompt.key-sent")
mutant_v2(
    "the key of another prompt",
    put("prompt5", "params.idempotencyKey", "key of go"),
    "client lint.prompt.key-fresh",
)
mutant_v2(
    "a retry under its key",
    both(again("prompt/answer", id=80), again("prompt", id=80)),
)

# Cursors and forks

for add in (mutant, mutant_v2):
    add("a cursor without a place", drop("cursor", "params.update.anchor"), "agent lint.cursor.anchor-first")
    add("a fork at no cursor", put("cut", "params.cursorId", "none"), "client lint.fork.announced-cursor")
    add(
        "a fork at a cursor that takes none",
        put("cursor", "params.update.capabilities", {}),
        "client lint.fork.announced-cursor",
    )
    add("a cursor that is told again", again("cursor"))
    add(
        "a cursor at what nobody has seen",
        put("cursor", "params.update.anchor.messageId", "x9"),
        "~agent lint.cursor.anchor-known",
    )
    add(
        "a place of the future for a cursor",
        put("cursor", "params.update.anchor", {"type": "_example.com/scene", "number": 3}),
    )
    add(
        "a blank suggestion",
        put("suggests", "params.update.suggestions", [{"prompt": [text(" ")]}]),
        "agent lint.suggestions.sendable",
    )
    add(
        "a suggestion with what the client cannot show",
        put("suggests", "params.update.suggestions[0].prompt[1]", {"type": "audio", "data": "", "mimeType": "a/b"}),
        "agent lint.suggestions.sendable",
    )

mutant(
    "a cursor that moves",
    says("cursor", "agent", update("cursor_update", **cursor_at("m1") | {"cursorId": "m2"})),
    "agent lint.cursor.anchor-fixed",
)
mutant(
    "cursors for a client without them",
    drop("initialize", f"{CAPABILITIES}.session.cursors"),
    "agent capabilities.agent-omitted-is-unsupported",
)

# Suggestions

for add, place in ((mutant, f"{CAPABILITIES}.session"), (mutant_v2, "params.capabilities.session")):
    add(
        "suggestions for a client without them",
        drop("initialize", f"{place}.promptSuggestions"),
        "agent capabilities.agent-omitted-is-unsupported",
    )

# Options before a session, and initial ones

mutant(
    "options of an agent without them",
    drop("initialize/answer", f"{SESSIONS}.options"),
    "client lint.options.only-when-advertised",
)
mutant(
    "an initial option twice",
    put("new", "params.configOptions[1]", {"configId": "fast", "type": "boolean", "value": True}),
    "client lint.options.initial-unique",
)

# Commands and skills

mutant_v2(
    "two commands of one name",
    put("commands", "params.update.availableCommands", [*COMMANDS, COMMANDS[1]]),
    "agent lint.commands.names-unique",
)
mutant_v2(
    "a command of two words",
    put("commands", "params.update.availableCommands[0].name", "web search"),
    "agent lint.commands.names-unique",
)
mutant_v2(
    "skills for a client without them",
    drop("initialize", "params.capabilities.session.commands"),
    "agent capabilities.agent-omitted-is-unsupported",
)
mutant_v2(
    "skills that the agent does not take",
    drop("initialize/answer", "result.capabilities.session.prompt.skill"),
    "agent lint.skill.offered-and-taken",
    "client prompt.content.only-advertised",
)
mutant_v2("a skill that is not listed", put("prompt2", "params.prompt[0].name", "x"), "client lint.skill.sendable")
mutant_v2("a skill in the middle", put("prompt2", "params.prompt", [text("go"), SKILL]), "client lint.skill.sendable")
mutant_v2(
    "a skill in the middle, where that is offered",
    both(
        put("prompt2", "params.prompt", [text("go"), SKILL]),
        put("initialize/answer", "result.capabilities.session.prompt.skill", {"inline": {}}),
    ),
)
