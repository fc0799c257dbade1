"""Where an agent is, and how to connect to it, as often as needed."""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from accord.transports.transport_interface import Transport

if TYPE_CHECKING:
    from pathlib import Path

    from accord.transports.launch import Inherit


class Target(ABC):
    """Opens connections to one agent: what `accord.connect` makes of a command or a URL, and plug-ins of a name."""

    name: str
    """The agent's command or address, as errors show it."""

    is_here = True
    """Whether the agent runs on this machine, so that a path means the same file to it and to us."""

    way_out = "standard output"
    """What the agent closes to end a connection, as errors call it."""

    @property
    def program(self) -> str:
        """What the agent is, however it calls itself: answers that are remembered for one program hold for no other."""
        return f"{self.__class__.__module__}.{self.__class__.__qualname__} {self.name}"

    @property
    def failure(self) -> Exception | None:
        """Why the agent could not serve the last connection, where the target knows it; None otherwise."""
        return None

    @abstractmethod
    def dial(self) -> Transport:
        """A transport for a new connection, not yet open."""

    async def release(self) -> None:  # noqa: B027
        """Free what connecting needed; no more connections will be opened."""


class CommandTarget(Target):
    """An agent that is started as a process."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str | None] | None = None,
        inherit: Inherit = True,
        on_stderr: Callable[[str], object] | None = None,
    ) -> None:
        if not command or not all(isinstance(cast("object", word), str | os.PathLike) for word in command):
            raise ValueError(f"command must be a list of words, the program first, got {list(command)!r}")
        self.command = [os.fspath(word) for word in command]
        """The program and its arguments."""
        self.name = shlex.join(self.command)
        self.cwd = cwd
        """The folder that the process is started in; None for ours."""
        self.env = dict(env or {})
        """Variables that differ from ours; None removes one."""
        self.inherit: Inherit = inherit
        """What the process gets of our environment: all, nothing, or these names."""
        self._on_stderr = on_stderr

    @cached_property
    def program(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The program's real path, and a digest of the whole command, because an argument may be a secret."""
        import hashlib  # only for remembered answers; a connection needs none of these
        import json

        from accord.transports.launch import environment, program_file

        folder = os.path.realpath(self.cwd or ".")
        path = environment(self.env, self.inherit).get("PATH", os.defpath)
        named = os.path.join(folder, self.command[0]) if os.sep in self.command[0] else self.command[0]  # noqa: PTH118
        found = program_file(named, path=path) or named
        arguments = [_resolved(argument, folder) for argument in self.command[1:]]
        real = os.path.realpath(found)
        digest = hashlib.sha256(json.dumps([found, real, *arguments]).encode()).hexdigest()
        return f"{real} {digest[:32]}"

    def dial(self) -> Transport:
        from accord.transports.process_transport import ProcessTransport  # not for agents in memory or behind URLs

        return ProcessTransport(
            self.command, cwd=self.cwd, env=self.env, inherit_env=self.inherit, on_stderr=self._on_stderr
        )


def _resolved(argument: str, folder: str) -> str:
    """The real path of an argument that names a file, such as a script for an interpreter."""
    path = os.path.join(folder, argument)  # noqa: PTH118
    return os.path.realpath(path) if "\0" not in path and os.path.isfile(path) else argument  # noqa: PTH113
