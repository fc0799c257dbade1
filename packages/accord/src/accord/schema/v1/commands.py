"""Slash commands that an agent offers. Page: slash-commands."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Tolerant, ValidItems


class UnstructuredCommandInput(Model):
    """Free text after a command's name; the hint says what to type."""

    hint: str


AvailableCommandInput: TypeAlias = Annotated[UnstructuredCommandInput, "AvailableCommandInput"]


class AvailableCommand(Model):
    """A slash command that the agent offers; its name has no slash."""

    name: str
    description: str
    input: Tolerant[AvailableCommandInput | None] = None

    @classmethod
    def of(cls, name: str, description: str, hint: str | None = None) -> AvailableCommand:
        return cls(name, description, UnstructuredCommandInput(hint) if hint is not None else None)


class AvailableCommandsUpdate(Model, tag_field="sessionUpdate", tag="available_commands_update"):
    """The commands available now; they replace the earlier list."""

    available_commands: Tolerant[ValidItems[AvailableCommand]]
