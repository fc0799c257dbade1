"""`accord serve --memory`, `--cpus`, `--tasks`, `--container`: what the process of each agent may use."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord.confinement.containers import Container
    from accord.confinement.limits import ProcessLimits


def arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "limits of each agent's process",
        "They count all that the agent starts. Linux keeps them, by a control group that systemd delegates to the\n"
        "server, or by a scope of systemd; a container keeps them anywhere. Where none is there, the server does\n"
        "not start.",
    )
    group.add_argument("--memory", metavar="SIZE", help="memory, such as 2G; an agent that takes more is ended")
    group.add_argument("--cpus", metavar="N", type=float, help="processors, such as 1.5")
    group.add_argument("--tasks", metavar="N", type=int, help="processes and threads")
    group.add_argument("--container", metavar="IMAGE", help="run each agent in a container of this image")
    group.add_argument(
        "--container-folder",
        action="append",
        default=[],
        metavar="FOLDER",
        help="lend a folder to the containers, under the same path; may be repeated",
    )
    group.add_argument(
        "--container-network", metavar="NAME", help="the containers' network; none for no network (default: the usual)"
    )
    group.add_argument("--container-engine", metavar="PROGRAM", help="podman or docker (default: what is installed)")


def limits_of(options: argparse.Namespace) -> ProcessLimits | None:
    """The limits that the options name, or None; raises WrongUsage."""
    from accord.confinement.limits import ProcessLimits

    try:
        limits = ProcessLimits(memory=options.memory, cpus=options.cpus, tasks=options.tasks)
    except ValueError as error:
        raise WrongUsage(f"--{error}") from None
    return limits or None


def container_of(options: argparse.Namespace) -> Container | None:
    """The container that the options name, or None; raises WrongUsage."""
    if options.container is None:
        if options.container_folder or options.container_network or options.container_engine:
            raise WrongUsage("--container-folder, --container-network and --container-engine go with --container IMAGE")
        return None
    from accord.confinement.containers import Container

    folders = [Path(folder).absolute() for folder in options.container_folder]
    return Container(options.container, folders, options.container_engine, options.container_network)
