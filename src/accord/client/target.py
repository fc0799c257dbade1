"""Where an agent is: how a link to it is made, as often as it takes."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from accord.transports.base import Transport
from accord.transports.launch import Inherit
from accord.transports.process import ProcessTransport

if TYPE_CHECKING:
    from pathlib import Path


class Target(ABC):
    """Makes links to one agent."""

    name: str
    """What people see in errors: its command, its address."""

    way_out = "standard output"
    """What it closes when it wants no more of us."""

    @abstractmethod
    def dial(self) -> Transport:
        """A new link, not yet open."""

    async def release(self) -> None:  # noqa: B027
        """No more links will be asked for."""


class CommandTarget(Target):
    """An agent that is started as a process."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str | None] | None = None,
        inherit: Inherit = True,
    ) -> None:
        if not command:
            raise ValueError("an empty command starts no agent")
        self.command = list(command)
        self.name = shlex.join(self.command)
        self.cwd = cwd
        self.env = dict(env or {})
        self.inherit: Inherit = inherit

    def dial(self) -> Transport:
        return ProcessTransport(self.command, cwd=self.cwd, env=self.env, inherit_env=self.inherit)
