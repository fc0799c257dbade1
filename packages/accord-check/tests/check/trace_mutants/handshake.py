"""Handshakes that are wrong, and capabilities that are used without being declared."""

from __future__ import annotations

from tests.check.healthy import PIXEL, SERVER, again, both, drop, moved, put, says, until, without
from tests.check.trace_mutants.table import CAPABILITIES, OFFERS, SESSIONS, mutant, update

mutant("a session before initialize", moved("new", "initialize"), "client initialize.client-goes-first")
mutant("initialize twice", again("initialize", id=70), "client initialize.once")
mutant("no version asked", drop("initialize", "params.protocolVersion"), "client initialize.client-states-version")
mutant("a version as text", put("initialize", "params.protocolVersion", "1"), "client initialize.version.integer")
mutant(
    "a date as version", put("initialize", "params.protocolVersion", "2025-01-01"), "client initialize.version.integer"
)
mutant(
    "no version chosen", drop("initialize/answer", "result.protocolVersion"), "agent initialize.agent-states-version"
)
mutant(
    "a version chosen as text",
    put("initialize/answer", "result.protocolVersion", "1"),
    "agent initialize.version.integer",
)
mutant("no client info", drop("initialize", "params.clientInfo"), "~client initialize.client-states-info")
mutant("no agent info", drop("initialize/answer", "result.agentInfo"), "~agent initialize.agent-states-info")
mutant(
    "version 0 for version 1",
    put("initialize/answer", "result.protocolVersion", 0),
    "agent initialize.version.agent-echoes-supported",
)
mutant(
    "version 65535 echoed",
    both(put("initialize", "params.protocolVersion", 65535), put("initialize/answer", "result.protocolVersion", 65535)),
    "agent initialize.version.agent-answers-latest",
)
mutant("version 65535 answered with 1", put("initialize", "params.protocolVersion", 65535))
mutant("a connection id, as over HTTP", put("initialize/answer", "result.connectionId", "c1"))
mutant(
    "two auth methods of one id",
    put("initialize/answer", "result.authMethods[1].id", "key"),
    "agent lint.auth.ids-unique",
)
mutant(
    "an auth method without an id",
    drop("initialize/answer", "result.authMethods[1].id"),
    "agent auth.methods-advertised",
)
mutant(
    "a terminal login unasked", drop("initialize", f"{CAPABILITIES}.auth"), "agent auth.terminal.only-when-advertised"
)
mutant(
    "a terminal login with a command",
    put("initialize/answer", "result.authMethods[1].command", "/bin/login"),
    "agent auth.terminal.no-command",
)
mutant(
    "a login by an unknown method",
    put("authenticate", "params.methodId", "magic"),
    "client auth.authenticate.offered-method",
)
mutant(
    "an answer to a login that is true",
    put("authenticate/answer", "result", True),
    "agent auth.authenticate.empty-result",
)
mutant("an answer to a logout that is text", put("logout/answer", "result", "bye"), "agent auth.logout.empty-result")
mutant("an answer to a close that is true", put("close/answer", "result", True), "agent session.close.empty-result")
mutant("an answer to a delete that is a list", put("delete/answer", "result", []), "agent session.delete.empty-result")
mutant(
    "a question before initialize was answered",
    both(
        says("initialize", "client", {"id": 50, "error": {"code": -32601, "message": "no"}}),
        says("initialize", "agent", {"id": 50, "method": "_example.com/who"}),
    ),
    "~agent lint.before-initialize",
)
mutant(
    "no capabilities of the client at all",
    put("initialize", CAPABILITIES, {}),
    "agent auth.terminal.only-when-advertised",
    "agent config.boolean.only-when-advertised",
    "agent files.read.only-when-advertised",
    "agent files.write.only-when-advertised",
    "agent terminal.only-when-advertised",
    "agent elicitation.absent-is-unsupported",
    "agent notice.only-when-advertised",
    "agent compaction.only-when-advertised",
    "agent capabilities.agent-omitted-is-unsupported",
)
mutant(
    "no capabilities named by the agent",
    both(
        drop("initialize/answer", OFFERS),
        drop("new", "params.additionalDirectories"),
        drop("new", "params.configOptions"),
        without("before", "before/answer"),
        until("commands"),
    ),
    "~agent initialize.agent-states-capabilities",
)
mutant(
    "no capabilities named by the client",
    drop("initialize", CAPABILITIES),
    "~client initialize.client-states-capabilities",
    "agent auth.terminal.only-when-advertised",
    "agent config.boolean.only-when-advertised",
    "agent files.read.only-when-advertised",
    "agent files.write.only-when-advertised",
    "agent terminal.only-when-advertised",
    "agent elicitation.absent-is-unsupported",
    "agent notice.only-when-advertised",
    "agent compaction.only-when-advertised",
    "agent capabilities.agent-omitted-is-unsupported",
)
mutant(
    "a read that is not lent",
    drop("initialize", f"{CAPABILITIES}.fs.readTextFile"),
    "agent files.read.only-when-advertised",
)
mutant(
    "a read that is refused by false",
    put("initialize", f"{CAPABILITIES}.fs.readTextFile", False),
    "agent files.read.only-when-advertised",
)
mutant(
    "a write that is not lent",
    drop("initialize", f"{CAPABILITIES}.fs.writeTextFile"),
    "agent files.write.only-when-advertised",
)
mutant(
    "a terminal that is not lent", drop("initialize", f"{CAPABILITIES}.terminal"), "agent terminal.only-when-advertised"
)
mutant(
    "a form that is not lent",
    drop("initialize", f"{CAPABILITIES}.elicitation"),
    "agent elicitation.absent-is-unsupported",
)
mutant(
    "a link where only forms are lent",
    drop("initialize", f"{CAPABILITIES}.elicitation.url"),
    "agent elicitation.declared-modes-only",
)
mutant(
    "a link for an empty capability",
    put("initialize", f"{CAPABILITIES}.elicitation", {}),
    "agent elicitation.declared-modes-only",
)
mutant(
    "a boolean option unasked",
    drop("initialize", f"{CAPABILITIES}.session.configOptions"),
    "agent config.boolean.only-when-advertised",
)
mutant(
    "a boolean option for null",
    put("initialize", f"{CAPABILITIES}.session.configOptions.boolean", None),
    "agent config.boolean.only-when-advertised",
)
mutant("a notice unasked", drop("initialize", f"{CAPABILITIES}.session.notices"), "agent notice.only-when-advertised")
mutant(
    "a compaction unasked",
    drop("initialize", f"{CAPABILITIES}.session.compaction"),
    "agent compaction.only-when-advertised",
)
mutant(
    "a plan update unasked",
    says("plan", "agent", update("plan_removed", planId="p")),
    "agent plan.operations.only-when-advertised",
)
mutant(
    "a subagent unasked",
    says("plan", "agent", update("subagent_update", sessionId="s9", state={"state": "running"})),
    "agent capabilities.agent-omitted-is-unsupported",
)
mutant(
    "load not offered",
    put("initialize/answer", f"{OFFERS}.loadSession", False),
    "client session.load.only-when-advertised",
)
mutant(
    "resume not offered", drop("initialize/answer", f"{SESSIONS}.resume"), "client session.resume.only-when-advertised"
)
mutant("close not offered", drop("initialize/answer", f"{SESSIONS}.close"), "client session.close.only-when-advertised")
mutant("list not offered", drop("initialize/answer", f"{SESSIONS}.list"), "client session.list.only-when-advertised")
mutant(
    "list offered as null",
    put("initialize/answer", f"{SESSIONS}.list", None),
    "client session.list.only-when-advertised",
)
mutant(
    "delete not offered", drop("initialize/answer", f"{SESSIONS}.delete"), "client session.delete.only-when-advertised"
)
mutant("fork not offered", drop("initialize/answer", f"{SESSIONS}.fork"), "client session.fork.only-when-advertised")
mutant(
    "roots not offered",
    drop("initialize/answer", f"{SESSIONS}.additionalDirectories"),
    "client session.roots.only-when-advertised",
)
mutant("logout not offered", drop("initialize/answer", f"{OFFERS}.auth"), "client auth.logout.only-when-advertised")
mutant(
    "an image not offered",
    drop("initialize/answer", f"{OFFERS}.promptCapabilities"),
    "client prompt.content.only-advertised",
)
mutant(
    "a sound not offered",
    put("prompt", "params.prompt[3]", PIXEL | {"type": "audio"}),
    "client prompt.content.only-advertised",
)
mutant(
    "a resource not offered",
    put("prompt", "params.prompt[3]", {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}),
    "client prompt.content.only-advertised",
)
REMOTE = {"name": "r", "url": "https://example.com", "headers": []}
mutant("a server over HTTP", put("new", "params.mcpServers[1]", REMOTE | {"type": "http"}))
mutant(
    "a server over HTTP not offered",
    both(
        put("new", "params.mcpServers[1]", REMOTE | {"type": "http"}),
        drop("initialize/answer", f"{OFFERS}.mcpCapabilities"),
    ),
    "client mcp.http-only-when-advertised",
)
mutant(
    "a server over SSE not offered",
    put("new", "params.mcpServers[1]", REMOTE | {"type": "sse"}),
    "client mcp.sse-only-when-advertised",
)
mutant(
    "a server over ACP not offered",
    put("new", "params.mcpServers[1]", {"type": "acp", "name": "a", "serverId": "a"}),
    "client mcp.acp.only-when-advertised",
)
for METHOD, PARAMS, RESULT in (
    ("session/status", {"sessionId": "s1"}, {"status": "open"}),
    ("session/set_title", {"sessionId": "s1", "title": "x"}, {"title": "x"}),
    ("auth/status", {}, {"state": "unknown"}),
):
    mutant(
        f"{METHOD} not offered",
        both(
            says("list/answer", "agent", {"id": 50, "result": RESULT}),
            says("list/answer", "client", {"id": 50, "method": METHOD, "params": PARAMS}),
        ),
        "client capabilities.client-omitted-is-unsupported",
    )
mutant(
    "providers not offered",
    both(
        says("list/answer", "agent", {"id": 50, "result": {"providers": []}}),
        says("list/answer", "client", {"id": 50, "method": "providers/list", "params": {}}),
    ),
    "~client providers.only-when-advertised",
)
mutant(
    "a server by a relative command",
    put("new", "params.mcpServers[0]", SERVER | {"command": "files"}),
    "client mcp.command-absolute",
)
mutant("a server by a Windows command", put("new", "params.mcpServers[0]", SERVER | {"command": "C:\\files.exe"}))
