"""The choices that a session offers: slash commands, config options, modes and models.

Only the config options hold values. The modes of the protocol's older pages are a view of the first option of category
`mode`, so the two cannot differ: the client is notified of both whenever one changes. In the same way `models` are a
view of the first option of category `model`, for clients from before config options; the protocol has no update for
them.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import msgspec

from accord.agent.record import SessionUpdates
from accord.errors import RequestError
from accord.mistakes import wrong_type
from accord.schema import v1
from accord.schema.base import JsonObject
from accord.schema.sendable import check_meta, with_meta
from accord.session import choices_of, updates

if TYPE_CHECKING:
    from accord.agent.skills import AgentSkill


class SlashCommand(msgspec.Struct, frozen=True):
    """A command and the function that answers a prompt with it."""

    name: str
    """Its name, one word without the slash."""
    description: str
    """The description that the user reads."""
    function: Callable[..., Any]
    """Called with the turn and, if it has a second parameter, the text after the command's name."""
    hint: str | None = None
    """What the user may write after the name; None if the command takes no text."""
    meta: JsonObject | None = None
    """Its `_meta`, such as a title for menus."""

    def __post_init__(self) -> None:
        if not self.name or self.name.startswith("/") or any(character.isspace() for character in self.name):
            raise ValueError(f"a command's name must be one word without its slash, got {self.name!r}")


