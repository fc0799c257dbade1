"""`ToolDefinition`: a tool as the model and the user know it, and the modes that decide what is asked before."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Literal, TypeAlias, cast, get_type_hints

import msgspec
from msgspec import Struct

from accord import Tool, Turn, updates
from accord.agent.model_messages import ImagePart
from accord.project.project import Project
from accord.session import ToolCallState
from accord_tools.coder.api_keys import without_secrets
from accord_tools.coder.model import Json, ModelConversation, ToolSpec
from accord_tools.coder.open_model import ModelSettings


class Mode(Struct, frozen=True, kw_only=True):
    """One way of working."""

    id: str
    name: str
    description: str
    asks: Collection[str] = ()
    """What is asked before: tools that change `files`, or `anything`."""
    only_reads: bool = False

    def asks_before(self, changes: str) -> bool:
        """Whether the user is asked before something that changes this."""
        return changes in self.asks


MODES = (
    Mode(
        id="ask",
        name="Ask",
        description="Asks before each change of a file and each command.",
        asks=("files", "anything"),
    ),
    Mode(id="edit", name="Edit", description="Changes files by itself; asks before commands.", asks=("anything",)),
    Mode(id="auto", name="Auto", description="Changes files and runs commands without asking."),
    Mode(id="plan", name="Plan", description="Reads only, and makes a plan.", only_reads=True),
)


def mode_of(identifier: str | None) -> Mode:
    """The mode with this id; the first if there is none."""
    return next((mode for mode in MODES if mode.id == identifier), MODES[0])


Changes: TypeAlias = Literal["nothing", "files", "anything"]
"""What a tool may change: a command may do anything."""


class ToolOutput(msgspec.Struct, frozen=True):
    """What a tool gives back to the model."""

    text: str
    failed: bool = False
    images: list[ImagePart] = []


REFUSED = ToolOutput("The user does not allow this. Ask what to do instead, or stop.", failed=True)


class ToolDefinition(msgspec.Struct, frozen=True):
    """One tool."""

    name: str
    description: str
    arguments: type[msgspec.Struct]
    changes: Changes
    run: Callable[..., Awaitable[ToolOutput]]
    """Called with the `ToolUse`, and the arguments by their names."""

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model knows it."""
        return ToolSpec(self.name, self.description, schema_of(self.arguments))


def tool(
    description: str, changes: Changes = "nothing"
) -> Callable[[Callable[..., Awaitable[ToolOutput]]], ToolDefinition]:
    """Make a tool of a function: its name is the tool's, and the parameters after the first are the arguments."""

    def made(run: Callable[..., Awaitable[ToolOutput]]) -> ToolDefinition:
        arguments = msgspec.defstruct(run.__name__, fields_of(run)[1:])
        return ToolDefinition(run.__name__, description, arguments, changes, run)

    return made


def fields_of(function: Callable[..., Any]) -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    """The parameters of a function as fields of a struct; a parameter without an annotation takes any value."""
    hints = get_type_hints(function, include_extras=True)
    named = [(it, hints.get(it.name, Any)) for it in inspect.signature(function).parameters.values()]
    return [(it.name, kind) if it.default is it.empty else (it.name, kind, it.default) for it, kind in named]


class ToolUse:
    """What a running tool works with: the turn, the mode that the user has chosen, and the user's settings."""

    def __init__(self, turn: Turn[ModelConversation], mode: Mode, settings: ModelSettings) -> None:
        self.turn = turn
        self.mode = mode
        self.settings = settings

    @property
    def project(self) -> Project:
        """The session's folders, where tools look by themselves. Files of the client have checks of their own."""
        return Project(self.turn.session.roots)

    async def is_allowed(
        self, tool: Tool, changes: Changes, paths: Sequence[str] = (), about: str | None = None
    ) -> bool:
        """Whether a tool may do this: a rule of the settings says so, else the mode, else the user."""
        asks = self.mode.asks_before(changes)
        if (policy := self.settings.policy) is not None:
            session = self.turn.session
            places = tuple(updates.ToolCallLocation(session.resolve(path)) for path in paths)
            call = ToolCallState(tool.id, tool.title, tool.kind or "other", locations=places)
            answer, rule = await asyncio.to_thread(policy.judge, call, cwd=session.cwd, agent=session.agent)
            if answer == "reject":
                await tool.fail(f"{rule} of the settings refuses this")
                return False
            asks = answer == "ask" if rule != "default" else asks
        return not asks or bool(await tool.ask(about=about))

    @property
    def command_variables(self) -> dict[str, str]:
        """Variables for a command: those that hold secrets, empty.

        A client that we share an environment with has our key, too, so its terminals are told the same.
        """
        return without_secrets(self.settings.key_variable)


def schema_of(arguments: type[msgspec.Struct]) -> Json:
    """The JSON Schema of a tool's arguments, whole and without references."""
    (schema,), components = msgspec.json.schema_components([arguments], ref_template="{name}")
    named: Json = components[schema["$ref"]]
    return cast("Json", _resolved(named, components))


def _resolved(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        given = cast("Json", schema)
        if "$ref" in given:
            return _resolved(components[given["$ref"]], components)
        return {name: _resolved(value, components) for name, value in given.items()}
    if isinstance(schema, list):
        return [_resolved(value, components) for value in cast("list[Any]", schema)]
    return schema
