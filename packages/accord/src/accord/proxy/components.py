"""Components of a chain as people write them: words, a JSON object, a URL, or an object of this program.

| written | is |
|---|---|
| `python rules.py --strict` | a command, split into words as a shell does, and never run by one |
| `{"command": "python", "args": ["rules.py"], "env": {"LANG": "C"}}` | a command as JSON, as editors write it |
| `https://agents.example/acp` | an agent behind a URL |
| `rules.py`, `rules.py:proxy` | an agent or a proxy of a Python file |
| `gemini` | a program on PATH, or an agent with a name: with accord-tools, one that `accord agents` lists |
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import Any

import msgspec

from accord.agent_file import startable
from accord.client.target import CommandTarget, Target
from accord.connecting import target_of
from accord.errors import ConfigurationError
from accord.plugins import scheme_of
from accord.transports.launch import program_file


class JsonCommand(msgspec.Struct, frozen=True):
    """A command in JSON, as the conductor of the Rust SDK takes it."""

    command: str
    args: list[str] = []
    env: dict[str, str] | list[dict[str, Any]] = {}

    @property
    def variables(self) -> dict[str, str]:
        """The variables, given as an object or as a list of names and values."""
        env = self.env
        return dict(env) if isinstance(env, dict) else {str(it["name"]): str(it["value"]) for it in env}


def read_component(written: str, on_stderr: Callable[[str], object] | None = None) -> Target:
    """The target that one component names; raises ConfigurationError for one that cannot be read."""
    written = written.strip()
    if not written:
        raise ConfigurationError("a component is empty: write a command, a URL or a JSON object")
    if written.startswith("{"):
        return _from_json(written, on_stderr)
    words = [] if scheme_of(written) else _words(written)
    if words and program_file(words[0]) is not None:  # a program comes before an agent with its name
        return CommandTarget(words, on_stderr=on_stderr)
    return target_of(written, on_stderr=on_stderr)


def _words(written: str) -> list[str]:
    try:
        return shlex.split(written, posix=os.name == "posix")
    except ValueError as error:
        raise ConfigurationError(f"cannot split the component {written!r} into words: {error}") from None


def _from_json(written: str, on_stderr: Callable[[str], object] | None) -> Target:
    try:
        given = msgspec.json.decode(written, type=JsonCommand)
        env = given.variables
    except (msgspec.DecodeError, KeyError) as error:
        form = '{"command": "program", "args": ["word"], "env": {"NAME": "value"}}'
        raise ConfigurationError(f"cannot read the component {written!r}: {error}; write {form}") from None
    return CommandTarget(startable([given.command, *given.args]), env=env, on_stderr=on_stderr)