class Commands:
    """A session's commands; changes are sent to the client."""

    def __init__(self, updates: SessionUpdates, commands: Iterable[SlashCommand]) -> None:
        self._updates = updates
        self._commands = {command.name: command for command in commands}
        self.skills: Sequence[AgentSkill] = ()
        """The skills that are offered beside the commands."""

    @property
    def shows_skills(self) -> bool:
        """Whether the client shows skills as such, which only version 2 has."""
        return self._updates.dialect.version == 2 and self._updates.client_shows("session.commands.skill")

    async def offer(
        self,
        name: str,
        description: str,
        function: Callable[..., Any],
        *,
        hint: str | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        """Offer this command in this session too, and notify the client."""
        check_meta("commands.offer(meta=...)", meta)
        self._commands[name] = SlashCommand(name, description, function, hint, meta)
        await self._tell()

    async def remove(self, name: str) -> None:
        """Stop offering this command in this session, and notify the client."""
        del self._commands[name]
        await self._tell()

    def __iter__(self) -> Iterator[SlashCommand]:
        return iter(self._commands.values())

    def __len__(self) -> int:
        return len(self._commands)

    def __contains__(self, name: str) -> bool:
        return name in self._commands

    async def _tell(self) -> None:
        if self._updates.is_open:
            await self._updates.send(offered(self))


def offered(commands: Commands, *, shows_skills: bool | None = None) -> updates.AvailableCommandsUpdate:
    """Return the update with these commands, and the skills: as commands if the client shows no skills."""
    listed: list[Any] = [
        with_meta("commands.offer", updates.Command.of(it.name, it.description, it.hint), it.meta) for it in commands
    ]
    is_skill = commands.shows_skills if shows_skills is None and commands.skills else shows_skills
    for it in commands.skills:
        if it.name not in commands:
            skill = updates.Skill(it.name, it.description, str(it.path))
            listed.append(skill if is_skill else updates.Command.of(it.name, it.description, "what to do with it"))
    return updates.AvailableCommandsUpdate(listed)


def called_by(prompt: Sequence[v1.ContentBlock], commands: Commands) -> tuple[SlashCommand, str] | None:
    """Return the command that a prompt begins with, and the text after its name; None for other prompts."""
    # slash-commands, Running commands: the prefix is recognized, other content may follow it.
    text = next((block.text for block in prompt if isinstance(block, v1.TextContent)), "").lstrip()
    if not text.startswith("/"):
        return None
    name, *rest = text[1:].split(maxsplit=1) or [""]
    command = next((it for it in commands if it.name == name), None)
    return None if command is None else (command, "".join(rest).strip())


def call(command: SlashCommand, function: Callable[..., Any], turn: Any) -> Any:
    """Call the function of a command."""
    return function(turn, turn.arguments) if _takes_two(command.function) else function(turn)


def _takes_two(function: Callable[..., Any]) -> bool:
    positional = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    return len(positional) > 1


# The values of the options


MODE = "mode"
"""The category of the option that is the session's mode."""

MODEL = "model"
"""The category of the option that is the session's model."""


Option: TypeAlias = updates.SessionConfigSelect | updates.SessionConfigBoolean


def takes(option: Option, value: str | bool) -> bool:
    """Return whether an option can have this value."""
    if isinstance(option, updates.SessionConfigBoolean):
        return isinstance(value, bool)
    return any(it.value == value for it in choices_of(option))


def initial_values(options: Iterable[v1.InitialSessionConfigOption]) -> dict[str, str | bool]:
    """Return the config values in a request that opens a session; raises RequestError for a repeated option."""
    values: dict[str, str | bool] = {}
    for position, option in enumerate(options):
        if option.config_id in values:
            problem = f"config option {option.config_id[:60]!r} is given twice"
            raise RequestError.invalid_params(problem, path=f"$.configOptions[{position}].configId")
        values[option.config_id] = option.value
    return values


# The author's view


CATEGORIES = ("mode", "model", "model_config", "thought_level")

Value: TypeAlias = updates.SessionConfigSelectOption | str | tuple[str, str] | tuple[str, str, str]
"""A value to choose: its id, or its id and name, or its id, name and description."""

Values: TypeAlias = Sequence[Value] | Mapping[str, Sequence[Value]]
"""The values to choose from; by heading, if there are many."""


class Config:
    """A session's config options: `session.config["model"]`.

    A change is sent to the client, unless the answer to a request of the client will contain it.
    """

    def __init__(self, updates: SessionUpdates, on_config: Callable[[str, str | bool], Awaitable[None]]) -> None:
        self._offered: dict[str, Option] = {}
        """The options by id, in the order in which they were offered."""
        self._updates = updates
        self._on_config = on_config
        self._quiet = 0

    # Offering

    @overload
    async def offer(
        self,
        option_id: str,
        name: str,
        values: Values,
        *,
        value: str | None = None,
        category: str | None = None,
        description: str | None = None,
        meta: JsonObject | None = None,
    ) -> None: ...

    @overload
    async def offer(
        self,
        option_id: str,
        name: str,
        *,
        value: bool | None = None,
        category: str | None = None,
        description: str | None = None,
        meta: JsonObject | None = None,
    ) -> None: ...

    async def offer(
        self,
        option_id: str,
        name: str,
        values: Values | None = None,
        *,
        value: str | bool | None = None,
        category: str | None = None,
        description: str | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        """Offer a choice of several values, or without `values` an option to switch on and off.

        The first value is chosen, or off, unless `value` names another. A client that does not support boolean options
        does not see those, and their values stay as they are.

        Calling it again for the same option offers other values. Clients show options in the order in which they were
        offered, so offer the most important first. `category` is one of the protocol's, or a word of your own that
        begins with an underscore. `meta` is the option's `_meta`.
        """
        _check_category(category)
        check_meta("config.offer(meta=...)", meta)
        kept = self._value_of(option_id)
        if values is None:
            if not isinstance(value, bool | None):
                raise wrong_type(f"config.offer({option_id!r}) without values", "value=True or value=False", value)
            is_on = kept is True if value is None else value
            its_id = updates.SessionConfigId(option_id)
            await self._put(updates.SessionConfigBoolean(its_id, name, is_on, description, category, meta=meta))
            return
        groups = {"": values} if not isinstance(values, Mapping) else values
        if text := next((it for it in groups.values() if isinstance(it, str)), None):
            raise wrong_type(
                f"config.offer({option_id!r}, values)",
                "a list of values, or lists of values by heading",
                text,
                'for an id with a name, write a pair: [("id", "Name")]',
            )
        listed = {heading: [_value(it) for it in group] for heading, group in groups.items()}
        ids = [it.value for group in listed.values() for it in group]
        if len(set(ids)) < len(ids) or not ids:
            raise ValueError(f"option {option_id!r} must have at least one value, and their ids must differ: got {ids}")
        chosen = value if value is not None else kept if kept in ids else ids[0]
        if chosen not in ids:
            raise ValueError(f"value of option {option_id!r} must be one of {', '.join(ids)}, got {chosen!r}")
        offered = [updates.SessionConfigSelectGroup(updates.SessionConfigGroupId(it), it, listed[it]) for it in listed]
        option = updates.SessionConfigSelect(
            updates.SessionConfigId(option_id),
            name,
            updates.SessionConfigValueId(str(chosen)),
            offered if isinstance(values, Mapping) else listed[""],
            description,
            category,
            meta=meta,
        )
        await self._put(option)

    async def remove(self, option_id: str) -> None:
        """Stop offering this option."""
        async with self._telling():
            del self._offered[option_id]

    async def _put(self, option: Option) -> None:
        async with self._telling():
            self._offered[option.config_id] = option

    # Reading

    def __getitem__(self, option_id: str) -> str | bool:
        """The current value."""
        return self._offered[option_id].current_value

    def __contains__(self, option_id: str) -> bool:
        return option_id in self._offered

    def __iter__(self) -> Iterator[str]:
        return iter(self._offered)

    def values(self) -> dict[str, str | bool]:
        """The value of every option."""
        return {option_id: option.current_value for option_id, option in self._offered.items()}

    def _value_of(self, option_id: str) -> str | bool | None:
        """Return the value of this option; None if it is not offered."""
        option = self._offered.get(option_id)
        return None if option is None else option.current_value

    # Changing

    async def set(self, option_id: str, value: str | bool, *, meta: JsonObject | None = None) -> None:
        """Choose this value for the agent, and notify the client by an update with this `_meta`."""
        check_meta("config.set(meta=...)", meta)
        async with self._telling(meta=meta):
            self._choose(option_id, value)

    async def _set_by_client(self, option_id: str, value: str | bool, *, answered: bool = True) -> None:
        """Choose this value for the user. The author's function may refuse it and change other options.

        `answered` means that the answer to the client contains all options, so that no update is needed.
        """
        if option_id not in self._offered or not self._is_shown(self._offered[option_id]):
            raise RequestError.invalid_params("unknown config option", configId=option_id)
        before = dict(self._offered)
        async with self._telling(options=not answered):
            try:
                self._choose(option_id, value)
                await self._on_config(option_id, value)
            except BaseException:
                self._offered = before
                raise

    def _restore(self, values: Mapping[str, str | bool]) -> None:
        """Choose the values that were saved with the session, if they are still offered."""
        for option_id, value in values.items():
            if option_id in self._offered and takes(self._offered[option_id], value):
                self._choose(option_id, value)

    async def _begin_with(self, values: Mapping[str, str | bool]) -> None:
        """Choose the client's values for a session that it opens."""
        for option_id, value in values.items():
            # schema, InitialSessionConfigOption: options that are not offered are ignored, not refused.
            with suppress(RequestError):
                await self._set_by_client(option_id, value)
        if values:
            await self._updates.keep_settings(self.values())

    def _choose(self, option_id: str, value: str | bool) -> None:
        option = self._offered[option_id]
        if not takes(option, value):
            raise RequestError.invalid_params(
                "this config option does not have this value", configId=option_id, value=value
            )
        self._offered[option_id] = msgspec.structs.replace(option, current_value=value)

    # Reporting

    def _options(self) -> list[updates.SessionConfigOption]:
        """The options that the client can show, with their current values."""
        return [option for option in self._offered.values() if self._is_shown(option)]

    def _of_category(self, category: str) -> updates.SessionConfigSelect | None:
        """Return the first option of this category that has several values, if there is one."""
        selects = (it for it in self._offered.values() if isinstance(it, updates.SessionConfigSelect))
        return next((it for it in selects if it.category == category), None)

    def _option_with(self, category: str, value: str) -> updates.SessionConfigSelect:
        """The first option of this category; RequestError if it does not have this value."""
        option = self._of_category(category)
        if option is None or not takes(option, value):
            raise RequestError.invalid_params(f"unknown {category}", **{f"{category}Id": value})
        return option

    def _mode_state(self) -> v1.SessionModeState | None:
        """The modes and the current one, for the answer that opens a session."""
        mode = self._of_category(MODE)
        if mode is None:
            return None
        available = [
            updates.SessionMode(updates.SessionModeId(it.value), it.name, it.description, meta=it.meta)
            for it in choices_of(mode)
        ]
        return v1.SessionModeState(updates.SessionModeId(mode.current_value), available)

    def _model_state(self) -> v1.SessionModelState | None:
        """The models and the current one, for clients that do not know config options."""
        model = self._of_category(MODEL)
        if model is None:
            return None
        available = [
            updates.ModelInfo(updates.ModelId(it.value), it.name, it.description, meta=it.meta)
            for it in choices_of(model)
        ]
        return v1.SessionModelState(updates.ModelId(model.current_value), available)

    def _is_shown(self, option: Option) -> bool:
        # rfd-boolean-config-option: boolean options only where the client declared them.
        return isinstance(option, updates.SessionConfigSelect) or self._updates.client_shows(
            "session.config_options.boolean"
        )

    @asynccontextmanager
    async def _telling(self, *, options: bool = True, meta: JsonObject | None = None) -> AsyncGenerator[None]:
        """Send the changes that the block made at its end, unless an answer will contain them."""
        before, mode = dict(self._offered), self._of_category(MODE)
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1
        if self._quiet or not self._updates.is_open or self._offered == before:
            return
        await self._updates.keep_settings(self.values())
        if options:
            await self._updates.send(updates.ConfigOptionUpdate(self._options(), meta=meta))
        now = self._of_category(MODE)
        if now is not None and (mode is None or mode.current_value != now.current_value):
            await self._updates.send(updates.CurrentModeUpdate(updates.SessionModeId(now.current_value), meta=meta))


class Choice:
    """The first config option of one category, which older clients know under another name."""

    _category = ""
    _name = ""

    def __init__(self, config: Config) -> None:
        self._config = config

    async def offer(
        self, values: Values, *, current: str | None = None, name: str | None = None, meta: JsonObject | None = None
    ) -> None:
        """Offer these values, by heading if there are many; the first is chosen unless `current` names another.

        `name` is the label that clients show, `meta` the option's `_meta`.
        """
        category = self._category
        await self._config.offer(category, name or self._name, values, value=current, category=category, meta=meta)

    @property
    def current(self) -> str | None:
        """The id of the current value; None if the session offers none."""
        option = self._config._of_category(self._category)
        return None if option is None else option.current_value

    async def set(self, value_id: str, *, meta: JsonObject | None = None) -> None:
        """Choose this value for the agent, and notify the client by an update with this `_meta`."""
        await self._config.set(self._config._option_with(self._category, value_id).config_id, value_id, meta=meta)


class Modes(Choice):
    """A session's modes: the config option of category `mode`, under its older name."""

    _category = MODE
    _name = "Mode"


class Models(Choice):
    """A session's models: the config option of category `model`, which older clients know as `models`."""

    _category = MODEL
    _name = "Model"


def _check_category(category: str | None) -> None:
    # session-config-options, Option Categories: names without an underscore are the protocol's.
    if category is not None and category not in CATEGORIES and not category.startswith("_"):
        raise ValueError(
            f"category must be one of {', '.join(CATEGORIES)}, or begin with an underscore, got {category!r}"
        )


def _value(value: Value) -> updates.SessionConfigSelectOption:
    if isinstance(value, updates.SessionConfigSelectOption):
        return value
    parts = (value,) if isinstance(value, str) else value
    name = parts[1] if len(parts) > 1 else parts[0]
    return updates.SessionConfigSelectOption(
        updates.SessionConfigValueId(parts[0]), name, parts[2] if len(parts) > 2 else None
    )
