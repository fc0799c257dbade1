"""What a session lets its user choose: config options, and modes, which are one of them.

There is one truth, the config options. The modes of the protocol's older pages are a view of the first option of
category `mode`, so that the two cannot differ: whoever changes one, the client is told of the other.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import msgspec

from accord.agent.updates import SessionUpdates
from accord.errors import RequestError
from accord.schema import v1

MODE = "mode"
CATEGORIES = ("mode", "model", "model_config", "thought_level")

Value: TypeAlias = v1.SessionConfigSelectOption | str | tuple[str, str] | tuple[str, str, str]
"""A value to choose: its id, or its id and name, or its id, name and description."""

Values: TypeAlias = Sequence[Value] | Mapping[str, Sequence[Value]]
"""Values to choose from; by heading, if there are many."""


class Select(msgspec.Struct, frozen=True):
    """An option with one of several values."""

    id: str
    name: str
    groups: dict[str, list[v1.SessionConfigSelectOption]]
    grouped: bool
    value: str
    category: str | None
    description: str | None

    @property
    def values(self) -> list[v1.SessionConfigSelectOption]:
        return [value for group in self.groups.values() for value in group]

    def takes(self, value: str | bool) -> bool:
        return any(it.value == value for it in self.values)

    def chosen(self, value: str | bool) -> Select:
        return msgspec.structs.replace(self, value=str(value))

    def option(self) -> v1.SessionConfigSelect:
        options = (
            [v1.SessionConfigSelectGroup(v1.SessionConfigGroupId(name), name, it) for name, it in self.groups.items()]
            if self.grouped
            else self.values
        )
        current = v1.SessionConfigValueId(self.value)
        return v1.SessionConfigSelect(
            v1.SessionConfigId(self.id), self.name, current, options, self.description, self.category
        )


class Switch(msgspec.Struct, frozen=True):
    """An option that is on or off."""

    id: str
    name: str
    value: bool
    category: str | None
    description: str | None

    def takes(self, value: str | bool) -> bool:
        return isinstance(value, bool)

    def chosen(self, value: str | bool) -> Switch:
        return msgspec.structs.replace(self, value=bool(value))

    def option(self) -> v1.SessionConfigBoolean:
        return v1.SessionConfigBoolean(
            v1.SessionConfigId(self.id), self.name, self.value, self.description, self.category
        )


class Config:
    """A session's config options: `session.config["model"]`.

    Changing them tells the client, except where an answer to it will.
    """

    def __init__(self, updates: SessionUpdates, on_config: Callable[[str, str | bool], Awaitable[None]]) -> None:
        self._updates = updates
        self._on_config = on_config
        self._options: dict[str, Select | Switch] = {}
        self._quiet = 0

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
        """Offer one of several values; the first is chosen unless `value` says otherwise. Again: offer others.

        Clients show options in the order in which they were offered, so begin with what matters most. `category` is
        one of the protocol's, or a word of your own behind an underscore.
        """
        _check_category(category)
        grouped = isinstance(values, Mapping)
        groups = {"": values} if not isinstance(values, Mapping) else values
        listed = {heading: [_value(it) for it in group] for heading, group in groups.items()}
        ids = [it.value for group in listed.values() for it in group]
        if len(set(ids)) < len(ids) or not ids:
            raise ValueError(f"option {option_id!r} must have at least one value, and their ids must differ: got {ids}")
        kept = self._options[option_id].value if option_id in self._options else None
        chosen = value if value is not None else kept if kept in ids else ids[0]
        offered = Select(option_id, name, listed, grouped, str(chosen), category, description)
        if not offered.takes(offered.value):
            raise ValueError(f"value of option {option_id!r} must be one of {', '.join(ids)}, got {chosen!r}")
        await self._put(offered)

    async def switch(
        self,
        option_id: str,
        name: str,
        *,
        value: bool | None = None,
        category: str | None = None,
        description: str | None = None,
    ) -> None:
        """Offer something to turn on and off; it is off unless `value` says otherwise.

        A client that knows no such options sees none, and the value holds.
        """
        _check_category(category)
        kept = self._options[option_id].value if option_id in self._options else None
        value = kept is True if value is None else value
        await self._put(Switch(option_id, name, value, category, description))

    async def remove(self, option_id: str) -> None:
        """No longer offer this option."""
        async with self._telling():
            del self._options[option_id]

    # Reading

    def __getitem__(self, option_id: str) -> str | bool:
        """The value chosen now."""
        return self._options[option_id].value

    def __contains__(self, option_id: str) -> bool:
        return option_id in self._options

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def values(self) -> dict[str, str | bool]:
        """Every option's value."""
        return {option_id: option.value for option_id, option in self._options.items()}

    # Changing

    async def set(self, option_id: str, value: str | bool) -> None:
        """Choose this value, as the agent."""
        async with self._telling():
            self._choose(option_id, value)

    async def set_by_client(self, option_id: str, value: str | bool, *, answered: bool = True) -> None:
        """Choose this value, as the user does; the author may refuse it, and change others.

        `answered` says that the answer will hold all options.
        """
        if option_id not in self._options or not self._is_shown(self._options[option_id]):
            raise RequestError.invalid_params("unknown config option", configId=option_id)
        before = dict(self._options)
        async with self._telling(options=not answered):
            try:
                self._choose(option_id, value)
                await self._on_config(option_id, value)
            except BaseException:
                self._options = before
                raise

    def restore(self, values: Mapping[str, str | bool]) -> None:
        """Choose the values that were chosen before, as far as they are still offered."""
        for option_id, value in values.items():
            if option_id in self._options and self._options[option_id].takes(value):
                self._options[option_id] = self._options[option_id].chosen(value)

    def _choose(self, option_id: str, value: str | bool) -> None:
        option = self._options[option_id]
        if not option.takes(value):
            raise RequestError.invalid_params(
                "this config option does not have this value", configId=option_id, value=value
            )
        self._options[option_id] = option.chosen(value)

    async def _put(self, option: Select | Switch) -> None:
        async with self._telling():
            self._options[option.id] = option

    # Telling

    def options(self) -> list[v1.SessionConfigOption]:
        """All options that the client can show, as they are now."""
        return [option.option() for option in self._options.values() if self._is_shown(option)]

    def mode(self) -> Select | None:
        """The option that is the session's mode."""
        return next((it for it in self._options.values() if isinstance(it, Select) and it.category == MODE), None)

    def _is_shown(self, option: Select | Switch) -> bool:
        # rfd-boolean-config-option: boolean options only where the client declared them.
        return isinstance(option, Select) or self._updates.client_shows("session.config_options.boolean")

    @asynccontextmanager
    async def _telling(self, *, options: bool = True) -> AsyncGenerator[None]:
        """The client is told afterwards of what was changed inside, unless it is about to learn it anyway."""
        before, mode = dict(self._options), self.mode()
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1
        if self._quiet or not self._updates.is_open or self._options == before:
            return
        await self._updates.keep_settings(self.values())
        if options:
            await self._updates.send(v1.ConfigOptionUpdate(self.options()))
        now = self.mode()
        if now is not None and (mode is None or mode.value != now.value):
            await self._updates.send(v1.CurrentModeUpdate(v1.SessionModeId(now.value)))


