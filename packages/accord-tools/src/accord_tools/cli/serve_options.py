"""Options of `accord serve`: quotas, limits of agents' processes, and several server processes as one service."""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from accord import AccordError
from accord.program import STORE
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error
from accord_tools.cli.exit_codes import WrongUsage, exit_code, one_line

if TYPE_CHECKING:
    from accord import Hosts
    from accord.http import Container, Host, ProcessLimits, Quotas, Server

# Limits of each owner


QUOTAS = {
    "connections": "open connections of one owner",
    "turns": "running turns of one owner",
    "posts": "messages a second of one owner",
    "burst": "messages of one owner that may come at once (default: 10 seconds' worth of posts)",
}


def quota_arguments(parser: argparse.ArgumentParser) -> None:
    option(
        parser,
        "--quota NAME=NUMBER...",
        "limit what each owner of a token may use, over all hosts and processes (see below); may be repeated",
    )


def quota_lines() -> str:
    """The quotas, for the end of the help."""
    return "\n".join(f"  {name:22}{explained}" for name, explained in QUOTAS.items())


def quotas_of(given: list[str]) -> Quotas | None:
    """Return the quotas that the options name, or None; raises WrongUsage."""
    from accord.http import Quotas

    return made_of("--quota", given, QUOTAS, Quotas, ("posts",)) if given else None


MadeT = TypeVar("MadeT")


def made_of(
    option: str, given: list[str], known: Collection[str], kind: Callable[..., MadeT], fractions: Collection[str]
) -> MadeT:
    """An object of this kind with the members that NAME=NUMBER of this option sets; `fractions` need not be whole."""
    found: dict[str, float] = {}
    for setting in given:
        name, is_set, text = setting.partition("=")
        if name not in known or not is_set:
            raise WrongUsage(f"{option} must be NAME=NUMBER with a name of {', '.join(known)}; got {setting!r}")
        number = number_of(f"{option} {name}", text)
        found[name] = number if name in fractions else int(number)
    try:
        return kind(**found)
    except ValueError as error:
        raise WrongUsage(str(error)) from None


def number_of(what: str, text: str, most: float = 10**12) -> float:
    """The number in a text; `what` is the option that it belongs to."""
    try:
        number = float(text)
    except ValueError:
        raise WrongUsage(f"{what} must be a number, got {text!r}") from None
    if not 0 <= number <= most:
        raise WrongUsage(f"{what} must be between 0 and {most:,.0f}, got {text}")
    return number


# Limits of each agent's process


def confinement_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "limits of each agent's process",
        "They include every process that the agent starts. On Linux they are enforced by a control group that\n"
        "systemd delegates to the server, or by a systemd scope; elsewhere by a container. If neither is\n"
        "available, the server does not start.",
    )
    option(group, "--memory SIZE", "memory, such as 2G; an agent that uses more is ended")
    option(group, "--cpus N", "processors, such as 1.5", type=float)
    option(group, "--tasks N", "processes and threads", type=int)
    option(group, "--container IMAGE", "run each agent in a container of this image")
    option(
        group,
        "--container-folder FOLDER...",
        "share a folder with the containers, under the same path; may be repeated",
    )
    option(group, "--container-network NAME", "the containers' network; none for no network (default: the usual)")
    option(group, "--container-engine PROGRAM", "podman or docker (default: what is installed)")


def process_limits_of(options: argparse.Namespace) -> ProcessLimits | None:
    """Return the limits that the options name, or None; raises WrongUsage."""
    from accord.http import ProcessLimits

    try:
        limits = ProcessLimits(memory=options.memory, cpus=options.cpus, tasks=options.tasks)
    except ValueError as error:
        raise WrongUsage(f"--{error}") from None
    return limits or None


def container_of(options: argparse.Namespace) -> Container | None:
    """Return the container that the options name, or None; raises WrongUsage."""
    if options.container is None:
        if options.container_folder or options.container_network or options.container_engine:
            raise WrongUsage("--container-folder, --container-network and --container-engine go with --container IMAGE")
        return None
    from accord.http import Container

    folders = [Path(folder).absolute() for folder in options.container_folder]
    return Container(options.container, folders, options.container_engine, options.container_network)


MOST_PROCESSES = 256


def hosts_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several processes, on one machine or many")
    option(group, "--processes N", "serve with N processes of this machine (default: %(default)s)", default="1")
    option(
        group,
        "--hosts URL|FILE",
        "share the service with the other hosts of this PostgreSQL database, or this SQLite file",
    )
    option(
        group,
        "--peer HOST:PORT",
        "the address at which the other hosts reach this one; port 0 chooses a free one (default: 127.0.0.1:0)",
    )
    operator_arguments(group)
    option(group, "--weight W", "the share of this host in new connections; 0 only forwards (default: 1)")
    option(group, "--store URL|FILE", "the store of agents written with Accord, unless their authors set one")


