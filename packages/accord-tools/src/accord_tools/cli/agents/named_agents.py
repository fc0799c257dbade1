"""`accord agents list`, `add`, `remove`, `default`, `trust`, `export` and `import`: agents with names.

Named agents are in your own file, and in that of a project. Other clients (Zed, JetBrains, acpx) have files of their
own, with which agents are exchanged.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord import ConfigurationError
from accord.installation import TRANSPORTS, PluginError, plugin_for_scheme, scheme_of
from accord.mistakes import nearest
from accord.printable import label
from accord.redaction import mask_urls
from accord.transports.launch import program_file
from accord_tools.cli.agent_options import known_agents
from accord_tools.cli.agent_setup import described_file
from accord_tools.cli.agents.installable_agents import remove_installed
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error, print_json, print_line, print_table
from accord_tools.cli.exit_codes import WrongUsage
from accord_tools.cli.permission_options import ALLOW
from accord_tools.configuration import agents_file
from accord_tools.configuration.agent_settings import AgentSettings, is_path, without_secrets
from accord_tools.configuration.agents_file import IN_PROJECT, base_of, project_file, read_file, user_file
from accord_tools.configuration.trust import is_trusted, trust
from accord_tools.registry import RegistryError
from accord_tools.registry.agent_index import load_index
from accord_tools.registry.entry import in_words, is_newer
from accord_tools.registry.installed_agents import InstalledAgent, all_installed, current

if TYPE_CHECKING:
    from accord_tools.configuration.resolve_agent import KnownAgent
CLIENTS = ["zed", "jetbrains", "acpx"]


def list_agents(options: argparse.Namespace) -> None:
    """List the agents."""
    known, installed = known_agents(), list(all_installed())
    if options.json:
        named = [_plain(agent) for agent in known]
        print_json([*named, *map(_plain_installed, installed)])
        return
    rows = [_row(agent) for agent in known]
    rows += [_installed_row(agent, _listed()) for agent in installed]
    if not rows:
        print_line("No agent has a name yet. Add one: accord agents add NAME -- COMMAND")
        print_line("Or install one of the registry: accord agents search, then accord agents install ID")
    else:
        print_table(("NAME", "FROM", "STATE", "AGENT"), rows)
    for file in known.files:
        trusted = "" if is_trusted(file) else " (not trusted: read it, then run: accord agents trust)"
        print_line(f"{file.owner}'s file: {file.path}{trusted}")


def _row(agent: KnownAgent) -> tuple[str, str, str, str]:
    name = agent.name + (" (default)" if agent.is_default else "")
    return name, agent.file.owner, _state(agent), agent.settings.description or mask_urls(agent.settings.where)


def _listed() -> dict[str, str]:
    """Return the versions in the registry's list, as far as it is cached on this machine."""
    try:
        return {entry.id: entry.version for entry in load_index(offline=True)}
    except (ConfigurationError, RegistryError):
        return {}


def _installed_row(agent: InstalledAgent, listed: dict[str, str]) -> tuple[str, str, str, str]:
    new = listed.get(agent.id, agent.version)
    more = f"; {new} is available" if is_newer(new, agent.listed or agent.version) else ""
    state = "installed" if agent.is_whole else "not found"
    return agent.id, "registry", state, f"{agent.name} {agent.version} from {in_words(agent.kind)}{more}"


def _plain_installed(agent: InstalledAgent) -> dict[str, Any]:
    return {
        "name": agent.id,
        "default": False,
        "from": "registry",
        **{name: getattr(agent, name) for name in ("version", "kind", "integrity", "at", "size")},
        "command": agent.argv,
        "program": agent.argv[0] if agent.is_whole else None,
        "description": agent.name,
        "env": sorted(agent.env),
    }


def _state(agent: KnownAgent) -> str:
    if agent.is_hidden:
        return "hidden"
    if not is_trusted(agent.file):
        return "not trusted"
    if agent.settings.registry is not None:
        return "installed" if current(agent.settings.registry) is not None else "not installed"
    return "url" if agent.settings.url else "found" if found(agent) else "not found"


