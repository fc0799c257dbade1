"""A conversation of version 2 without a fault; `trace_mutants/second.py` breaks it in one place."""

from __future__ import annotations

import copy
from typing import Any

from tests.check.healthy import Talk, cursor_at, text

OPTIONS = [
    {
        "configId": "model",
        "name": "Model",
        "type": "select",
        "category": "model",
        "currentValue": "big",
        "options": [{"groupId": "all", "name": "All", "options": [{"value": "big", "name": "Big"}]}],
    },
    {"configId": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
]
QUESTION: dict[str, Any] = {
    "sessionId": "s1",
    "title": "Edit the file?",
    "subject": {"type": "tool_call", "toolCall": {"toolCallId": "t1", "title": "Edit"}},
    "options": [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ],
}
COMMANDS = [
    {"type": "command", "name": "web", "description": "Search"},
    {"type": "skill", "name": "review", "description": "Review a change", "path": "/skills/review/SKILL.md"},
]
SKILL = {"type": "skill", "name": "review"}
SERVER = {"type": "stdio", "name": "files", "command": "/usr/bin/files"}


def key(name: str) -> dict[str, str]:
    """The member that makes a prompt safe to send again."""
    return {"idempotencyKey": f"key of {name}"}


def healthy_v2() -> Talk:
    """The whole conversation."""
    talk = Talk()
    _opening(talk)
    _first_work(talk)
    _in_background(talk)
    _waiting_prompt(talk)
    _of_itself(talk)
    _past(talk)
    return talk.copy()


def _opening(talk: Talk) -> None:
    info = {"name": "peer", "version": "1"}
    session = {"promptSuggestions": {}, "commands": {"skill": {}}}
    capabilities = {"elicitation": {"form": {}}, "auth": {"terminal": {}}, "session": session}
    talk.client("initialize", "initialize", {"protocolVersion": 2, "capabilities": capabilities, "info": info}, id=0)
    offers = {
        "session": {"mcp": {"stdio": {}}, "delete": {}, "prompt": {"image": {}, "skill": {}}, "fork": {}},
        "auth": {},
    }
    ways = [{"type": "agent", "methodId": "key", "name": "Key"}]
    talk.answer("initialize", {"protocolVersion": 2, "capabilities": offers, "info": info, "authMethods": ways})
    talk.client("login", "auth/login", {"methodId": "key"}, id="login")
    talk.answer("login", {})
    talk.client("new", "session/new", {"cwd": "/work", "mcpServers": [SERVER]}, id=1)
    talk.answer("new", {"sessionId": "s1", "configOptions": copy.deepcopy(OPTIONS)})
    talk.update("first idle", "state_update", state="idle")
    talk.update("commands", "available_commands_update", availableCommands=copy.deepcopy(COMMANDS))


def _first_work(talk: Talk) -> None:
    """The echo, the receipt, the work, and its end."""
    talk.client("prompt", "session/prompt", {"sessionId": "s1", "prompt": [text("go")], **key("go")}, id=2)
    talk.update("echo", "user_message", messageId="u1", content=[text("go")])
    talk.answer("prompt", {"messageId": "u1"})
    talk.update("running", "state_update", state="running")
    talk.update("chunk", "agent_message_chunk", messageId="a1", content=text("I look"))
    talk.update("tool", "tool_call_update", toolCallId="t1", title="Edit", kind="edit", status="pending")
    talk.agent("ask", "session/request_permission", copy.deepcopy(QUESTION), id=0)
    talk.update("waits", "state_update", state="requires_action")
    talk.answer("ask", {"outcome": {"outcome": "selected", "optionId": "yes"}})
    talk.update("goes on", "state_update", state="running")
    talk.update("terminal", "terminal_update", terminalId="x1", command="make", cwd="/work")
    talk.update("output", "terminal_output_chunk", terminalId="x1", data="b2sK")
    talk.update("exited", "terminal_update", terminalId="x1", exitStatus={"exitCode": 0})
    change = {"operation": "move", "oldPath": "/work/a.py", "path": "/work/b.py", "fileType": "text"}
    talk.update(
        "done", "tool_call_update", toolCallId="t1", status="completed", content=[{"type": "diff", "changes": [change]}]
    )
    talk.update("usage", "usage_update", used=10, size=100)
    talk.update("end", "state_update", state="idle", stopReason="end_turn")
    talk.update("title", "session_info_update", title="A title")
    talk.update("cursor", "cursor_update", **cursor_at("a1"))
    talk.update("suggests", "prompt_suggestions_update", suggestions=[{"prompt": [text("And now?")]}])
    talk.client("cut", "session/fork", {"sessionId": "s1", "cwd": "/work", "cursorId": "a1"}, id="cut")
    talk.answer("cut", {"sessionId": "s2"})


def _in_background(talk: Talk) -> None:
    """A prompt whose answer comes last; a tool call goes on after it, and is cancelled alone."""
    talk.client(
        "prompt2", "session/prompt", {"sessionId": "s1", "prompt": [dict(SKILL), text("watch")], **key("watch")}, id=3
    )
    talk.update("running2", "state_update", state="running")
    talk.update("echo2", "user_message_chunk", messageId="u2", content=text("watch"))
    offer = {"cancel": {}}
    talk.update("watch", "tool_call_update", toolCallId="t2", title="Watch", status="in_progress", capabilities=offer)
    listed = [{"type": "tool_call", "toolCallId": "t2"}]
    talk.update("end2", "state_update", state="idle", stopReason="end_turn", background=listed)
    talk.answer("prompt2", {"messageId": "u2"})
    talk.client("stop", "tool_call/cancel", {"sessionId": "s1", "toolCallId": "t2"}, id=4)
    talk.answer("stop", {})
    talk.update("stopped", "tool_call_update", toolCallId="t2", status="cancelled", capabilities=None)
    talk.update("none", "state_update", state="idle", background=[])


def _waiting_prompt(talk: Talk) -> None:
    """Work that is cancelled, with a prompt that waits for its end."""
    talk.client("prompt3", "session/prompt", {"sessionId": "s1", "prompt": [text("slow")], **key("slow")}, id=5)
    talk.update("echo3", "user_message", messageId="u3", content=[text("slow")])
    talk.answer("prompt3", {"messageId": "u3"})
    talk.update("running3", "state_update", state="running")
    talk.update("tool3", "tool_call_update", toolCallId="t3", title="Run")
    talk.client("prompt4", "session/prompt", {"sessionId": "s1", "prompt": [text("wait")], **key("wait")}, id=6)
    talk.client("cancel", "session/cancel", {"sessionId": "s1"})
    talk.refuse("prompt4", -32800, "cancelled")
    talk.update("cancelled3", "tool_call_update", toolCallId="t3", status="cancelled")
    talk.update("end3", "state_update", state="idle", stopReason="cancelled")


def _of_itself(talk: Talk) -> None:
    """Work that no prompt asked for, which fails; and a prompt that is inserted into it."""
    talk.update("running5", "state_update", state="running")
    talk.client("prompt5", "session/prompt", {"sessionId": "s1", "prompt": [text("more")], **key("more")}, id=7)
    talk.update("echo5", "user_message", messageId="u5", content=[text("more")])
    talk.answer("prompt5", {"messageId": "u5"})
    talk.update("chunk5", "agent_message", messageId="a5", content=[text("so")])
    failure = {"code": -32603, "message": "the model is silent"}
    talk.update("end5", "state_update", state="idle", stopReason="error", error=failure)


def _past(talk: Talk) -> None:
    talk.client("resume", "session/resume", {"sessionId": "s1", "cwd": "/work", "replayFrom": {"type": "start"}}, id=8)
    talk.update("replayed", "user_message", messageId="u1", content=[text("go")])
    talk.update("replayed2", "agent_message", messageId="a1", content=[])
    talk.update("replayed3", "agent_message_chunk", messageId="a1", content=text("I look"))
    talk.update("replayed4", "tool_call_update", toolCallId="t1", title="Edit", status="pending", content=None)
    talk.update("complete", "replay_complete")
    talk.update("state", "state_update", state="idle")
    talk.answer("resume", {"configOptions": copy.deepcopy(OPTIONS)})
    talk.client("prompt6", "session/prompt", {"sessionId": "s1", "prompt": [text("last")], **key("last")}, id=9)
    talk.update("echo6", "user_message", messageId="u6", content=[text("last")])
    talk.answer("prompt6", {"messageId": "u6"})
    talk.update("running6", "state_update", state="running")
    talk.client("close", "session/close", {"sessionId": "s1"}, id=10)
    talk.update("end6", "state_update", state="idle", stopReason="cancelled")
    talk.answer("close", {})
    talk.client("delete", "session/delete", {"sessionId": "s1"}, id=11)
    talk.answer("delete", {})