class Modes:
    """A session's modes: the config option of category `mode`, under its older name."""

    def __init__(self, config: Config) -> None:
        self._config = config

    async def offer(self, modes: Sequence[Value], *, current: str | None = None, name: str = "Mode") -> None:
        """Offer these ways of working; the first is on unless `current` says otherwise."""
        await self._config.select(MODE, name, modes, value=current, category=MODE)

    @property
    def current(self) -> str | None:
        """The mode that is on."""
        mode = self._config.mode()
        return None if mode is None else mode.value

    async def set(self, mode_id: str) -> None:
        """Change the mode, as the agent."""
        await self._config.set(self._option(mode_id).id, mode_id)

    async def set_by_client(self, mode_id: str) -> None:
        await self._config.set_by_client(self._option(mode_id).id, mode_id, answered=False)

    def state(self) -> v1.SessionModeState | None:
        mode = self._config.mode()
        if mode is None:
            return None
        available = [v1.SessionMode(v1.SessionModeId(it.value), it.name, it.description) for it in mode.values]
        return v1.SessionModeState(v1.SessionModeId(mode.value), available)

    def _option(self, mode_id: str) -> Select:
        mode = self._config.mode()
        if mode is None or not mode.takes(mode_id):
            raise RequestError.invalid_params("unknown mode", modeId=mode_id)
        return mode


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
