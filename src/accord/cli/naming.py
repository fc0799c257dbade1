"""The named agents, for commands: an invalid file is wrong usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.cli.endings import WrongUsage
from accord.errors import ConfigurationError

if TYPE_CHECKING:
    from accord.configuration.known_agents import KnownAgents


def known_agents() -> KnownAgents:
    """The agents that are known in this folder; an invalid file is wrong usage."""
    from accord.configuration.known_agents import KnownAgents

    try:
        return KnownAgents.of()
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
