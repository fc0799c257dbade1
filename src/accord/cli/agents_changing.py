"""`accord agents add`, `remove` and `default`: change a file with named agents."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from accord.cli import printing
from accord.cli.agents_installing import remove_installed
from accord.cli.endings import ENDED_WELL, WrongUsage
from accord.cli.lending import ALLOW
from accord.cli.naming import known_agents
from accord.errors import ConfigurationError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "accord agents add [options] NAME [-- COMMAND...]"
    parser.add_argument("name", metavar="NAME", help="letters, digits, - and _")
    parser.add_argument("--url", metavar="URL", help="the agent's URL, instead of a command")
    parser.add_argument("--registry", metavar="ID", help="an agent of the registry, instead of a command")
    parser.add_argument("--description", metavar="TEXT", help="what the agent is for")
    parser.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable of its process; may be repeated; the value keyring:NAME is a secret of the system's keyring",
    )
    parser.add_argument("--env-file", metavar="FILE", help="a file with variables, NAME=VALUE on each line")
    parser.add_argument("--clean-env", action="store_true", help="let it see few of your variables, as for run")
    parser.add_argument("--cwd", metavar="DIR", help="the folder that its program is started in")
    parser.add_argument("--mode", metavar="MODE", help="the mode of its sessions")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="settings", help="a config option; as for run"
    )
    parser.add_argument("--allow", choices=ALLOW, help="what it may use; as for run")
    parser.add_argument("--token-file", metavar="FILE", help="for a URL: the file with its bearer token")
    parser.add_argument(
        "--header", metavar="'NAME: VALUE'", action="append", default=[], help="for a URL: a header to send"
    )
    parser.add_argument("--ca", metavar="FILE", help="for a URL: certificates that are trusted as well")
    parser.add_argument("--proxy", metavar="URL", help="for a URL: the proxy on the way; 'none' for none")
    parser.add_argument("--default", action="store_true", help="make it the default agent")
    parser.set_defaults(takes_agent=True)
    _project_argument(parser)


def _project_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", action="store_true", help="change the project's file instead of your own")


def add(options: argparse.Namespace) -> int:
    from accord.configuration import editing
    from accord.configuration.settings import AgentSettings

    if [bool(options.agent), bool(options.url), bool(options.registry)].count(True) != 1:
        raise WrongUsage("give either --url URL, --registry ID or a command: accord agents add NAME -- COMMAND")
    config = dict(_pair("--set", given) for given in options.settings)
    path = _file(options)
    settings = AgentSettings(
        command=_stored_command(path, options),
        url=options.url,
        registry=options.registry,
        description=options.description,
        env=dict(_pair("--env", given) for given in options.env),
        env_file=_stored(path, options, options.env_file),
        clean_env=options.clean_env,
        cwd=_stored(path, options, options.cwd),
        mode=options.mode,
        config={key: {"true": True, "false": False}.get(value, value) for key, value in config.items()},
        allow=options.allow,
        token_file=_stored(path, options, options.token_file),
        headers=dict(_pair("--header", given, ":") for given in options.header),
        ca=_stored(path, options, options.ca),
        proxy=options.proxy,
    )
    try:
        editing.add_agent(path, options.name, settings)
        if options.default:
            editing.set_default(path, options.name)
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
    _trust_own_change(options)
    printing.say(f"Added {options.name} to {path}. Try: accord info {options.name}")
    return ENDED_WELL


def remove(options: argparse.Namespace) -> int:
    from accord.configuration import editing

    path = _file(options)
    if not options.project and options.name not in known_agents().names and remove_installed(options.name):
        return ENDED_WELL
    try:
        editing.remove_agent(path, options.name)
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
    _trust_own_change(options)
    printing.say(f"Removed {options.name} from {path}.")
    return ENDED_WELL


def default(options: argparse.Namespace) -> int:
    from accord.configuration import editing

    known = known_agents()
    if options.name is None and not options.none:
        name = next((agent.name for agent in known if agent.is_default), None)
        printing.say("No default: the built-in demo agent is used." if name is None else name)
        return ENDED_WELL
    if options.name is not None and options.name not in known.names:
        from accord.suggestions import nearest

        raise WrongUsage(f"no agent has the name {options.name!r}{nearest(options.name, known.names)}")
    path = _file(options)
    try:
        editing.set_default(path, None if options.none else options.name)
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
    _trust_own_change(options)
    return ENDED_WELL


def _trust_own_change(options: argparse.Namespace) -> None:
    """Trust a project's file that the user has just changed, if it was trusted before or is new."""
    if options.project and options.may_trust:
        from accord.configuration.trust import trust

        if (file := known_agents().project) is not None:
            trust(file)


def _file(options: argparse.Namespace) -> Path:
    """The file to change."""
    from accord.configuration.agents_file import IN_PROJECT, project_file, user_file
    from accord.configuration.trust import is_trusted

    if not options.project:
        return user_file()
    known = known_agents().project
    options.may_trust = known is None or is_trusted(known)
    return project_file() or Path.cwd() / IN_PROJECT


def _stored_command(file: Path, options: argparse.Namespace) -> list[str] | None:
    """The command as the file has it; None if the agent has a URL."""
    from accord.configuration.settings import is_path

    if not options.agent:
        return None
    program, *rest = options.agent
    stored = _stored(file, options, program) if is_path(program) else None
    return [stored or program, *rest]


def _stored(file: Path, options: argparse.Namespace, given: str | None) -> str | None:
    """A path of the command line as the file has it: absolute, or relative to the project for a project's file."""
    from accord.configuration.agents_file import base_of

    if given is None:
        return None
    there = Path(os.path.normpath(Path.cwd() / Path(given).expanduser()))
    base = base_of(file, "project")
    if options.project and there.is_relative_to(base):
        return os.path.join(".", there.relative_to(base))  # noqa: PTH118
    return str(there)


def _pair(option: str, given: str, sign: str = "=") -> tuple[str, str]:
    name, is_set, value = given.partition(sign)
    if not (name.strip() and is_set):
        raise WrongUsage(f"{option} must be NAME{sign}VALUE, got {given!r}")
    return name.strip(), value.strip() if sign == ":" else value


def name_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the agent's name; ID@VERSION for one version that is installed")
    parser.add_argument("--yes", action="store_true", help="do not ask; removing never does, so scripts may say it")
    _project_argument(parser)


def default_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="the agent's name; without it, print the default")
    parser.add_argument("--none", action="store_true", help="remove the default: use the built-in demo agent")
    _project_argument(parser)
