"""`--clean-env` and `--env-file`: which variables the process of an agent gets."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord_tools.configuration.settings import AgentSettings


def arguments(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    """Add the options."""
    from accord_tools.configuration.environment import passed_on

    names = ", ".join(passed_on())
    group.add_argument(
        "--clean-env", action="store_true", help=f"let the agent see only these variables of yours: {names}"
    )
    group.add_argument(
        "--env-file",
        metavar="FILE",
        help="set the agent's variables in this file, NAME=VALUE on each line; the value keyring:NAME is a secret of "
        "the system's keyring",
    )


def apply(options: argparse.Namespace, settings: AgentSettings) -> AgentSettings:
    """The settings of an agent with what these options say."""
    if not (options.clean_env or options.env_file):
        return settings
    if settings.url is not None:
        raise WrongUsage("--clean-env and --env-file are for an agent that is a command, and this one has a URL")
    import msgspec

    return msgspec.structs.replace(
        settings,
        clean_env=options.clean_env or settings.clean_env,
        env_file=options.env_file or settings.env_file,
    )
