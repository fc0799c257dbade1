"""`ChatApp`: the terminal client: its screen, and what its keys and commands do."""

from __future__ import annotations

from accord.tui.screen_actions import ScreenActions
from accord.tui.session_actions import SessionActions
from accord.tui.settings import ChatOptions

__all__ = ["ChatApp", "ChatOptions"]


class ChatApp(ScreenActions, SessionActions):
    """The terminal client."""
