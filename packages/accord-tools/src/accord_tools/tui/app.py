"""`ChatApp`: the terminal client: its screen, and what its keys and commands do."""

from __future__ import annotations

from accord_tools.tui.screen_actions import ScreenActions
from accord_tools.tui.session_actions import SessionActions
from accord_tools.tui.settings import ChatOptions

__all__ = ["ChatApp", "ChatOptions"]


class ChatApp(ScreenActions, SessionActions):
    """The terminal client."""
