"""What our agent says in version 2, where it differs from version 1: capabilities, settings, a turn, and updates.

The answer to a prompt is a receipt. A turn is the user's message told back, `running`, the work, and `idle` with the
stop reason; `Played` sends them, and a scenario is the same in both versions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord_check.client.part import OPTION_V2 as OPTION
from accord_check.client.played import Played
from accord_check.conversation import Frame

_TEXT: dict[str, Any] = {"type": "text", "text": "Done."}


def _edit(played: Played) -> Frame:
    path = str(played.folder / "notes.txt")
    return played.update(
        "tool_call_update",
        toolCallId="check-read",
        status="completed",
        title="Edit notes.txt",
        content=[
            {"type": "content", "content": _TEXT},
            {"type": "diff", "changes": [{"operation": "modify", "path": path, "fileType": "text"}]},
        ],
        locations=[{"path": path, "line": 1}],
    )


def _planned(played: Played, *entries: dict[str, Any]) -> Frame:
    return played.update("plan_update", plan={"type": "items", "planId": "check-plan", "entries": list(entries)})


UPDATES: tuple[tuple[str, Callable[[Played], Frame]], ...] = (
    ("a message", lambda it: it.say("The conformance checks of Accord say hello. ")),
    ("a thought", lambda it: it.update("agent_thought_chunk", messageId="check-thought", content=_TEXT)),
    ("a whole message", lambda it: it.update("agent_message", messageId="check-whole", content=[_TEXT])),
    ("a message that is replaced", lambda it: it.update("agent_message", messageId="check-whole", content=[])),
    (
        "a link",
        lambda it: it.update(
            "agent_message_chunk",
            messageId="check-link",
            content={"type": "resource_link", "name": "notes", "uri": "file:///notes.txt"},
        ),
    ),
    ("a user's message", lambda it: it.update("user_message", messageId="check-before", content=[_TEXT])),
    (
        "a tool call",
        lambda it: it.update(
            "tool_call_update", toolCallId="check-read", title="Read notes.txt", kind="read", status="in_progress"
        ),
    ),
    ("a tool call's update", _edit),
    (
        "a terminal",
        lambda it: it.update(
            "terminal_update", terminalId="check-terminal", command="make", cwd=str(it.folder), exitStatus=None
        ),
    ),
    (
        "a terminal's output",
        lambda it: it.update("terminal_output_chunk", terminalId="check-terminal", data="b2sK"),
    ),
    (
        "the end of a terminal's command",
        lambda it: it.update("terminal_update", terminalId="check-terminal", exitStatus={"exitCode": 0}),
    ),
    ("a plan", lambda it: _planned(it, {"content": "Check", "priority": "high", "status": "in_progress"})),
    ("an empty plan", _planned),
    (
        "commands",
        lambda it: it.update(
            "available_commands_update",
            availableCommands=[{"type": "command", "name": "check", "description": "Check"}],
        ),
    ),
    (
        "an option",
        lambda it: it.update("config_option_update", configOptions=[{**OPTION, "currentValue": "long"}]),
    ),
    ("a title", lambda it: it.update("session_info_update", title="A check")),
    ("a title that is cleared", lambda it: it.update("session_info_update", title=None)),
    (
        "the usage",
        lambda it: it.update("usage_update", used=10, size=1_000, cost={"amount": 0.01, "currency": "USD"}),
    ),
    ("work that waits for the user", lambda it: it.update("state_update", state="requires_action")),
    ("work that goes on", lambda it: it.update("state_update", state="running")),
)
"""Every stable update of version 2, within a turn."""
