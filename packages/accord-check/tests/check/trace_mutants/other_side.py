"""Faults that either side can have: those that the other tables show on one side only, on the other."""

from __future__ import annotations

from tests.check.healthy import again, both, drop, put, raw, says
from tests.check.trace_mutants.table import OFFERS, mutant

mutant(
    "latin-1 text of a client",
    raw(
        "custom",
        b'{"jsonrpc":"2.0","id":15,"method":"_example.com/unknown","params":{"name":"caf\xe9"}}',
    ),
    "client wire.utf-8",
)
mutant("params of the agent as a list", put("extension", "params", [True]), "agent jsonrpc.params-by-name")
mutant(
    "a list as id of a client",
    both(put("list2", "id", [14]), put("list2/answer", "id", [14])),
    "client jsonrpc.request.id-type",
)
mutant(
    "a null id of a client",
    both(put("list2", "id", None), put("list2/answer", "id", None)),
    "~client jsonrpc.request.id-not-null",
)
mutant(
    "a fractional id of a client",
    both(put("list2", "id", 14.5), put("list2/answer", "id", 14.5)),
    "~client jsonrpc.request.id-not-fractional",
)
mutant(
    "a result and an error of a client",
    put("write/answer", "error", {"code": 1, "message": "no"}),
    "client jsonrpc.answer.result-or-error",
)
mutant(
    "a string as error of a client",
    both(drop("write/answer", "result"), put("write/answer", "error", "no")),
    "client jsonrpc.error.code-and-message",
)
mutant(
    "an empty message of a client",
    both(drop("write/answer", "result"), put("write/answer", "error", {"code": -32603, "message": ""})),
    "~client jsonrpc.error.message-brief",
)
mutant(
    "an unknown method of the client refused as internal",
    both(
        says("logout/answer", "agent", {"id": 92, "error": {"code": -32603, "message": "no"}}),
        says("logout/answer", "client", {"id": 92, "method": "workspace/open", "params": {}}),
    ),
    "~agent jsonrpc.error.method-not-found",
    "~client extension.method-underscore",
)
mutant(
    "an unknown custom method of the agent refused as internal",
    both(
        says("chunk", "client", {"id": 93, "error": {"code": -32603, "message": "no"}}),
        says("chunk", "agent", {"id": 93, "method": "_example.com/open", "params": {}}),
    ),
    "~client extension.request-unknown",
)
mutant(
    "an id of an open request of the client",
    both(
        says("chunk", "agent", {"id": 2, "error": {"code": -32601, "message": "no"}}),
        says("chunk", "client", {"id": 2, "method": "_example.com/x"}),
    ),
    "~client lint.request.id-reused",
)
mutant(
    "an id of an open request, answered in the order of the requests",
    both(
        says("prompt/answer", "agent", {"id": 2, "error": {"code": -32601, "message": "no"}}),
        says("chunk", "client", {"id": 2, "method": "_example.com/x"}),
    ),
    "~client lint.request.id-reused",
)
mutant(
    "two open requests of one id that have three answers",
    both(
        again("prompt/answer"),
        says("chunk", "agent", {"id": 2, "error": {"code": -32601, "message": "no"}}),
        says("chunk", "client", {"id": 2, "method": "_example.com/x"}),
    ),
    "~client lint.request.id-reused",
    "agent jsonrpc.answer.exactly-one",
)
mutant(
    "bad params of the agent refused as internal",
    both(
        says("chunk", "client", {"id": 94, "error": {"code": -32603, "message": "no"}}),
        says("chunk", "agent", {"id": 94, "method": "fs/read_text_file", "params": {"sessionId": "s1"}}),
    ),
    "~client jsonrpc.error.invalid-params",
    "agent lint.schema.misfit",
)
mutant(
    "a null capability of the agent",
    put("initialize/answer", f"{OFFERS}.mcpCapabilities.sse", None),
    "?agent lint.schema.null-for-absent",
)
mutant(
    "an MCP server of the client by its older name",
    both(
        put("initialize/answer", f"{OFFERS}.mcpCapabilities.acp", True),
        put("new", "params.mcpServers[1]", {"type": "acp", "name": "tools", "id": "m1"}),
    ),
    "?client lint.legacy",
)
mutant(
    "a turn's usage without its total",
    put("prompt/answer", "result.usage", {"inputTokens": 3, "outputTokens": 4}),
    "?agent usage.turn.totals-complete",
)
mutant(
    "a prompt's content of an unknown type",
    put("prompt3", "params.prompt", [{"type": "hologram"}]),
    "?client lint.schema.unknown-variant",
)
