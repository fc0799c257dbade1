"""`accord agents export` and `import`: agents in the settings of Zed, JetBrains and acpx."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli import printing
from accord.cli.endings import ENDED_WELL, WrongUsage
from accord.cli.naming import known_agents
from accord.errors import ConfigurationError
from accord.plugins import scheme_of
from accord.printable import label
from accord.transports.programs import program_file

if TYPE_CHECKING:
    from accord.configuration.settings import AgentSettings

CLIENTS = ["zed", "jetbrains", "acpx"]


def export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", choices=CLIENTS, metavar="CLIENT", help=f"one of {', '.join(CLIENTS)}")
    parser.add_argument("name", metavar="NAME", help="an agent's name, or what stands after -a")


def export(options: argparse.Namespace) -> int:
    """Print the settings with which another client starts an agent."""
    from accord.configuration.environment import without_secrets
    from accord.configuration.exchanging import settings_file, snippet
    from accord.configuration.resolving import resolve

    try:
        settings = resolve(options.name, offline=True)
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
    if scheme_of(options.name):
        raise WrongUsage("give the URL a name first: accord agents add NAME --url URL")
    env = without_secrets(settings.env)
    _tell_what_is_left_out(settings, env)
    if words := settings.words:
        # Editors that are not started by a shell often have another PATH.
        command = [program_file(words[0]) or words[0], *words[1:]]
        settings = type(settings)(command=command, env=env, mode=settings.mode, config=settings.config)
    name = options.name.removeprefix("registry:").partition("@")[0]
    printing.say(json.dumps(snippet(options.client, name, settings), indent=2, ensure_ascii=False))
    printing.complain(f"Add this to {settings_file(options.client)}.")
    return ENDED_WELL


def _tell_what_is_left_out(settings: AgentSettings, env: dict[str, str]) -> None:
    """Say what of an agent's environment another client cannot have."""
    left_out = [f"the variable {name} from your keyring" for name in settings.env if name not in env]
    left_out += [f"the variables in {settings.env_file}"] if settings.env_file else []
    left_out += ["the clean environment"] if settings.clean_env else []
    if left_out:
        printing.complain(f"note: not exported: {', '.join(left_out)}")


def import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", choices=CLIENTS, metavar="CLIENT", help=f"one of {', '.join(CLIENTS)}")
    parser.add_argument("file", metavar="FILE", nargs="?", help="its settings; by default where the client has them")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be added")


def import_agents(options: argparse.Namespace) -> int:
    """Add the agents of another client's settings to your file."""
    from accord.configuration import editing
    from accord.configuration.agents_file import read_file, user_file
    from accord.configuration.exchanging import read_agents, settings_file

    path = Path(options.file) if options.file else settings_file(options.client)
    try:
        found, problems = read_agents(options.client, path.read_text(encoding="utf-8-sig"), str(path))
        mine = read_file(user_file(), "user")
    except OSError as error:
        raise WrongUsage(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # ConfigurationError is one
        raise WrongUsage(str(error)) from error
    known_agents()  # an invalid file is reported before anything is written
    taken = {} if mine is None else mine.agents
    for name, settings in found.items():
        if name in taken:
            printing.say(f"{name}: you have an agent of this name; it stays")
            continue
        if not options.dry_run:
            editing.add_agent(user_file(), name, settings)
        printing.say(f"{name}: {label(settings.where, 200)}")
    for problem in problems:
        printing.complain(f"note: {label(problem, 300)}")
    if not found:
        printing.say(f"{path} has no agents.")
    return ENDED_WELL
