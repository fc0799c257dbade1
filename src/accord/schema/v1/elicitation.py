"""Elicitation: asking the user for values in a form, or to visit a URL. Page: elicitation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NewType, TypeAlias

from msgspec import UNSET, UnsetType, field

from accord.schema.base import (
    Int64,
    Model,
    Notification,
    Open,
    Request,
    Tolerant,
    Uint32,
    Uint64,
    ValidItems,
    tagged_or,
)
from accord.schema.v1.protocol import RequestId
from accord.schema.v1.session import SessionId
from accord.schema.v1.tools import ToolCallId

ElicitationId = NewType("ElicitationId", str)
StringFormat = Literal["email", "uri", "date", "date-time"]


class EnumOption(Model):
    """A value to choose, with a title for people."""

    const: str
    title: str
    description: Tolerant[str | None] = None


class StringPropertySchema(Model, tag_field="type", tag="string"):
    """A text; with `enum` or `one_of`, one of several."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    min_length: Uint32 | None = None
    max_length: Uint32 | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: Tolerant[str | None] = None
    enum: list[str] | None = None
    one_of: list[EnumOption] | None = None


class NumberPropertySchema(Model, tag_field="type", tag="number"):
    """A number."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    minimum: float | None = None
    maximum: float | None = None
    default: Tolerant[float | None] = None


class IntegerPropertySchema(Model, tag_field="type", tag="integer"):
    """A whole number."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    minimum: Int64 | None = None
    maximum: Int64 | None = None
    default: Tolerant[Int64 | None] = None


class BooleanPropertySchema(Model, tag_field="type", tag="boolean"):
    """Yes or no."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    default: Tolerant[bool | None] = None


class StringMultiSelectItems(Model, tag_field="type", tag="string"):
    """Several of these texts."""

    enum: list[str]


class TitledMultiSelectItems(Model):
    """Several of these titled values."""

    any_of: list[EnumOption]


if TYPE_CHECKING:
    MultiSelectItems: TypeAlias = Open[StringMultiSelectItems | TitledMultiSelectItems]
else:
    MultiSelectItems = tagged_or("MultiSelectItems", "type", TitledMultiSelectItems, StringMultiSelectItems)


class MultiSelectPropertySchema(Model, tag_field="type", tag="array"):
    """Several values of a set."""

    items: MultiSelectItems
    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    min_items: Uint64 | None = None
    max_items: Uint64 | None = None
    default: Tolerant[ValidItems[str] | None] = None


ElicitationPropertySchema: TypeAlias = Open[
    StringPropertySchema
    | NumberPropertySchema
    | IntegerPropertySchema
    | BooleanPropertySchema
    | MultiSelectPropertySchema
]


class ElicitationSchema(Model, tag_field="type", tag="object"):
    """A flat form: named properties, each of a simple type."""

    properties: dict[str, ElicitationPropertySchema] = {}
    required: list[str] | None = None
    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None


ElicitationContentValue: TypeAlias = Annotated[str | Int64 | float | bool | list[str], "ElicitationContentValue"]


class ElicitationAcceptAction(Model, tag_field="action", tag="accept"):
    """The user filled the form in, or agreed to visit the URL."""

    content: dict[str, ElicitationContentValue] | None = None


class ElicitationDeclineAction(Model, tag_field="action", tag="decline"):
    """The user said no."""


class ElicitationCancelAction(Model, tag_field="action", tag="cancel"):
    """The user went away without an answer."""


CreateElicitationResponse: TypeAlias = Open[
    ElicitationAcceptAction | ElicitationDeclineAction | ElicitationCancelAction
]


class CreateElicitationRequest(Request[CreateElicitationResponse], method="elicitation/create"):
    """Ask the user, in one of the modes below.

    It belongs to a session (and perhaps to one of its tool calls), or to a request that the client made.
    """

    message: str
    session_id: SessionId | None = field(default=None)
    tool_call_id: Tolerant[ToolCallId | None] = None
    request_id: RequestId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.session_id is None and self.request_id is UNSET:
            raise ValueError("an elicitation belongs to a session (sessionId) or to a request (requestId)")


class ElicitationFormMode(
    CreateElicitationRequest, kw_only=True, tag_field="mode", tag="form", needs="elicitation.form"
):
    """Fill in a form; for clients with `elicitation.form`."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(CreateElicitationRequest, kw_only=True, tag_field="mode", tag="url", needs="elicitation.url"):
    """Visit a URL, where what is secret stays between the user and that site; for clients with `elicitation.url`."""

    elicitation_id: ElicitationId
    url: str


ElicitationMode: TypeAlias = Open[ElicitationFormMode | ElicitationUrlMode]
CreateElicitationRequest.__params__ = ElicitationMode


class CompleteElicitationNotification(Notification, method="elicitation/complete"):
    """What the user was sent to a URL for is done."""

    elicitation_id: ElicitationId
