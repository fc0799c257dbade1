"""Files, terminals, forms and content that are wrong."""

from __future__ import annotations

from tests.check.healthy import PIXEL, both, drop, moved, put, without
from tests.check.trace_mutants.table import mutant

mutant(
    "more lines than the limit", put("read/answer", "result.content", "1\n2\n3\n"), "client files.read.line-and-limit"
)
mutant("a terminal that is never released", without("release", "release/answer"), "~agent terminal.released")
mutant(
    "output of a released terminal",
    both(moved("output2/answer", "release/answer"), moved("output2", "release/answer")),
    "~agent lint.terminal.used-after-release",
    "client terminal.release.ends-id",
)
mutant(
    "output of a released terminal that is refused",
    both(
        moved("output2/answer", "release/answer"),
        moved("output2", "release/answer"),
        drop("output2/answer", "result"),
        put("output2/answer", "error", {"code": -32002, "message": "no such terminal"}),
    ),
    "~agent lint.terminal.used-after-release",
)
mutant(
    "an exited terminal without its status",
    drop("output2/answer", "result.exitStatus"),
    "client terminal.output.exit-status",
)
mutant("a wait without an end", put("wait/answer", "result", {}), "client terminal.wait.until-exit")
mutant("a wait that ends by a signal", put("wait/answer", "result", {"signal": "SIGTERM"}))
mutant("output without truncated", drop("output/answer", "result.truncated"), "client terminal.output.truncation-told")
mutant(
    "a terminal of nobody",
    put("embeds", "params.update.content[0].terminalId", "x9"),
    "~agent tool.terminal.embedded-before-release",
)
mutant(
    "a terminal of the agent's own",
    both(
        put("embeds", "params.update.content[0].terminalId", "x9"),
        put("embeds", "params.update._meta", {"terminal_info": {}}),
    ),
)
mutant(
    "a terminal embedded after its release",
    moved("embeds", "release/answer"),
    "~agent tool.terminal.embedded-before-release",
)
mutant(
    "an answer of no action", put("form/answer", "result", {"content": {"age": 7}}), "client elicitation.answer.action"
)
mutant(
    "a form without a required field", put("form/answer", "result.content", {}), "~client elicitation.form.validated"
)
mutant("a word for an integer", put("form/answer", "result.content.age", "seven"), "~client elicitation.form.validated")
mutant("a truth for an integer", put("form/answer", "result.content.age", True), "~client elicitation.form.validated")
mutant("a declined form", put("form/answer", "result", {"action": "decline"}))
mutant(
    "a nested form",
    put("form", "params.requestedSchema.properties.age", {"type": "integer", "minimum": "x"}),
    "agent elicitation.form.flat",
)
mutant("a question of no session", drop("form", "params.sessionId"), "agent elicitation.scope")
mutant("a link that is no URL", put("link", "params.url", "not a url"), "agent elicitation.url.valid")
mutant("a link in plain HTTP", put("link", "params.url", "http://example.com"), "~agent elicitation.url.https")
mutant("a link to this machine", put("link", "params.url", "http://localhost:8000"))
mutant(
    "a completion of no question",
    put("complete", "params.elicitationId", "e9"),
    "agent elicitation.complete.carries-id",
)
mutant(
    "a picture that is no base64",
    put("picture", "params.update.content.data", "<svg/>"),
    "agent content.agent-binary-base64",
)
mutant(
    "a prompt's picture that is no base64",
    put("prompt", "params.prompt[2]", PIXEL | {"data": "raw!"}),
    "client content.client-binary-base64",
)
