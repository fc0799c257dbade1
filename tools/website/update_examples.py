"""Each session update as it is on the wire: an example for its page. The build reads each with the codec."""

from __future__ import annotations

from typing import Any

Wire = dict[str, Any]

HELLO: Wire = {"type": "text", "text": "Hello."}
DIFF_V1: Wire = {"type": "diff", "path": "/work/notes.txt", "oldText": "colour\n", "newText": "color\n"}

BOTH: dict[str, Wire] = {
    "user_message_chunk": {"content": {"type": "text", "text": "What is in here?"}, "messageId": "m1"},
    "agent_message_chunk": {"content": HELLO, "messageId": "m2"},
    "agent_thought_chunk": {"content": {"type": "text", "text": "First the notes."}, "messageId": "m3"},
    "session_info_update": {"title": "Spelling of the notes"},
    "usage_update": {"used": 12000, "size": 200000},
    "notice": {"severity": "warning", "title": "The model is slow today."},
    "plan_removed": {"planId": "plan-1"},
    "compaction_update": {"compactionId": "c1", "status": "in_progress"},
    "compaction_summary_chunk": {"compactionId": "c1", "content": {"type": "text", "text": "So far: ..."}},
    "subagent_update": {"sessionId": "child-1", "title": "Search the tests", "state": {"state": "running"}},
    "session_message": {"messageId": "m4", "recipientSessionId": "child-1", "content": [HELLO]},
    "session_message_chunk": {"messageId": "m4", "content": HELLO},
    "cursor_update": {
        "cursorId": "after-m2",
        "anchor": {"type": "agent_message", "messageId": "m2", "position": "after"},
        "capabilities": {"fork": {}},
    },
    "prompt_suggestions_update": {"suggestions": [{"prompt": [{"type": "text", "text": "Run the tests."}]}]},
}
"""Updates that are the same in both versions."""

V1: dict[str, Wire] = {
    "config_option_update": {
        "configOptions": [
            {
                "type": "select",
                "id": "model",
                "name": "Model",
                "currentValue": "small",
                "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
            }
        ]
    },
    "available_commands_update": {"availableCommands": [{"name": "plan", "description": "Plan before you work"}]},
    "tool_call": {"toolCallId": "t1", "title": "Edit notes.txt", "kind": "edit", "status": "pending"},
    "tool_call_update": {"toolCallId": "t1", "status": "completed", "content": [DIFF_V1]},
    "plan": {"entries": [{"content": "Read the notes", "priority": "medium", "status": "in_progress"}]},
    "plan_update": {"plan": {"type": "markdown", "planId": "plan-1", "content": "1. Read the notes"}},
    "current_mode_update": {"currentModeId": "ask"},
}
V2: dict[str, Wire] = {
    "config_option_update": {
        "configOptions": [
            {
                "type": "select",
                "configId": "model",
                "name": "Model",
                "currentValue": "small",
                "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
            }
        ]
    },
    "available_commands_update": {
        "availableCommands": [{"type": "command", "name": "plan", "description": "Plan before you work"}]
    },
    "user_message": {"messageId": "m1", "content": [{"type": "text", "text": "What is in here?"}]},
    "agent_message": {"messageId": "m2", "content": [HELLO]},
    "agent_thought": {"messageId": "m3", "content": [{"type": "text", "text": "First the notes."}]},
    "state_update": {"state": "idle", "stopReason": "end_turn"},
    "replay_complete": {},
    "tool_call_update": {"toolCallId": "t1", "title": "Look around", "kind": "search", "status": "in_progress"},
    "tool_call_content_chunk": {"toolCallId": "t1", "content": {"type": "content", "content": HELLO}},
    "terminal_update": {"terminalId": "term-1", "command": "make test", "cwd": "/work"},
    "terminal_output_chunk": {"terminalId": "term-1", "data": "T0sK"},
    "plan_update": {"plan": {"type": "markdown", "planId": "plan-1", "content": "1. Read the notes"}},
}

EXAMPLES: dict[int, dict[str, Wire]] = {1: {**BOTH, **V1}, 2: {**BOTH, **V2}}
