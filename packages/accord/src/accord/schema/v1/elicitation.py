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
    """A value to choose in a form, with a title for people."""

    const: str
    title: str
    description: Tolerant[str | None] = None


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


class NumberPropertySchema(Model, tag_field="type", tag="number"):
    """A number field of a form."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    minimum: float | None = None
    maximum: float | None = None
    default: Tolerant[float | None] = None


class IntegerPropertySchema(Model, tag_field="type", tag="integer"):
    """A whole-number field of a form."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    minimum: Int64 | None = None
    maximum: Int64 | None = None
    default: Tolerant[Int64 | None] = None


class BooleanPropertySchema(Model, tag_field="type", tag="boolean"):
    """A yes-or-no field of a form."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    default: Tolerant[bool | None] = None


class StringMultiSelectItems(Model, tag_field="type", tag="string"):
    """The texts that a multi-select field offers."""

    enum: list[str]


class TitledMultiSelectItems(Model):
    """The titled values that a multi-select field offers."""

    any_of: list[EnumOption]


if TYPE_CHECKING:
    MultiSelectItems: TypeAlias = Open[StringMultiSelectItems | TitledMultiSelectItems]
else:
    MultiSelectItems = tagged_or("MultiSelectItems", "type", TitledMultiSelectItems, StringMultiSelectItems)


class MultiSelectPropertySchema(Model, tag_field="type", tag="array"):
    """A field of a form that takes several values of a set."""

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
    """A flat form: named fields, each of a simple type."""

    properties: dict[str, ElicitationPropertySchema] = {}
    required: list[str] | None = None
    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None


ElicitationContentValue: TypeAlias = Annotated[str | Int64 | float | bool | list[str], "ElicitationContentValue"]


class ElicitationAcceptAction(Model, tag_field="action", tag="accept"):
    """The user filled in the form, or agreed to visit the URL."""

    content: dict[str, ElicitationContentValue] | None = None


class ElicitationDeclineAction(Model, tag_field="action", tag="decline"):
    """The user declined to answer."""


class ElicitationCancelAction(Model, tag_field="action", tag="cancel"):
    """The user dismissed the question without an answer."""


CreateElicitationResponse: TypeAlias = Open[
    ElicitationAcceptAction | ElicitationDeclineAction | ElicitationCancelAction
]


class CreateElicitationRequest(Request[CreateElicitationResponse], method="elicitation/create"):
    """Ask the user for information, in one of the modes below.

    It belongs to a session (and perhaps to one of its tool calls), or to a request that the client made.
    """

    message: str
    session_id: SessionId | None = field(default=None)
    tool_call_id: Tolerant[ToolCallId | None] = None
    request_id: RequestId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.session_id is None and self.request_id is UNSET:
            raise ValueError("sessionId or requestId is required")


class ElicitationFormMode(
    CreateElicitationRequest, kw_only=True, tag_field="mode", tag="form", needs="elicitation.form"
):
    """Ask the user to fill in a form; for clients with `elicitation.form`."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(CreateElicitationRequest, kw_only=True, tag_field="mode", tag="url", needs="elicitation.url"):
    """Ask the user to visit a URL, so that secrets stay between the user and that site; needs `elicitation.url`."""

    elicitation_id: ElicitationId
    url: str


ElicitationMode: TypeAlias = Open[ElicitationFormMode | ElicitationUrlMode]
CreateElicitationRequest.__params__ = ElicitationMode


class CompleteElicitationNotification(Notification, method="elicitation/complete"):
    """Tells the client that the user has finished at the URL of an elicitation."""

    elicitation_id: ElicitationId