def operator_arguments(group: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    """The options with which a host, or an operator, speaks with the hosts of a service."""
    option(
        group,
        "--hosts-key-file FILE",
        "the key that all hosts share; the first line signs, all are accepted (required with PostgreSQL)",
    )
    option(
        group, "--peer-certificate FILE", "encrypt between hosts, with this PEM certificate for the address of --peer"
    )
    option(group, "--peer-certificate-key FILE", "its private key, unless that is in the certificate's file")
    option(
        group,
        "--peer-ca FILE",
        "accept only hosts with a certificate of this CA (default: any client, and hosts with one of the system's CAs)",
    )


def operator_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return these options as arguments of `Hosts` and `operator`; raises WrongUsage."""
    for name, needing in (("--peer-ca", options.peer_ca), ("--peer-certificate-key", options.peer_certificate_key)):
        if needing is not None and options.peer_certificate is None:
            raise WrongUsage(f"{name} requires --peer-certificate")
    return {
        "key": None if options.hosts_key_file is None else _keys(options.hosts_key_file),
        "peer_certificate": options.peer_certificate,
        "peer_certificate_key": options.peer_certificate_key,
        "peer_ca": options.peer_ca,
    }


def sharing_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several clients of one owner")
    option(
        group,
        "--shared",
        "serve all connections of an owner with one agent: clients use a session together, and turns continue "
        "without a client",
    )
    option(group, "--detached S", "seconds that a turn may continue without a client, with --shared (default: 3600)")


def shared_host(hosted: Host, options: argparse.Namespace) -> Host:
    """Return the host, with one agent for all connections of an owner if the options ask for it."""
    if not options.shared:
        if options.detached is not None:
            raise WrongUsage("--detached requires --shared")
        return hosted
    from accord.http import SharedHost

    try:
        return SharedHost(hosted) if options.detached is None else SharedHost(hosted, detached=float(options.detached))
    except ValueError:
        raise WrongUsage(f"--detached must be a number of seconds, got {options.detached!r}") from None


def process_count(options: argparse.Namespace) -> int:
    """Return how many processes are requested; raises WrongUsage."""
    given: str = options.processes
    if not given.isdecimal() or not 1 <= int(given) <= MOST_PROCESSES:
        raise WrongUsage(f"--processes must be a number from 1 to {MOST_PROCESSES}, got {given!r}")
    if int(given) > 1 and (options.reload or options.trace):
        raise WrongUsage(f"{'--reload' if options.reload else '--trace'} is for one process; remove --processes")
    return int(given)


def keep_sessions_in(options: argparse.Namespace) -> None:
    """Set where the agents of this server store their sessions."""
    if options.store is not None:
        if not options.store:
            raise WrongUsage("--store must be a URL, such as postgresql://db/accord, or the path of a file")
        os.environ[STORE] = options.store


def hosts_of(options: argparse.Namespace) -> Hosts | None:
    """Return the hosts that the options name, or None."""
    if options.hosts is None:
        needing = ("peer", "hosts_key_file", "peer_certificate", "peer_certificate_key", "peer_ca", "weight")
        for name in needing:
            if getattr(options, name) is not None:
                raise WrongUsage(f"--{name.replace('_', '-')} requires --hosts")
        return None
    return _hosts(options.hosts, options)


def _hosts(directory: str, options: argparse.Namespace) -> Hosts:
    from accord import Hosts
    from accord.hosts import is_postgres

    given = operator_settings(options)
    if given["key"] is None and is_postgres(directory):
        raise WrongUsage("--hosts with PostgreSQL requires --hosts-key-file: the same file on each host")
    if options.peer is not None:
        given["peer"] = options.peer
    if options.weight is not None:
        given["weight"] = number_of("--weight", options.weight)
    try:
        return Hosts(directory, **given)
    except ValueError as error:
        raise WrongUsage(str(error)) from None


def _keys(file: str) -> list[str]:
    try:
        lines = Path(file).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise WrongUsage(f"--hosts-key-file {file} cannot be read: {reason}") from None
    keys = [line.strip() for line in lines if line.strip()]
    if not keys:
        raise WrongUsage(f"--hosts-key-file {file} is empty; make one with: openssl rand -hex 32")
    return keys


def run_processes(
    count: int, options: argparse.Namespace, serve: Callable[..., None], say_where: Callable[[str], None]
) -> int:
    """Serve with this many processes until a signal ends them; returns the exit status.

    `serve` serves until a signal, and takes the arguments that differ between processes: `listening`, `hosts` and
    `on_ready`.
    """
    if not hasattr(os, "fork"):
        raise WrongUsage("--processes is not available on Windows; use --hosts with a file")
    from accord.hosts import run_processes as run

    with _directory(options) as directory:
        hosts = _hosts(directory, options)

        def run_one(listening: socket.socket, on_ready: Callable[[Server], None]) -> int:
            try:
                serve(listening=listening, hosts=hosts, on_ready=on_ready)
            except AccordError as error:
                print_error(f"accord serve: {one_line(error)}")
                return exit_code(error)
            return 0

        return run(
            count,
            run_one,
            host=options.host,
            port=int(options.port),
            tls=bool(options.certificate),
            on_ready=say_where,
            on_restart=lambda line: print_error(f"accord serve: {line}"),
        )


@contextmanager
def _directory(options: argparse.Namespace) -> Generator[str]:
    """Return where the hosts are listed: from the options, or a file of a private folder, for the processes alone."""
    if options.hosts is not None:
        yield options.hosts
        return
    folder = tempfile.mkdtemp(prefix="accord-hosts-")
    try:
        yield str(Path(folder) / "hosts.sqlite3")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
