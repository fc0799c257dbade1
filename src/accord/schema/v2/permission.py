"""Asking the user before doing something. Proposal: permission-requests.

Differs from version 1: the question has a title of its own, and what it is about is an open union, or left out.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Open, Request, Tolerant, words
from accord.schema.v1 import permission as v1
from accord.schema.v1.permission import PermissionOptionId, SelectedPermissionOutcome
from accord.schema.v1.session import SessionId
from accord.schema.v1.terminal import TerminalId
from accord.schema.v1.tools import ToolCallId
from accord.schema.v2.protocol import AbsolutePath
from accord.schema.v2.tools import ToolCallUpdate

PermissionOptionKind: TypeAlias = Annotated[str, words("allow_once", "allow_always", "reject_once", "reject_always")]


class PermissionOption(Model):
    """One answer that the user may give."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind

    @classmethod
    def of(cls, kind: v1.PermissionOptionKind, name: str | None = None) -> PermissionOption:
        """The option of this kind, with its usual name and its kind as its id."""
        usual = v1.PermissionOption.of(kind, name)
        return cls(usual.option_id, usual.name, kind)


class CancelledPermissionOutcome(Model, tag_field="outcome", tag="cancelled"):
    """Not approved: the work was cancelled, or nobody answered."""


RequestPermissionOutcome: TypeAlias = Open[CancelledPermissionOutcome | SelectedPermissionOutcome]
"""An outcome that nobody knows is no approval."""


class RequestPermissionResponse(Model):
    """What the user said."""

    outcome: RequestPermissionOutcome

    @classmethod
    def selected(cls, option: PermissionOption | PermissionOptionId) -> RequestPermissionResponse:
        return cls(SelectedPermissionOutcome(option.option_id if isinstance(option, PermissionOption) else option))

    @classmethod
    def cancelled(cls) -> RequestPermissionResponse:
        return cls(CancelledPermissionOutcome())


class ToolCallPermissionSubject(Model, tag_field="type", tag="tool_call"):
    """About a tool call, which the client takes over like any update of it."""

    tool_call: ToolCallUpdate


class CommandPermissionSubject(Model, tag_field="type", tag="command"):
    """About a command that would be run."""

    command: str
    cwd: AbsolutePath
    tool_call_id: Tolerant[ToolCallId | None] = None
    terminal_id: Tolerant[TerminalId | None] = None


RequestPermissionSubject: TypeAlias = Open[ToolCallPermissionSubject | CommandPermissionSubject]


class RequestPermissionRequest(Request[RequestPermissionResponse], method="session/request_permission"):
    """May the agent do this?"""

    session_id: SessionId
    title: str
    options: list[PermissionOption]
    description: Tolerant[str | None] = None
    subject: RequestPermissionSubject | None = None
