"""The state of a session: its updates folded into messages, tool calls, plans and settings. PURE."""

from accord.state.session_state import SessionState
from accord.state.subagents import SessionMessageState, Subagent
from accord.state.values import (
    MOST_META,
    Compaction,
    ConfigOption,
    Entry,
    Message,
    Observer,
    Snapshot,
    Speaker,
    Status,
    ToolCallState,
    choices_of,
)

__all__ = [
    "MOST_META",
    "Compaction",
    "ConfigOption",
    "Entry",
    "Message",
    "Observer",
    "SessionMessageState",
    "SessionState",
    "Snapshot",
    "Speaker",
    "Status",
    "Subagent",
    "ToolCallState",
    "choices_of",
]
