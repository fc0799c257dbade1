"""A conversation without a fault, in which nearly every message of version 1 occurs, and how to break it in one place.

Each line has a name. A mutation takes the conversation by these names and returns nothing: it changes its copy.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from accord.trace import TraceEvent

Message = dict[str, Any]


@dataclass
class Line:
    name: str
    by: str
    message: Message
    raw: bytes | None = None
    """What stands on the wire instead of the message."""


@dataclass
class Talk:
    """A conversation, a line for each message."""

    lines: list[Line] = field(default_factory=list)

    def client(self, name: str, method: str, params: Any = None, *, id: Any = None) -> None:  # noqa: A002
        """A request of the client; a notification without an id."""
        self._add(name, "client", method, params, id)

    def agent(self, name: str, method: str, params: Any = None, *, id: Any = None) -> None:  # noqa: A002
        self._add(name, "agent", method, params, id)

    def answer(self, name: str, result: Any) -> None:
        """The answer to the request of this name, as NAME/answer."""
        asked = self[name]
        other = "agent" if asked.by == "client" else "client"
        self.lines.append(
            Line(f"{name}/answer", other, {"jsonrpc": "2.0", "id": asked.message["id"], "result": result})
        )

    def refuse(self, name: str, code: int, message: str = "it failed") -> None:
        self.answer(name, None)
        del self.lines[-1].message["result"]
        self.lines[-1].message["error"] = {"code": code, "message": message}

    def update(self, name: str, kind: str, session: str = "s1", /, **fields: Any) -> None:
        self.agent(name, "session/update", {"sessionId": session, "update": {"sessionUpdate": kind, **fields}})

    def __getitem__(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    def place(self, name: str) -> int:
        return self.lines.index(self[name])

    def copy(self) -> Talk:
        return copy.deepcopy(self)

    def events(self) -> list[TraceEvent]:
        """The trace as the client recorded it, with a second between two messages."""
        return [
            TraceEvent(
                float(number),
                "out" if line.by == "client" else "in",
                line.raw if line.raw is not None else json.dumps(line.message).encode(),
            )
            for number, line in enumerate(self.lines)
        ]

    def _add(self, name: str, by: str, method: str, params: Any, id: Any) -> None:  # noqa: A002
        members = {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "method": method}
        self.lines.append(Line(name, by, members | ({} if params is None else {"params": params})))


Mutation = Callable[[Talk], None]


def put(name: str, path: str, value: Any) -> Mutation:
    """Set a member, by its place in the message: `params.update.content[0].type`."""

    def mutate(talk: Talk) -> None:
        *steps, last = _steps(path)
        at: Any = talk[name].message
        for step in steps:
            at = at[step]
        if isinstance(at, list) and last == len(at):
            at.append(copy.deepcopy(value))
        else:
            at[last] = copy.deepcopy(value)

    return mutate


def drop(name: str, path: str) -> Mutation:
    """Remove a member."""

    def mutate(talk: Talk) -> None:
        *steps, last = _steps(path)
        at: Any = talk[name].message
        for step in steps:
            at = at[step]
        del at[last]

    return mutate


def rename(name: str, path: str, to: str) -> Mutation:
    """Rename a member."""

    def mutate(talk: Talk) -> None:
        *steps, last = _steps(path)
        at: Any = talk[name].message
        for step in steps:
            at = at[step]
        at[to] = at.pop(last)

    return mutate


def without(*names: str) -> Mutation:
    """Leave these lines out."""

    def mutate(talk: Talk) -> None:
        for name in names:
            talk.lines.remove(talk[name])

    return mutate


def again(name: str, **changes: Any) -> Mutation:
    """Send a line a second time, behind itself; `changes` are members of the copy."""

    def mutate(talk: Talk) -> None:
        line = copy.deepcopy(talk[name])
        line.name += "/again"
        line.message |= changes
        talk.lines.insert(talk.place(name) + 1, line)

    return mutate


def moved(name: str, after: str) -> Mutation:
    """Send a line later or earlier: right after another."""

    def mutate(talk: Talk) -> None:
        line = talk[name]
        talk.lines.remove(line)
        talk.lines.insert(talk.place(after) + 1, line)

    return mutate


def raw(name: str, data: bytes) -> Mutation:
    """Put these bytes on the wire instead of the message."""

    def mutate(talk: Talk) -> None:
        talk[name].raw = data

    return mutate


def says(after: str, by: str, message: Any) -> Mutation:
    """Send one more message, or these bytes, after a line."""

    def mutate(talk: Talk) -> None:
        is_bytes = isinstance(message, bytes)
        line = Line("said", by, {} if is_bytes else {"jsonrpc": "2.0", **message}, message if is_bytes else None)
        talk.lines.insert(talk.place(after) + 1, line)

    return mutate


def until(name: str) -> Mutation:
    """End the conversation with this line."""

    def mutate(talk: Talk) -> None:
        del talk.lines[talk.place(name) + 1 :]

    return mutate


def both(*mutations: Mutation) -> Mutation:
    def mutate(talk: Talk) -> None:
        for mutation in mutations:
            mutation(talk)

    return mutate


def _steps(path: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in path.replace("[", ".").replace("]", "").split(".")]


def cursor_at(message: str) -> Message:
    """The members of the update that announces a cursor after a message of the agent."""
    anchor = {"type": "agent_message", "messageId": message, "position": "after"}
    return {"cursorId": message, "anchor": anchor, "capabilities": {"fork": {}}}


def text(words: str) -> Message:
    return {"type": "text", "text": words}


MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}
OPTIONS = [
    {
        "id": "model",
        "name": "Model",
        "type": "select",
        "category": "model",
        "currentValue": "big",
        "options": [{"value": "big", "name": "Big"}, {"value": "small", "name": "Small"}],
    },
    {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
]
GIVEN = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
SERVER = {"name": "files", "command": "/usr/bin/files", "args": [], "env": []}
PIXEL = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}


def healthy() -> Talk:
    """The whole conversation."""
    talk = Talk()
    _opening(talk)
    _first_turn(talk)
    _second_turn(talk)
    _past(talk)
    _ending(talk)
    return talk.copy()


def _opening(talk: Talk) -> None:
    talk.client(
        "initialize",
        "initialize",
        {
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": True, "writeTextFile": True},
                "terminal": True,
                "session": {
                    "compaction": {},
                    "notices": {},
                    "configOptions": {"boolean": {}},
                    "cursors": {},
                    "promptSuggestions": {"image": {}},
                },
                "elicitation": {"form": {}, "url": {}},
                "auth": {"terminal": True},
            },
            "clientInfo": {"name": "client", "version": "1"},
        },
        id=0,
    )
    talk.answer(
        "initialize",
        {
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True},
                "mcpCapabilities": {"http": True},
                "sessionCapabilities": {
                    name: {}
                    for name in ("list", "resume", "close", "delete", "fork", "additionalDirectories", "options")
                },
                "auth": {"logout": {}},
            },
            "authMethods": [
                {"id": "key", "name": "Key"},
                {"id": "shell", "name": "Shell", "type": "terminal", "args": ["login"]},
            ],
            "agentInfo": {"name": "agent", "version": "1"},
        },
    )
    talk.client("authenticate", "authenticate", {"methodId": "key"}, id="login")
    talk.answer("authenticate", {})
    talk.client("before", "session/options", {"cwd": "/work"}, id="before")
    talk.answer("before", {"configOptions": copy.deepcopy(OPTIONS)})
    initial = [{"configId": "fast", "type": "boolean", "value": False}]
    place = {"cwd": "/work", "mcpServers": [SERVER], "additionalDirectories": ["/more"]}
    talk.client("new", "session/new", {**place, "configOptions": initial}, id=1)
    talk.answer("new", {"sessionId": "s1", "modes": MODES, "configOptions": copy.deepcopy(OPTIONS)})
    talk.update("commands", "available_commands_update", availableCommands=[{"name": "web", "description": "Search"}])


def _first_turn(talk: Talk) -> None:
    link = {"type": "resource_link", "name": "a.py", "uri": "file:///work/a.py"}
    talk.client("prompt", "session/prompt", {"sessionId": "s1", "prompt": [text("go"), link, dict(PIXEL)]}, id=2)
    talk.update("thought", "agent_thought_chunk", content=text("hm"), messageId="m1")
    talk.update("chunk", "agent_message_chunk", content=text("I look"), messageId="m1")
    talk.update("picture", "agent_message_chunk", content=dict(PIXEL), messageId="m2")
    entry = {"content": "look", "priority": "high", "status": "pending"}
    talk.update("plan", "plan", entries=[entry])
    talk.update(
        "tool",
        "tool_call",
        toolCallId="t1",
        title="Edit",
        kind="edit",
        status="pending",
        locations=[{"path": "/work/a.py", "line": 3}],
    )
    ask = {"sessionId": "s1", "toolCall": {"toolCallId": "t1"}, "options": copy.deepcopy(GIVEN)}
    talk.agent("ask", "session/request_permission", ask, id=0)
    talk.answer("ask", {"outcome": {"outcome": "selected", "optionId": "yes"}})
    talk.update("runs", "tool_call_update", toolCallId="t1", status="in_progress")
    _lent(talk)
    diff = {"type": "diff", "path": "/work/a.py", "oldText": "a", "newText": "b"}
    talk.update("done", "tool_call_update", toolCallId="t1", status="completed", content=[diff])
    _questions(talk)
    talk.update("usage", "usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "USD"})
    talk.update("info", "session_info_update", title="A title", updatedAt="2026-01-31T12:00:00Z")
    talk.update("mode", "current_mode_update", currentModeId="code")
    talk.update("options", "config_option_update", configOptions=copy.deepcopy(OPTIONS))
    talk.update("notice", "notice", severity="info", title="Note")
    talk.update("compacting", "compaction_update", compactionId="c1", status="in_progress")
    talk.update("compacted", "compaction_update", compactionId="c1", status="completed", summary=[text("short")])
    talk.update("cursor", "cursor_update", **cursor_at("m2"))
    talk.update("suggests", "prompt_suggestions_update", suggestions=[{"prompt": [text("And now?")]}])
    talk.agent("extension", "_example.com/status", {"ok": True})
    talk.answer("prompt", {"stopReason": "end_turn"})


def _lent(talk: Talk) -> None:
    talk.agent("read", "fs/read_text_file", {"sessionId": "s1", "path": "/work/a.py", "line": 1, "limit": 2}, id=1)
    talk.answer("read", {"content": "one\ntwo\n"})
    talk.agent("write", "fs/write_text_file", {"sessionId": "s1", "path": "/work/a.py", "content": "b"}, id=2)
    talk.answer("write", {})
    talk.agent("create", "terminal/create", {"sessionId": "s1", "command": "ls", "cwd": "/work"}, id=3)
    talk.answer("create", {"terminalId": "x1"})
    embedded = [{"type": "terminal", "terminalId": "x1"}]
    talk.update("embeds", "tool_call_update", toolCallId="t1", content=embedded)
    at = {"sessionId": "s1", "terminalId": "x1"}
    talk.agent("output", "terminal/output", dict(at), id=4)
    talk.answer("output", {"output": "a.py", "truncated": False})
    talk.agent("wait", "terminal/wait_for_exit", dict(at), id=5)
    talk.answer("wait", {"exitCode": 0})
    talk.agent("output2", "terminal/output", dict(at), id=6)
    talk.answer("output2", {"output": "a.py", "truncated": False, "exitStatus": {"exitCode": 0}})
    talk.agent("release", "terminal/release", dict(at), id=7)
    talk.answer("release", {})


def _questions(talk: Talk) -> None:
    form = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    asked = {"sessionId": "s1", "mode": "form", "message": "How old?", "requestedSchema": form}
    talk.agent("form", "elicitation/create", asked, id=8)
    talk.answer("form", {"action": "accept", "content": {"age": 7}})
    link = {"sessionId": "s1", "mode": "url", "message": "Go", "elicitationId": "e1", "url": "https://example.com/x"}
    talk.agent("link", "elicitation/create", link, id=9)
    talk.answer("link", {"action": "accept"})
    talk.agent("complete", "elicitation/complete", {"elicitationId": "e1"})


def _second_turn(talk: Talk) -> None:
    talk.client("set_mode", "session/set_mode", {"sessionId": "s1", "modeId": "ask"}, id=3)
    talk.answer("set_mode", {})
    set_option = {"sessionId": "s1", "configId": "model", "value": "small"}
    talk.client("set_option", "session/set_config_option", set_option, id=4)
    talk.answer("set_option", {"configOptions": copy.deepcopy(OPTIONS)})
    set_boolean = {"sessionId": "s1", "configId": "fast", "value": True, "type": "boolean"}
    talk.client("set_boolean", "session/set_config_option", set_boolean, id=5)
    talk.answer("set_boolean", {"configOptions": copy.deepcopy(OPTIONS)})
    talk.client("prompt2", "session/prompt", {"sessionId": "s1", "prompt": [text("more")]}, id=6)
    talk.update("tool2", "tool_call", toolCallId="t2", title="Run")
    ask = {"sessionId": "s1", "toolCall": {"toolCallId": "t2"}, "options": copy.deepcopy(GIVEN)}
    talk.agent("ask2", "session/request_permission", ask, id=10)
    talk.client("cancel", "session/cancel", {"sessionId": "s1"})
    talk.answer("ask2", {"outcome": {"outcome": "cancelled"}})
    talk.update("failed2", "tool_call_update", toolCallId="t2", status="failed")
    talk.answer("prompt2", {"stopReason": "cancelled"})


def _past(talk: Talk) -> None:
    talk.client("list", "session/list", {"cwd": "/work"}, id=7)
    entry = {"sessionId": "s1", "cwd": "/work", "title": "A title", "updatedAt": "2026-01-31T12:00:00Z"}
    talk.answer("list", {"sessions": [entry, {"sessionId": "s0", "cwd": "/work"}]})
    talk.client("load", "session/load", {"sessionId": "s0", "cwd": "/work", "mcpServers": []}, id=8)
    talk.update("replayed1", "user_message_chunk", "s0", content=text("hi"), messageId="r1")
    talk.update("replayed2", "agent_message_chunk", "s0", content=text("hello"), messageId="r2")
    talk.update("replayed3", "tool_call", "s0", toolCallId="t1", title="Old", status="completed")
    talk.answer("load", {})
    talk.client("prompt3", "session/prompt", {"sessionId": "s0", "prompt": [text("on")]}, id=9)
    talk.update("chunk3", "agent_message_chunk", "s0", content=text("ok"), messageId="r3")
    talk.answer("prompt3", {"stopReason": "end_turn"})
    talk.client("resume", "session/resume", {"sessionId": "s0", "cwd": "/work", "mcpServers": []}, id=10)
    talk.answer("resume", {})
    talk.client("fork", "session/fork", {"sessionId": "s0", "cwd": "/work", "mcpServers": []}, id=11)
    talk.answer("fork", {"sessionId": "s2"})
    cut = {"sessionId": "s1", "cwd": "/work", "mcpServers": [], "cursorId": "m2"}
    talk.client("cut", "session/fork", cut, id="cut")
    talk.answer("cut", {"sessionId": "s3"})


def _ending(talk: Talk) -> None:
    talk.client("close", "session/close", {"sessionId": "s0"}, id=12)
    talk.answer("close", {})
    talk.client("delete", "session/delete", {"sessionId": "s2"}, id=13)
    talk.answer("delete", {})
    talk.client("list2", "session/list", {}, id=14)
    talk.answer("list2", {"sessions": [{"sessionId": "s1", "cwd": "/work"}]})
    talk.client("custom", "_example.com/unknown", {}, id=15)
    talk.refuse("custom", -32601, "Method not found")
    talk.client("logout", "logout", {}, id=17)
    talk.answer("logout", {})
