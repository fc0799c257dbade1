"""Slash commands that an agent offers. Page: slash-commands."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Tolerant, ValidItems


class UnstructuredCommandInput(Model):
    """Free text behind the command's name; the hint says what is expected."""

    hint: str


AvailableCommandInput: TypeAlias = Annotated[UnstructuredCommandInput, "AvailableCommandInput"]


class AvailableCommand(Model):
    """A command, without its slash."""

    name: str
    description: str
    input: Tolerant[AvailableCommandInput | None] = None

    @classmethod
    def of(cls, name: str, description: str, hint: str | None = None) -> AvailableCommand:
        return cls(name, description, UnstructuredCommandInput(hint) if hint is not None else None)


class AvailableCommandsUpdate(Model, tag_field="sessionUpdate", tag="available_commands_update"):
    """The commands that there are now; they replace the ones before."""

    available_commands: Tolerant[ValidItems[AvailableCommand]]
