"""Session modes: how an agent goes about its work. Page: session-modes."""

from __future__ import annotations

from typing import NewType

from accord.schema.base import Model, Tolerant, ValidItems

SessionModeId = NewType("SessionModeId", str)


class SessionMode(Model):
    """A way of working that the agent offers for a session."""

    id: SessionModeId
    name: str
    description: Tolerant[str | None] = None


class SessionModeState(Model):
    """The modes of a session, and the current one."""

    current_mode_id: SessionModeId
    available_modes: Tolerant[ValidItems[SessionMode]]