def found(agent: KnownAgent) -> str | None:
    """Return the path of the agent's program; None if it is not found, or the agent has a URL."""
    from accord_tools.configuration.resolve_agent import python_file, started_by_us

    if agent.settings.url is not None or agent.settings.registry is not None:
        return None
    settings = started_by_us(agent.settings)
    if (file := python_file(settings)) is not None:
        return str(file) if file.is_file() else None
    return program_file(settings.words[0], path=settings.env.get("PATH"))


def _plain(agent: KnownAgent) -> dict[str, Any]:
    settings = agent.settings
    return {
        "name": agent.name,
        "default": agent.is_default,
        "from": agent.file.owner,
        "file": str(agent.file.path),
        "trusted": is_trusted(agent.file),
        "hidden": agent.is_hidden,
        **({"url": mask_urls(settings.url)} if settings.url else {"command": settings.words, "program": found(agent)}),
        "description": settings.description,
        "cwd": settings.cwd,
        "env": sorted(settings.env),
        "mode": settings.mode,
        "config": settings.config,
        "allow": settings.allow,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "accord agents add [options] NAME [-- COMMAND...]"
    parser.add_argument("name", metavar="NAME", help="letters, digits, - and _")
    option(parser, "--url URL", "the agent's URL, instead of a command")
    option(parser, "--registry ID", "an agent of the registry, instead of a command")
    option(parser, "--description TEXT", "what the agent is for")
    option(
        parser,
        "--env NAME=VALUE...",
        "a variable of its process; may be repeated; the value keyring:NAME is a secret of the system's keyring",
    )
    option(parser, "--env-file FILE", "a file with variables, NAME=VALUE on each line")
    option(parser, "--clean-env", "let it see few of your variables, as for run")
    option(parser, "--cwd DIR", "the folder that its program is started in")
    option(parser, "--mode MODE", "the mode of its sessions")
    option(parser, "--set KEY=VALUE...", "a config option; as for run", dest="settings")
    option(parser, "--allow", "what it may use; as for run", choices=ALLOW)
    option(parser, "--token-file FILE", "for a URL: the file with its bearer token")
    option(parser, "--header 'NAME: VALUE'...", "for a URL: a header to send")
    option(parser, "--ca FILE", "for a URL: additional trusted certificates")
    option(parser, "--proxy URL", "for a URL: the proxy; 'none' for none")
    option(parser, "--default", "make it the default agent")
    parser.set_defaults(takes_agent=True)
    _project_argument(parser)


def _project_argument(parser: argparse.ArgumentParser) -> None:
    option(parser, "--project", "change the project's file instead of your own")


def run_add(options: argparse.Namespace) -> None:
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
    if options.url and scheme_of(options.url):
        try:
            plugin_for_scheme(TRANSPORTS, options.url)
        except PluginError as error:
            raise WrongUsage(str(error)) from error
    agents_file.add_agent(path, options.name, settings)
    if options.default:
        agents_file.set_default(path, options.name)
    _trust_own_change(options)
    print_line(f"Added {options.name} to {path}. Try: accord info {options.name}")


def run_remove(options: argparse.Namespace) -> None:
    path = _file(options)
    if not options.project and options.name not in known_agents().names and remove_installed(options.name):
        return
    agents_file.remove_agent(path, options.name)
    _trust_own_change(options)
    print_line(f"Removed {options.name} from {path}.")


def run_default(options: argparse.Namespace) -> None:
    known = known_agents()
    if options.name is None and not options.none:
        name = next((agent.name for agent in known if agent.is_default), None)
        print_line("No default: the built-in demo agent is used." if name is None else name)
        return
    if options.name is not None and options.name not in known.names:
        raise WrongUsage(f"no agent has the name {options.name!r}{nearest(options.name, known.names)}")
    path = _file(options)
    agents_file.set_default(path, None if options.none else options.name)
    _trust_own_change(options)


def _trust_own_change(options: argparse.Namespace) -> None:
    """Trust a project's file that the user has just changed, if it was trusted before or is new."""
    if options.project and options.may_trust and (file := known_agents().project) is not None:
        trust(file)


def _file(options: argparse.Namespace) -> Path:
    """The file to change."""
    if not options.project:
        return user_file()
    known = known_agents().project
    options.may_trust = known is None or is_trusted(known)
    return project_file() or Path.cwd() / IN_PROJECT


def _stored_command(file: Path, options: argparse.Namespace) -> list[str] | None:
    """Return the command in the file; None if the agent has a URL."""
    if not options.agent:
        return None
    program, *rest = options.agent
    stored = _stored(file, options, program) if is_path(program) else None
    return [stored or program, *rest]


def _stored(file: Path, options: argparse.Namespace, given: str | None) -> str | None:
    """A path of the command line as the file has it: absolute, or relative to the project for a project's file."""
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


def remove_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the agent's name; ID@VERSION for one version that is installed")
    option(parser, "--yes", "accepted for scripts: removing never asks")
    _project_argument(parser)


def default_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="the agent's name; without it, print the default")
    option(parser, "--none", "remove the default: use the built-in demo agent")
    _project_argument(parser)


