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
    """One of the answers that the user can choose."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind

    @classmethod
    def of(cls, kind: v1.PermissionOptionKind, name: str | None = None) -> PermissionOption:
        """The option of this kind, with its usual name and its kind as its id."""
        usual = v1.PermissionOption.of(kind, name)
        return cls(usual.option_id, usual.name, kind)


class CancelledPermissionOutcome(Model, tag_field="outcome", tag="cancelled"):
    """The work was cancelled before the user answered."""


RequestPermissionOutcome: TypeAlias = Open[CancelledPermissionOutcome | SelectedPermissionOutcome]
"""An unknown outcome is not an approval."""


class RequestPermissionResponse(Model):
    """The user's answer to a request for permission."""

    outcome: RequestPermissionOutcome

    @classmethod
    def selected(cls, option: PermissionOption | PermissionOptionId) -> RequestPermissionResponse:
        return cls(SelectedPermissionOutcome(option.option_id if isinstance(option, PermissionOption) else option))

    @classmethod
    def cancelled(cls) -> RequestPermissionResponse:
        return cls(CancelledPermissionOutcome())


class ToolCallPermissionSubject(Model, tag_field="type", tag="tool_call"):
    """A question about a tool call, which the client applies like any of its updates."""

    tool_call: ToolCallUpdate


class CommandPermissionSubject(Model, tag_field="type", tag="command"):
    """A question about a command that the agent wants to run."""

    command: str
    cwd: AbsolutePath
    tool_call_id: Tolerant[ToolCallId | None] = None
    terminal_id: Tolerant[TerminalId | None] = None


RequestPermissionSubject: TypeAlias = Open[ToolCallPermissionSubject | CommandPermissionSubject]


class RequestPermissionRequest(Request[RequestPermissionResponse], method="session/request_permission"):
    """Ask the user for permission to do something."""

    session_id: SessionId
    title: str
    options: list[PermissionOption]
    description: Tolerant[str | None] = None
    subject: RequestPermissionSubject | None = None
