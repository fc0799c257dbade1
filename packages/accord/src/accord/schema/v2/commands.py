"""Slash commands that an agent offers.

Differs from version 1: commands and their inputs say their `type`, so that others may come.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Open, Tolerant, ValidItems, every


class TextCommandInput(Model, tag_field="type", tag="text"):
    """Free text after a command's name; the hint says what to type."""

    hint: str


AvailableCommandInput: TypeAlias = Open[TextCommandInput]


class Command(Model, tag_field="type", tag="command"):
    """A slash command that the agent offers; its name has no slash."""

    name: str
    description: str
    input: Tolerant[AvailableCommandInput | None] = None

    @classmethod
    def of(cls, name: str, description: str, hint: str | None = None) -> Command:
        return cls(name, description, TextCommandInput(hint) if hint is not None else None)


AvailableCommand: TypeAlias = Annotated[Open[Command], every("name", "description")]


class AvailableCommandsUpdate(Model, tag_field="sessionUpdate", tag="available_commands_update"):
    """The commands available now; they replace the earlier list."""

    available_commands: ValidItems[AvailableCommand]
