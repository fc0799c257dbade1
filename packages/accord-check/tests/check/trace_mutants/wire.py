"""Frames, requests and answers that are wrong."""

from __future__ import annotations

from tests.check.healthy import again, both, drop, put, raw, says
from tests.check.trace_mutants.table import mutant

# Framing

mutant("a banner on stdout", says("initialize", "agent", b"Welcome!"), "agent stdio.stdout-only-messages")
mutant("a log line amid a turn", says("chunk", "agent", b"[info] {} done"), "agent stdio.stdout-only-messages")
mutant("a number as a line", says("chunk", "agent", b"17"), "agent stdio.stdout-only-messages")
mutant("an object that is no message", says("chunk", "agent", b'{"level":"info"}'), "agent stdio.stdout-only-messages")
mutant("a note on stdin", says("prompt", "client", b"# go"), "client stdio.stdin-only-messages")
mutant("a batch of the agent", says("chunk", "agent", b"[]"), "agent stdio.no-batches")
mutant("a batch of the client", says("chunk", "client", b"[]"), "client stdio.no-batches")
mutant("two messages on a line", raw("chunk", b"{}{}"), "agent stdio.stdout-only-messages")
mutant(
    "latin-1 text",
    raw(
        "chunk",
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":'
        b'"agent_message_chunk","content":{"type":"text","text":"caf\xe9"}}}}',
    ),
    "agent wire.utf-8",
)
mutant("no jsonrpc member in a notification", drop("chunk", "jsonrpc"), "agent jsonrpc.version-member")
mutant("jsonrpc 1.0 in a request", put("prompt", "jsonrpc", "1.0"), "client jsonrpc.version-member")
mutant("a number as jsonrpc in an answer", put("new/answer", "jsonrpc", 2.0), "agent jsonrpc.version-member")
mutant(
    "params as a list",
    put("list2", "params", []),
    "client jsonrpc.params-by-name",
)
mutant("a list id", both(put("read", "id", [1]), put("read/answer", "id", [1])), "agent jsonrpc.request.id-type")
mutant("a true id", both(put("read", "id", True), put("read/answer", "id", True)), "agent jsonrpc.request.id-type")
mutant("a null id", both(put("read", "id", None), put("read/answer", "id", None)), "~agent jsonrpc.request.id-not-null")
mutant(
    "a fractional id",
    both(put("read", "id", 1.5), put("read/answer", "id", 1.5)),
    "~agent jsonrpc.request.id-not-fractional",
)

# Answers

mutant(
    "a result and an error",
    put("set_mode/answer", "error", {"code": 1, "message": "no"}),
    "agent jsonrpc.answer.result-or-error",
)
mutant("neither result nor error", drop("set_mode/answer", "result"), "agent jsonrpc.answer.result-or-error")
mutant("an id as text", put("set_mode/answer", "id", "3"), "agent jsonrpc.answer.id-echoed")
mutant("an id of no request", put("write/answer", "id", 77), "client jsonrpc.answer.id-echoed")
mutant("an answer without an id", drop("set_mode/answer", "id"), "agent jsonrpc.answer.id-echoed")
mutant("an answer twice", again("set_mode/answer"), "agent jsonrpc.answer.exactly-one")
mutant("an answer of the client twice", again("read/answer"), "client jsonrpc.answer.exactly-one")
mutant(
    "a notification answered",
    says("cancel", "agent", {"id": None, "error": {"code": -32601, "message": "unknown"}}),
    "agent jsonrpc.notification.never-answered",
)
mutant(
    "an extension notification answered",
    says("extension", "client", {"id": None, "error": {"code": -32601, "message": "unknown"}}),
    "client jsonrpc.notification.never-answered",
)
mutant("an error without a code", drop("custom/answer", "error.code"), "agent jsonrpc.error.code-and-message")
mutant("a word as code", put("custom/answer", "error.code", "E1"), "agent jsonrpc.error.code-and-message")
mutant("a string as error", put("custom/answer", "error", "no"), "agent jsonrpc.error.code-and-message")
mutant("an error without a message", drop("custom/answer", "error.message"), "agent jsonrpc.error.code-and-message")
mutant("an empty message", put("custom/answer", "error.message", ""), "~agent jsonrpc.error.message-brief")
mutant(
    "a traceback as message", put("custom/answer", "error.message", "no\n at x"), "~agent jsonrpc.error.message-brief"
)
mutant("a long message", put("custom/answer", "error.message", "x" * 400), "~agent jsonrpc.error.message-brief")
mutant(
    "an unknown custom method refused as invalid",
    put("custom/answer", "error.code", -32600),
    "~agent extension.request-unknown",
)
mutant(
    "an unknown method of the agent refused as internal",
    both(
        says("chunk", "client", {"id": 90, "error": {"code": -32603, "message": "no"}}),
        says("chunk", "agent", {"id": 90, "method": "workspace/open", "params": {}}),
    ),
    "~client jsonrpc.error.method-not-found",
    "~agent extension.method-underscore",
)

mutant(
    "an id of an open request",
    says("read", "agent", {"id": 1, "method": "_example.com/x"}),
    "~agent lint.request.id-reused",
)
mutant(
    "bad params refused as internal",
    both(
        says("logout/answer", "agent", {"id": 91, "error": {"code": -32603, "message": "no"}}),
        says("logout/answer", "client", {"id": 91, "method": "session/prompt", "params": {"sessionId": "s1"}}),
    ),
    "~agent jsonrpc.error.invalid-params",
    "client lint.schema.misfit",
)
