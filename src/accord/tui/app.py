"""`ChatApp`: the terminal client: its screen, and what its keys and commands do."""

from __future__ import annotations

from accord.tui.agent_actions import AgentActions
from accord.tui.chat_actions import ChatActions
from accord.tui.chat_options import ChatOptions
from accord.tui.insight_actions import InsightActions
from accord.tui.permission_actions import PermissionActions
from accord.tui.reading_actions import ReadingActions
from accord.tui.session_actions import SessionActions
from accord.tui.writing_actions import WritingActions

__all__ = ["ChatApp", "ChatOptions"]


class ChatApp(
    WritingActions, AgentActions, ReadingActions, SessionActions, PermissionActions, InsightActions, ChatActions
):
    """The terminal client."""