def trust_arguments(_parser: argparse.ArgumentParser) -> None:
    """Add nothing: there is one such file."""


def run_trust(_options: argparse.Namespace) -> None:
    if (file := known_agents().project) is None:
        raise WrongUsage("no project's file: no .accord/agents.toml in this folder or above it")
    trust(file)
    print_line("\n".join([f"Trusted, as long as it does not change: {file.path}", *described_file(file)]))


def export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", choices=CLIENTS, metavar="CLIENT", help=f"one of {', '.join(CLIENTS)}")
    parser.add_argument("name", metavar="NAME", help="an agent's name, as after -a")


def run_export(options: argparse.Namespace) -> None:
    """Print the settings with which another client starts an agent."""
    from accord_tools.configuration.other_clients import settings_file, snippet
    from accord_tools.configuration.resolve_agent import resolve

    settings = resolve(options.name, offline=True)
    if scheme_of(options.name):
        raise WrongUsage("give the URL a name first: accord agents add NAME --url URL")
    env = without_secrets(settings.env)
    _print_omitted(settings, env)
    if words := settings.words:
        # Editors that are not started by a shell often have another PATH.
        command = [program_file(words[0]) or words[0], *words[1:]]
        settings = type(settings)(command=command, env=env, mode=settings.mode, config=settings.config)
    name = options.name.removeprefix("registry:").partition("@")[0]
    print_json(snippet(options.client, name, settings))
    print_error(f"Add this to {settings_file(options.client)}.")


def _print_omitted(settings: AgentSettings, env: dict[str, str]) -> None:
    """Print which parts of an agent's environment another client cannot have."""
    left_out = [f"the variable {name} from your keyring" for name in settings.env if name not in env]
    left_out += [f"the variables in {settings.env_file}"] if settings.env_file else []
    left_out += ["the clean environment"] if settings.clean_env else []
    if left_out:
        print_error(f"note: not exported: {', '.join(left_out)}")


def import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", choices=CLIENTS, metavar="CLIENT", help=f"one of {', '.join(CLIENTS)}")
    parser.add_argument("file", metavar="FILE", nargs="?", help="its settings (default: the client's own file)")
    option(parser, "--dry-run", "only print what would be added")


def run_import(options: argparse.Namespace) -> None:
    """Add the agents of another client's settings to your file."""
    from accord_tools.configuration.other_clients import read_agents, settings_file

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
            print_line(f"{name}: you already have an agent of this name; it was not changed")
            continue
        if not options.dry_run:
            agents_file.add_agent(user_file(), name, settings)
        print_line(f"{name}: {label(settings.where, 200)}")
    for problem in problems:
        print_error(f"note: {label(problem, 300)}")
    if not found:
        print_line(f"{path} has no agents.")
