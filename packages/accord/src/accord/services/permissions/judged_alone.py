"""A session that stands for one in `PermissionPolicy.judge`, where rules judge a tool call and no client serves it."""

from __future__ import annotations

from pathlib import Path

from accord.project.roots import Roots
from accord.schema import v1
from accord.session import ToolCallState


class FolderOnly:
    """What rules look at in a session: its folder, and the agent's name."""

    def __init__(self, cwd: str | Path, agent: str) -> None:
        self.id = v1.SessionId("")
        self.agent = agent
        self.program = ""
        self.cwd = Path(cwd)

    @property
    def roots(self) -> Roots:
        return Roots([self.cwd])

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:  # noqa: ARG002
        return None

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        return ToolCallState(said.tool_call_id).updated(said)
