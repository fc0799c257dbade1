"""Elicitation: asking the user for values in a form, or to visit a URL.

Differs from version 1: formats and values are open, a form always has properties, a request id is never `null`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import UNSET, UnsetType

from accord.schema.base import Int64, Json, Model, Open, Request, Tolerant, Uint32, every, words
from accord.schema.v1.elicitation import (
    BooleanPropertySchema,
    ElicitationCancelAction,
    ElicitationDeclineAction,
    ElicitationId,
    EnumOption,
    IntegerPropertySchema,
    MultiSelectPropertySchema,
    NumberPropertySchema,
)
from accord.schema.v1.session import SessionId
from accord.schema.v1.tools import ToolCallId
from accord.schema.v2.protocol import RequestId

StringFormat: TypeAlias = Annotated[str, words("email", "uri", "date", "date-time")]


class StringPropertySchema(Model, tag_field="type", tag="string"):
    """A text field of a form; with `enum` or `one_of`, a choice of one value."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    min_length: Uint32 | None = None
    max_length: Uint32 | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: Tolerant[str | None] = None
    enum: list[str] | None = None
    one_of: list[EnumOption] | None = None


ElicitationPropertySchema: TypeAlias = Open[
    StringPropertySchema
    | NumberPropertySchema
    | IntegerPropertySchema
    | BooleanPropertySchema
    | MultiSelectPropertySchema
]


class ElicitationSchema(Model, tag_field="type", tag="object"):
    """A flat form: named fields, each of a simple type."""

    properties: dict[str, ElicitationPropertySchema]
    required: list[str] | None = None
    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None


ElicitationContentValue: TypeAlias = Annotated[str | Int64 | float | bool | list[str] | Json, "ElicitationContentValue"]


class ElicitationAcceptAction(Model, tag_field="action", tag="accept"):
    """The user filled in the form, or agreed to visit the URL."""

    content: dict[str, ElicitationContentValue] | None = None


CreateElicitationResponse: TypeAlias = Open[
    ElicitationAcceptAction | ElicitationDeclineAction | ElicitationCancelAction
]
"""An unknown action means the same as cancel."""


class CreateElicitationRequest(Request[CreateElicitationResponse], method="elicitation/create"):
    """Ask the user for information, in one of the modes below.

    It belongs to a session (and perhaps to one of its tool calls), or to a request that the client made.
    """

    message: str
    session_id: SessionId | None = None
    tool_call_id: Tolerant[ToolCallId | None] = None
    request_id: RequestId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.session_id is None) == (self.request_id is UNSET):
            raise ValueError("exactly one of sessionId and requestId is required")


class ElicitationFormMode(CreateElicitationRequest, kw_only=True, tag_field="mode", tag="form"):
    """Ask the user to fill in a form; for clients with `elicitation.form`."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(CreateElicitationRequest, kw_only=True, tag_field="mode", tag="url"):
    """Ask the user to visit a URL, so that secrets stay between the user and that site; needs `elicitation.url`."""

    elicitation_id: ElicitationId
    url: str


ElicitationMode: TypeAlias = Annotated[Open[ElicitationFormMode | ElicitationUrlMode], every("message")]
CreateElicitationRequest.__params__ = ElicitationMode
