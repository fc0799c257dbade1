"""Asking the user before doing something. Page: tool-calls, Requesting Permission."""

from __future__ import annotations

from typing import Literal, NewType, TypeAlias

from accord.schema.base import Model, Open, Request, Shape
from accord.schema.v1.session import SessionId
from accord.schema.v1.tools import ToolCallUpdate

PermissionOptionId = NewType("PermissionOptionId", str)
PermissionOptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

_USUAL_NAMES: dict[PermissionOptionKind, str] = {
    "allow_once": "Allow",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}


class PermissionOption(Model):
    """One of the answers that the user can choose."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind

    @classmethod
    def of(cls, kind: PermissionOptionKind, name: str | None = None) -> PermissionOption:
        """The option of this kind, with its usual name and its kind as its id."""
        return cls(PermissionOptionId(kind), name or _USUAL_NAMES[kind], kind)


class CancelledPermissionOutcome(Shape, tag_field="outcome", tag="cancelled"):
    """The work was cancelled before the user answered."""


class SelectedPermissionOutcome(Model, tag_field="outcome", tag="selected"):
    """The user chose this option."""

    option_id: PermissionOptionId


RequestPermissionOutcome: TypeAlias = Open[CancelledPermissionOutcome | SelectedPermissionOutcome]


class RequestPermissionResponse(Model):
    """The user's answer to a request for permission."""

    outcome: RequestPermissionOutcome

    @classmethod
    def selected(cls, option: PermissionOption | PermissionOptionId) -> RequestPermissionResponse:
        return cls(SelectedPermissionOutcome(option.option_id if isinstance(option, PermissionOption) else option))

    @classmethod
    def cancelled(cls) -> RequestPermissionResponse:
        return cls(CancelledPermissionOutcome())


class RequestPermissionRequest(Request[RequestPermissionResponse], method="session/request_permission"):
    """Ask the user for permission to do something."""

    session_id: SessionId
    tool_call: ToolCallUpdate
    options: list[PermissionOption]
