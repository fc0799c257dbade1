"""`ConfigOptions`: the config options of an open session, their values, and what the client is told of them.

Authors hold its faces, `Config`, `Modes` and `Models`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec

from accord.agent.updates import SessionUpdates
from accord.errors import RequestError
from accord.schema import v1

MODE = "mode"
"""The category of the option that is the session's mode."""

MODEL = "model"
"""The category of the option that is the session's model."""


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


class ConfigOptions:
    """A session's config options. Changing them tells the client, except where an answer to it will."""

    def __init__(self, updates: SessionUpdates, on_config: Callable[[str, str | bool], Awaitable[None]]) -> None:
        self.offered: dict[str, Select | Switch] = {}
        """The options by id, in the order in which they were offered."""
        self._updates = updates
        self._on_config = on_config
        self._quiet = 0

    def value_of(self, option_id: str) -> str | bool | None:
        """The value of this option; None if it is not offered."""
        option = self.offered.get(option_id)
        return None if option is None else option.value

    def values(self) -> dict[str, str | bool]:
        """The value of every option."""
        return {option_id: option.value for option_id, option in self.offered.items()}

    # Changing

    async def put(self, option: Select | Switch) -> None:
        """Offer this option, or replace the one with its id."""
        async with self._telling():
            self.offered[option.id] = option

    async def remove(self, option_id: str) -> None:
        """Stop offering this option."""
        async with self._telling():
            del self.offered[option_id]

    async def set(self, option_id: str, value: str | bool) -> None:
        """Choose this value for the agent."""
        async with self._telling():
            self._choose(option_id, value)

    async def set_by_client(self, option_id: str, value: str | bool, *, answered: bool = True) -> None:
        """Choose this value for the user. The author's function may refuse it and change other options.

        `answered` means that the answer to the client contains all options, so that no update is needed.
        """
        if option_id not in self.offered or not self._is_shown(self.offered[option_id]):
            raise RequestError.invalid_params("unknown config option", configId=option_id)
        before = dict(self.offered)
        async with self._telling(options=not answered):
            try:
                self._choose(option_id, value)
                await self._on_config(option_id, value)
            except BaseException:
                self.offered = before
                raise

    async def set_mode_by_client(self, mode_id: str) -> None:
        """Choose this mode for the user."""
        await self.set_by_client(self.option_with(MODE, mode_id).id, mode_id, answered=False)

    async def set_model_by_client(self, model_id: str) -> None:
        """Choose this model for the user."""
        await self.set_by_client(self.option_with(MODEL, model_id).id, model_id, answered=False)

    def restore(self, values: Mapping[str, str | bool]) -> None:
        """Choose the values that were saved with the session, if they are still offered."""
        for option_id, value in values.items():
            if option_id in self.offered and self.offered[option_id].takes(value):
                self.offered[option_id] = self.offered[option_id].chosen(value)

    def _choose(self, option_id: str, value: str | bool) -> None:
        option = self.offered[option_id]
        if not option.takes(value):
            raise RequestError.invalid_params(
                "this config option does not have this value", configId=option_id, value=value
            )
        self.offered[option_id] = option.chosen(value)

    # Telling

    def options(self) -> list[v1.SessionConfigOption]:
        """The options that the client can show, with their current values."""
        return [option.option() for option in self.offered.values() if self._is_shown(option)]

    def of_category(self, category: str) -> Select | None:
        """The first option of this category that has several values, if there is one."""
        return next((it for it in self.offered.values() if isinstance(it, Select) and it.category == category), None)

    def option_with(self, category: str, value: str) -> Select:
        """The first option of this category; RequestError if it does not have this value."""
        option = self.of_category(category)
        if option is None or not option.takes(value):
            raise RequestError.invalid_params(f"unknown {category}", **{f"{category}Id": value})
        return option

    def mode_state(self) -> v1.SessionModeState | None:
        """The modes and the current one, for the answer that opens a session."""
        mode = self.of_category(MODE)
        if mode is None:
            return None
        available = [v1.SessionMode(v1.SessionModeId(it.value), it.name, it.description) for it in mode.values]
        return v1.SessionModeState(v1.SessionModeId(mode.value), available)

    def model_state(self) -> v1.SessionModelState | None:
        """The models and the current one, for clients that do not know config options."""
        model = self.of_category(MODEL)
        if model is None:
            return None
        available = [v1.ModelInfo(v1.ModelId(it.value), it.name, it.description) for it in model.values]
        return v1.SessionModelState(v1.ModelId(model.value), available)

    def _is_shown(self, option: Select | Switch) -> bool:
        # rfd-boolean-config-option: boolean options only where the client declared them.
        return isinstance(option, Select) or self._updates.client_shows("session.config_options.boolean")

    @asynccontextmanager
    async def _telling(self, *, options: bool = True) -> AsyncGenerator[None]:
        """Tell the client at the end what changed inside the block, unless an answer will tell it."""
        before, mode = dict(self.offered), self.of_category(MODE)
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1
        if self._quiet or not self._updates.is_open or self.offered == before:
            return
        await self._updates.keep_settings(self.values())
        if options:
            await self._updates.send(v1.ConfigOptionUpdate(self.options()))
        now = self.of_category(MODE)
        if now is not None and (mode is None or mode.value != now.value):
            await self._updates.send(v1.CurrentModeUpdate(v1.SessionModeId(now.value)))
