"""Slash commands: those that a session offers, and the one that a prompt calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from accord.agent.updates import SessionUpdates
from accord.schema import v1


class Command(msgspec.Struct, frozen=True):
    """A command and the function that answers a prompt with it."""

    name: str
    """Its name, one word without the slash."""
    description: str
    """What the command does, for the user."""
    function: Callable[..., Any]
    """Called with the turn and, if it has a second parameter, the text after the command's name."""
    hint: str | None = None
    """What the user may write after the name; None if the command takes no text."""

    def __post_init__(self) -> None:
        if not self.name or self.name.startswith("/") or any(character.isspace() for character in self.name):
            raise ValueError(f"a command's name must be one word without its slash, got {self.name!r}")


class Commands:
    """A session's commands; changing them tells the client."""

    def __init__(self, updates: SessionUpdates, commands: Iterable[Command]) -> None:
        self._updates = updates
        self._commands = {command.name: command for command in commands}

    async def add(self, name: str, description: str, function: Callable[..., Any], *, hint: str | None = None) -> None:
        """Offer this command in this session too; the client is told."""
        self._commands[name] = Command(name, description, function, hint)
        await self._tell()

    async def remove(self, name: str) -> None:
        """Stop offering this command in this session; the client is told."""
        del self._commands[name]
        await self._tell()

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def __len__(self) -> int:
        return len(self._commands)

    def __contains__(self, name: str) -> bool:
        return name in self._commands

    async def _tell(self) -> None:
        if self._updates.is_open:
            await self._updates.send(offered(self))


def offered(commands: Commands) -> v1.AvailableCommandsUpdate:
    """The update that tells the client these commands."""
    return v1.AvailableCommandsUpdate([v1.AvailableCommand.of(it.name, it.description, it.hint) for it in commands])


def called_by(prompt: Sequence[v1.ContentBlock], commands: Commands) -> tuple[Command, str] | None:
    """The command that a prompt begins with, and the text after its name; None for other prompts."""
    # slash-commands, Running commands: the prefix is recognized, other content may stand beside it.
    text = next((block.text for block in prompt if isinstance(block, v1.TextContent)), "").lstrip()
    if not text.startswith("/"):
        return None
    name, *rest = text[1:].split(maxsplit=1) or [""]
    command = next((it for it in commands if it.name == name), None)
    return None if command is None else (command, "".join(rest).strip())


def call(command: Command, turn: object, arguments: str) -> Any:
    """Call the function of a command."""
    return command.function(turn, arguments) if _takes_two(command.function) else command.function(turn)


def _takes_two(function: Callable[..., Any]) -> bool:
    positional = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    return len(positional) > 1
