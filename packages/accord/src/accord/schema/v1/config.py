"""Session config options: what a user may choose about a session. Page: session-config-options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NewType, TypeAlias, cast

from accord.schema.base import Json, Model, Open, Tolerant, ValidItems, choice, words

SessionConfigId = NewType("SessionConfigId", str)
SessionConfigValueId = NewType("SessionConfigValueId", str)
SessionConfigGroupId = NewType("SessionConfigGroupId", str)

SessionConfigOptionCategory: TypeAlias = Annotated[str, words("mode", "model", "model_config", "thought_level")]
"""What an option is about, so that a client can place it well. Names of one's own begin with `_`."""


class SessionConfigSelectOption(Model):
    """One value of a select option."""

    value: SessionConfigValueId
    name: str
    description: Tolerant[str | None] = None


class SessionConfigSelectGroup(Model):
    """Values of a select option under a common heading."""

    group: SessionConfigGroupId
    name: str
    options: Tolerant[ValidItems[SessionConfigSelectOption]]


def _flat_or_grouped(value: Json) -> Any:
    if not isinstance(value, list):
        return None
    items = cast("list[Json]", value)
    grouped = bool(items) and all(isinstance(item, dict) and "group" in item for item in items)
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

    id: SessionConfigId
    name: str
    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions
    description: Tolerant[str | None] = None
    category: Tolerant[SessionConfigOptionCategory | None] = None


class SessionConfigBoolean(Model, tag_field="type", tag="boolean"):
    """A config option that is on or off; only for clients that declared `session.configOptions.boolean`."""

    id: SessionConfigId
    name: str
    current_value: bool
    description: Tolerant[str | None] = None
    category: Tolerant[SessionConfigOptionCategory | None] = None


SessionConfigOption: TypeAlias = Open[SessionConfigSelect | SessionConfigBoolean]


class SessionConfigOptionsCapabilities(Model):
    """The kinds of config option, besides select, that a client can show."""

    boolean: Tolerant[BooleanConfigOptionCapabilities | None] = None


class BooleanConfigOptionCapabilities(Model):
    """Declares that the client can show on-off options."""
