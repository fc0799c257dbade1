"""Slash commands: what a session offers, and which one a prompt calls."""

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
    description: str
    function: Callable[..., Any]
    hint: str | None = None

    def __post_init__(self) -> None:
        if not self.name or self.name.startswith("/") or any(character.isspace() for character in self.name):
            raise ValueError(f"a command's name must be one word without its slash, got {self.name!r}")

    def call(self, turn: object, arguments: str) -> Any:
        """Call the function with the turn and, if it has a second parameter, the text after the command's name."""
        return self.function(turn, arguments) if _takes_two(self.function) else self.function(turn)

    def advertised(self) -> v1.AvailableCommand:
        return v1.AvailableCommand.of(self.name, self.description, self.hint)


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

    def called_by(self, prompt: Sequence[v1.ContentBlock]) -> tuple[Command, str] | None:
        """The command that a prompt begins with, and the text after its name; None for other prompts."""
        # slash-commands, Running commands: the prefix is recognized, other content may stand beside it.
        text = next((block.text for block in prompt if isinstance(block, v1.TextContent)), "").lstrip()
        if not text.startswith("/"):
            return None
        name, *rest = text[1:].split(maxsplit=1) or [""]
        command = self._commands.get(name)
        return None if command is None else (command, "".join(rest).strip())

    def update(self) -> v1.AvailableCommandsUpdate:
        return v1.AvailableCommandsUpdate([command.advertised() for command in self])

    async def _tell(self) -> None:
        if self._updates.is_open:
            await self._updates.send(self.update())


def _takes_two(function: Callable[..., Any]) -> bool:
    positional = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    return len(positional) > 1
