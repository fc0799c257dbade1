"""Helpers for agents and clients: a session's updates merged, tool calls kept, permissions asked."""

from accord.compat.acp.contrib.permissions import PermissionBroker, default_permission_options
from accord.compat.acp.contrib.session_state import SessionAccumulator, SessionSnapshot, ToolCallView
from accord.compat.acp.contrib.tool_calls import ToolCallTracker, TrackedToolCallView

__all__ = [
    "PermissionBroker",
    "SessionAccumulator",
    "SessionSnapshot",
    "ToolCallTracker",
    "ToolCallView",
    "TrackedToolCallView",
    "default_permission_options",
]
