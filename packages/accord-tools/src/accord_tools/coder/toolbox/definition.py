"""`ToolDefinition`: a tool of ours, as the model and the user know it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, cast

import msgspec

from accord import Turn
from accord.project.project import Project
from accord_tools.coder.conversation import Conversation, Image, Json
from accord_tools.coder.models.model import ToolSpec
from accord_tools.coder.modes import Mode

Changes: TypeAlias = Literal["nothing", "files", "anything"]
"""What a tool may change: a command may do anything."""


class Given(msgspec.Struct, frozen=True):
    """What a tool gives back to the model."""

    text: str
    failed: bool = False
    images: list[Image] = []


REFUSED = Given("The user does not allow this. Ask what to do instead, or stop.", failed=True)


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One tool."""

    name: str
    description: str
    arguments: type[msgspec.Struct]
    changes: Changes = "nothing"
    run: Callable[[ToolUse, Any], Awaitable[Given]]

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model knows it."""
        return ToolSpec(self.name, self.description, schema_of(self.arguments))


class ToolUse:
    """What a running tool works with: the turn, and the mode that the user has chosen."""

    def __init__(self, turn: Turn[Conversation], mode: Mode) -> None:
        self.turn = turn
        self.mode = mode

    @property
    def project(self) -> Project:
        """The session's folders, where tools look by themselves. Files of the client have checks of their own."""
        return Project(self.turn.session.roots)

    def asks_before(self, changes: Changes) -> bool:
        """Whether the user is asked before a tool changes this."""
        return self.mode.asks_before(changes)


def schema_of(arguments: type[msgspec.Struct]) -> Json:
    """The JSON Schema of a tool's arguments, whole and without references."""
    (schema,), components = msgspec.json.schema_components([arguments], ref_template="{name}")
    named: Json = components[schema["$ref"]]
    resolved: Json = _resolved(named, components)
    return resolved


def _resolved(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        given = cast("Json", schema)
        if "$ref" in given:
            return _resolved(components[given["$ref"]], components)
        return {name: _resolved(value, components) for name, value in given.items()}
    if isinstance(schema, list):
        return [_resolved(value, components) for value in cast("list[Any]", schema)]
    return schema
