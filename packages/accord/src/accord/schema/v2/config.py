"""Session config options: what a user may choose about a session, its mode included.

Differs from version 1: options and groups are named by `configId` and `groupId`, and modes are options of the category
`mode`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from accord.schema.base import Json, Model, Open, Request, Tolerant, ValidItems, choice, every
from accord.schema.v1.config import (
    SessionConfigGroupId,
    SessionConfigId,
    SessionConfigOptionCategory,
    SessionConfigSelectOption,
    SessionConfigValueId,
)
from accord.schema.v1.session import SessionId


class SessionConfigSelectGroup(Model):
    """Values of a select option under a common heading."""

    group_id: SessionConfigGroupId
    name: str
    options: Tolerant[ValidItems[SessionConfigSelectOption]]


def _flat_or_grouped(value: Json) -> Any:
    if not isinstance(value, list):
        return None
    items = cast("list[Json]", value)
    grouped = bool(items) and all(isinstance(item, dict) and "groupId" in item for item in items)
    return list[SessionConfigSelectGroup] if grouped else list[SessionConfigSelectOption]


if TYPE_CHECKING:
    SessionConfigSelectOptions: TypeAlias = list[SessionConfigSelectOption] | list[SessionConfigSelectGroup]
else:
    SessionConfigSelectOptions = choice(
        "SessionConfigSelectOptions",
        _flat_or_grouped,
        list[SessionConfigSelectOption],
        list[SessionConfigSelectGroup],
    )


class SessionConfigSelect(Model, tag_field="type", tag="select"):
    """A config option with one of several values."""

    config_id: SessionConfigId
    name: str
    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions
    description: Tolerant[str | None] = None
    category: Tolerant[SessionConfigOptionCategory | None] = None


class SessionConfigBoolean(Model, tag_field="type", tag="boolean"):
    """A config option that is on or off."""

    config_id: SessionConfigId
    name: str
    current_value: bool
    description: Tolerant[str | None] = None
    category: Tolerant[SessionConfigOptionCategory | None] = None


SessionConfigOption: TypeAlias = Annotated[Open[SessionConfigSelect | SessionConfigBoolean], every("configId", "name")]


class ConfigOptionUpdate(Model, tag_field="sessionUpdate", tag="config_option_update"):
    """All config options of the session, with their present values."""

    config_options: ValidItems[SessionConfigOption]


class SetSessionConfigOptionResponse(Model):
    """All config options after the change: changing one may change others."""

    config_options: ValidItems[SessionConfigOption]


class SetSessionConfigOptionRequest(Request[SetSessionConfigOptionResponse], method="session/set_config_option"):
    """Set a config option, in one of the forms below."""

    session_id: SessionId
    config_id: SessionConfigId


class SetSessionConfigOptionId(SetSessionConfigOptionRequest, tag_field="type", tag="id"):
    """Set a select option to one of its values."""

    value: SessionConfigValueId


class SetSessionConfigOptionBoolean(SetSessionConfigOptionRequest, tag_field="type", tag="boolean"):
    """Set an on-off option."""

    value: bool


SetSessionConfigOption: TypeAlias = Annotated[
    Open[SetSessionConfigOptionId | SetSessionConfigOptionBoolean], every("sessionId", "configId")
]
SetSessionConfigOptionRequest.__params__ = SetSessionConfigOption
