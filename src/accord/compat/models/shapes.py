"""Types that only the official Python SDK has: there each scope of a question is a class of its own."""

from __future__ import annotations

from typing import Any

from accord.schema import v1
from accord.schema.base import Json, Model, Shape, Tolerant


class ElicitationSessionScope(Shape):
    """A question that belongs to a session, and perhaps to one of its tool calls."""

    session_id: str
    tool_call_id: Tolerant[str | None] = None


class ElicitationRequestScope(Shape):
    """A question that belongs to a request of the client."""

    request_id: int | str | None


class ElicitationFormSessionMode(Shape):
    """A form, for a session."""

    session_id: str
    requested_schema: v1.ElicitationSchema
    tool_call_id: Tolerant[str | None] = None


class ElicitationFormRequestMode(Shape):
    """A form, for a request of the client."""

    request_id: int | str | None
    requested_schema: v1.ElicitationSchema


class ElicitationUrlSessionMode(Shape):
    """A URL to visit, for a session."""

    session_id: str
    elicitation_id: str
    url: str
    tool_call_id: Tolerant[str | None] = None


class ElicitationUrlRequestMode(Shape):
    """A URL to visit, for a request of the client."""

    request_id: int | str | None
    elicitation_id: str
    url: str


FormMode = ElicitationFormSessionMode | ElicitationFormRequestMode
UrlMode = ElicitationUrlSessionMode | ElicitationUrlRequestMode


class CreateFormSessionElicitationRequest(Model, tag_field="mode", tag="form"):
    """Asks the user to fill in a form, for a session."""

    message: str
    session_id: str
    requested_schema: v1.ElicitationSchema
    tool_call_id: Tolerant[str | None] = None


class CreateFormRequestElicitationRequest(Model, tag_field="mode", tag="form"):
    """Asks the user to fill in a form, for a request of the client."""

    message: str
    request_id: int | str | None
    requested_schema: v1.ElicitationSchema


class CreateUrlSessionElicitationRequest(Model, tag_field="mode", tag="url"):
    """Asks the user to visit a URL, for a session."""

    message: str
    session_id: str
    elicitation_id: str
    url: str
    tool_call_id: Tolerant[str | None] = None


class CreateUrlRequestElicitationRequest(Model, tag_field="mode", tag="url"):
    """Asks the user to visit a URL, for a request of the client."""

    message: str
    request_id: int | str | None
    elicitation_id: str
    url: str


class CreateOtherElicitationRequest(Model):
    """Asks in a mode that this version of the protocol does not know."""

    message: str
    mode: str


class OtherElicitationResponse(Model):
    """An answer of a kind that this version of the protocol does not know."""

    action: str


class ElicitationOtherPropertySchema(Shape):
    """A field of a form, of a type that this version of the protocol does not know."""

    type: str


class OtherMultiSelectItems(Shape):
    """The values of a multi-select field, of a kind that this version of the protocol does not know."""

    type: str


class SetSessionConfigOptionBooleanRequest(Model, tag_field="type", tag="boolean"):
    """Sets a config option that is on or off."""

    session_id: str
    config_id: str
    value: bool


class SetSessionConfigOptionSelectRequest(Model):
    """Sets a config option to one of its values."""

    session_id: str
    config_id: str
    value: str


class ErrorMessage(Shape):
    """An answer that is an error."""

    id: int | str | None
    error: v1.Error


class ResponseMessage(Shape):
    """An answer that is a result."""

    id: int | str | None
    result: Json


class RequestMessage(Shape):
    """A request, in its envelope."""

    id: int | str | None
    method: str
    params: Json = None


class NotificationMessage(Shape):
    """A notification, in its envelope."""

    method: str
    params: Json = None


ENVELOPES: dict[str, Any] = {
    "AgentErrorMessage": ErrorMessage,
    "AgentNotification": NotificationMessage,
    "AgentRequest": RequestMessage,
    "AgentResponseMessage": ResponseMessage,
    "ClientErrorMessage": ErrorMessage,
    "ClientNotification": NotificationMessage,
    "ClientRequest": RequestMessage,
    "ClientResponseMessage": ResponseMessage,
}
"""Messages with their envelope, by the name that each has for a side. Their params and results are plain values."""

RESPONSES = {
    "AgentResponse": ResponseMessage | ErrorMessage,
    "ClientResponse": ResponseMessage | ErrorMessage,
}

UNKNOWN_VARIANTS: dict[str, tuple[str, frozenset[str]]] = {
    "CreateOtherElicitationRequest": ("mode", frozenset({"form", "url"})),
    "ElicitationOtherPropertySchema": ("type", frozenset({"string", "number", "integer", "boolean", "array"})),
    "OtherElicitationResponse": ("action", frozenset({"accept", "decline", "cancel"})),
    "OtherMultiSelectItems": ("type", frozenset({"string"})),
}
"""Models of unknown variants: the field that names the variant, and the words that belong to known ones."""
