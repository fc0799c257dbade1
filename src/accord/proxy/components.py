"""Components of a chain as people write them: words, a JSON object, a URL, or an object of this program.

| written | is |
|---|---|
| `python rules.py --strict` | a command, split into words as a shell does, and never run by one |
| `{"command": "python", "args": ["rules.py"], "env": {"LANG": "C"}}` | a command as JSON, as editors write it |
| `https://agents.example/acp` | an agent behind a URL |
| `rules.py`, `rules.py:proxy` | an agent or a proxy of a Python file |
| `gemini` | an agent that `accord agents` lists, or a program on PATH |
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import Any

import msgspec

from accord.client.target import Target
from accord.configuration.resolving import resolve_command, started_by_us, target_of
from accord.configuration.settings import AgentSettings
from accord.errors import ConfigurationError


class JsonCommand(msgspec.Struct, frozen=True):
    """A command in JSON, as the conductor of the Rust SDK takes it."""

    command: str
    args: list[str] = []
    env: dict[str, str] | list[dict[str, Any]] = {}

    @property
    def variables(self) -> dict[str, str]:
        """The variables, given as an object or as a list of names and values."""
        if isinstance(self.env, dict):
            return dict(self.env)
        return {str(pair["name"]): str(pair["value"]) for pair in self.env}


def read_component(written: str, on_stderr: Callable[[str], object] | None = None) -> Target:
    """The target that one component names; raises ConfigurationError for one that cannot be read."""
    return target_of(_settings(written.strip()), on_stderr=on_stderr)


def _settings(written: str) -> AgentSettings:
    if written.startswith("{"):
        return _from_json(written)
    try:
        words = shlex.split(written, posix=os.name == "posix")
    except ValueError as error:
        raise ConfigurationError(f"cannot split the component {written!r} into words: {error}") from None
    if not words:
        raise ConfigurationError("a component is empty: write a command, a URL or a JSON object")
    return resolve_command(words)


def _from_json(written: str) -> AgentSettings:
    try:
        given = msgspec.json.decode(written, type=JsonCommand)
        env = given.variables
    except (msgspec.DecodeError, KeyError) as error:
        form = '{"command": "program", "args": ["word"], "env": {"NAME": "value"}}'
        raise ConfigurationError(f"cannot read the component {written!r}: {error}; write {form}") from None
    return started_by_us(AgentSettings(command=[given.command, *given.args], env=env))
