"""What a session lets its user choose: config options, and modes and models, which are two of them.

Only the config options hold values. The modes of the protocol's older pages are a view of the first option of category
`mode`, so the two cannot differ: the client is told of both whenever one changes. In the same way `models` are a view
of the first option of category `model`, for clients from before config options; the protocol has no update for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from accord.agent.config_options import MODE, MODEL, ConfigOptions, Select, Switch
from accord.arguments import wrong_type
from accord.schema import v1

CATEGORIES = ("mode", "model", "model_config", "thought_level")

Value: TypeAlias = v1.SessionConfigSelectOption | str | tuple[str, str] | tuple[str, str, str]
"""A value to choose: its id, or its id and name, or its id, name and description."""

Values: TypeAlias = Sequence[Value] | Mapping[str, Sequence[Value]]
"""Values to choose from; by heading, if there are many."""


class Config:
    """A session's config options: `session.config["model"]`.

    A change is sent to the client, except where the answer to a request of the client will contain it.
    """

    def __init__(self, options: ConfigOptions) -> None:
        self._options = options

    # Offering

    async def select(
        self,
        option_id: str,
        name: str,
        values: Values,
        *,
        value: str | None = None,
        category: str | None = None,
        description: str | None = None,
    ) -> None:
        """Offer a choice of several values; the first is chosen unless `value` names another.

        Calling it again for the same option offers other values. Clients show options in the order in which they were
        offered, so offer the most important first. `category` is one of the protocol's, or a word of your own that
        begins with an underscore.
        """
        _check_category(category)
        grouped = isinstance(values, Mapping)
        groups = {"": values} if not isinstance(values, Mapping) else values
        if text := next((it for it in groups.values() if isinstance(it, str)), None):
            raise wrong_type(
                f"config.select({option_id!r}, values)",
                "a list of values, or lists of values by heading",
                text,
                'for an id with a name, write a pair: [("id", "Name")]',
            )
        listed = {heading: [_value(it) for it in group] for heading, group in groups.items()}
        ids = [it.value for group in listed.values() for it in group]
        if len(set(ids)) < len(ids) or not ids:
            raise ValueError(f"option {option_id!r} must have at least one value, and their ids must differ: got {ids}")
        kept = self._options.value_of(option_id)
        chosen = value if value is not None else kept if kept in ids else ids[0]
        offered = Select(option_id, name, listed, grouped, str(chosen), category, description)
        if not offered.takes(offered.value):
            raise ValueError(f"value of option {option_id!r} must be one of {', '.join(ids)}, got {chosen!r}")
        await self._options.put(offered)

    async def switch(
        self,
        option_id: str,
        name: str,
        *,
        value: bool | None = None,
        category: str | None = None,
        description: str | None = None,
    ) -> None:
        """Offer an option to turn on and off; it is off unless `value` is True.

        A client that does not support boolean options does not see it, and its value stays as it is.
        """
        _check_category(category)
        kept = self._options.value_of(option_id)
        value = kept is True if value is None else value
        await self._options.put(Switch(option_id, name, value, category, description))

    async def remove(self, option_id: str) -> None:
        """Stop offering this option."""
        await self._options.remove(option_id)

    # Reading

    def __getitem__(self, option_id: str) -> str | bool:
        """The current value."""
        return self._options.offered[option_id].value

    def __contains__(self, option_id: str) -> bool:
        return option_id in self._options.offered

    def __iter__(self) -> Iterator[str]:
        return iter(self._options.offered)

    def values(self) -> dict[str, str | bool]:
        """The value of every option."""
        return self._options.values()

    # Changing

    async def set(self, option_id: str, value: str | bool) -> None:
        """Choose this value for the agent; the client is told."""
        await self._options.set(option_id, value)


class _Choice:
    """The first config option of one category, which older clients know by a name of its own."""

    _category = ""
    _name = ""

    def __init__(self, config: Config, options: ConfigOptions) -> None:
        self._config = config
        self._options = options

    async def offer(self, values: Values, *, current: str | None = None, name: str | None = None) -> None:
        """Offer these values, by heading if there are many; the first is chosen unless `current` names another.

        `name` is what clients show above them.
        """
        category = self._category
        await self._config.select(category, name or self._name, values, value=current, category=category)

    @property
    def current(self) -> str | None:
        """The id of the current value; None if the session offers none."""
        option = self._options.of_category(self._category)
        return None if option is None else option.value

    async def set(self, value_id: str) -> None:
        """Choose this value for the agent; the client is told."""
        await self._options.set(self._options.option_with(self._category, value_id).id, value_id)


class Modes(_Choice):
    """A session's modes: the config option of category `mode`, under its older name."""

    _category = MODE
    _name = "Mode"


class Models(_Choice):
    """A session's models: the config option of category `model`, which older clients know as `models`."""

    _category = MODEL
    _name = "Model"


def _check_category(category: str | None) -> None:
    # session-config-options, Option Categories: names without an underscore are the protocol's.
    if category is not None and category not in CATEGORIES and not category.startswith("_"):
        raise ValueError(
            f"category must be one of {', '.join(CATEGORIES)}, or begin with an underscore, got {category!r}"
        )


def _value(value: Value) -> v1.SessionConfigSelectOption:
    if isinstance(value, v1.SessionConfigSelectOption):
        return value
    parts = (value,) if isinstance(value, str) else value
    name = parts[1] if len(parts) > 1 else parts[0]
    return v1.SessionConfigSelectOption(v1.SessionConfigValueId(parts[0]), name, parts[2] if len(parts) > 2 else None)
