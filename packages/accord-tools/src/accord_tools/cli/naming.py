"""The named agents, for commands: an invalid file is wrong usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord import ConfigurationError
from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord_tools.configuration.known_agents import KnownAgents


def known_agents() -> KnownAgents:
    """The agents that are known in this folder; an invalid file is wrong usage."""
    from accord_tools.configuration.known_agents import KnownAgents

    try:
        return KnownAgents.of()
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
