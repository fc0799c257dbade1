"""The state of a session: its updates folded into messages, tool calls, plans and settings. PURE."""

from accord.session.state import SessionState
from accord.session.values import (
    MOST_META,
    Compaction,
    ConfigOption,
    Entry,
    Message,
    Observer,
    SessionCursor,
    SessionMessageState,
    Snapshot,
    Speaker,
    Status,
    SubagentState,
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
    "SessionCursor",
    "SessionMessageState",
    "SessionState",
    "Snapshot",
    "Speaker",
    "Status",
    "SubagentState",
    "ToolCallState",
    "choices_of",
]
