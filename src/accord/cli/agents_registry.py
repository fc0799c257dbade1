"""`accord agents search` and `info`: what the registry lists, and everything about one agent."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from accord.cli import printing
from accord.cli.endings import ENDED_WELL, WrongUsage
from accord.cli.installing import described, size
from accord.cli.table import print_table
from accord.errors import ConfigurationError
from accord.masking import mask_urls
from accord.printable import label
from accord.suggestions import meant

if TYPE_CHECKING:
    from accord.registry.entry import RegistryEntry
    from accord.registry.index import AgentIndex
    from accord.registry.installed import InstalledAgent
    from accord.registry.packages import Kind

KINDS = ["binary", "npx", "uvx"]


def index_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--offline", action="store_true", help="use the list that is kept on this machine")
    parser.add_argument("--refresh", action="store_true", help="fetch the list again, however new it is")


def index_of(options: argparse.Namespace) -> AgentIndex:
    """The registry's list; what went wrong with it is said on standard error."""
    from accord.registry.index import FRESH, load_index

    if options.offline and options.refresh:
        raise WrongUsage("--offline and --refresh exclude each other")
    try:
        index = load_index(offline=options.offline, fresh=0.0 if options.refresh else FRESH)
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
    for line in index.troubles:
        printing.complain(f"note: {label(mask_urls(line), 500)}")
    if not index.states:
        printing.complain("note: ACCORD_REGISTRY is off, so there is no registry")
    return index


def entry_of(index: AgentIndex, name: str) -> RegistryEntry:
    """The agent that a name means; an unknown name is wrong usage."""
    from accord.registry.finding import ALIASES, split_name

    agent_id = (split_name(name) or (name, None))[0]
    entry = index.find(agent_id) or index.find(ALIASES.get(agent_id, agent_id))
    if entry is None:
        known = [*(it.id for it in index), *ALIASES]
        raise WrongUsage(f"the registry has no agent {agent_id!r}{meant(agent_id, known)}; try: accord agents search")
    return entry


def search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="WORD", nargs="*", help="words that an agent's entry must have, all of them")
    parser.add_argument("--kind", choices=KINDS, help="only agents of this kind")
    parser.add_argument(
        "--platform", metavar="NAME", help="for this platform, such as linux-x86_64 (default: this one)"
    )
    parser.add_argument("--license", metavar="TEXT", help="only agents whose licence has this text")
    parser.add_argument("--installed", action="store_true", help="only agents that are installed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    index_arguments(parser)


def search(options: argparse.Namespace) -> int:
    """List the agents of the registry that match."""
    from accord.registry import installed
    from accord.registry.platforms import PLATFORMS, Platform, here

    if options.platform is not None and options.platform not in PLATFORMS:
        raise WrongUsage(f"--platform must be one of {', '.join(PLATFORMS)}, got {options.platform!r}")
    platform = here() if options.platform is None else Platform.of(options.platform)
    index = index_of(options)
    here_now = {agent.id: agent for agent in installed.all_installed()}
    found = [entry for entry in index if _matches(entry, options) and (not options.installed or entry.id in here_now)]
    found.sort(key=lambda entry: entry.id)
    if options.json:
        printing.say(json.dumps([plain(it, here_now.get(it.id), platform.key) for it in found], indent=2))
    elif not found:
        printing.say("No agent matches.")
    else:
        print_table(
            ("ID", "VERSION", "KIND", "STATE", "DESCRIPTION"),
            [_row(entry, here_now.get(entry.id), platform.key) for entry in found],
        )
    for state in index.states:
        if state.skipped and not options.json:
            printing.complain(f"note: {len(state.skipped)} entries of {state.source.shown} cannot be used")
    return ENDED_WELL


def _matches(entry: RegistryEntry, options: argparse.Namespace) -> bool:
    text = " ".join([entry.id, entry.name, entry.description, *entry.authors]).casefold()
    return (
        all(word.casefold() in text for word in options.words)
        and (options.kind is None or options.kind in entry.kinds)
        and (options.license is None or options.license.casefold() in (entry.license or "").casefold())
    )


def _row(entry: RegistryEntry, agent: InstalledAgent | None, platform: str) -> tuple[str, str, str, str, str]:
    kinds = _kinds_for(entry, platform)
    return entry.id, entry.version, ",".join(kinds or entry.kinds) or "-", state_of(entry, agent, kinds), _about(entry)


def _kinds_for(entry: RegistryEntry, platform: str) -> list[Kind]:
    from accord.registry.launching import choices
    from accord.registry.platforms import Platform

    return [choice.kind for choice in choices(entry, Platform.of(platform))]


def state_of(entry: RegistryEntry, agent: InstalledAgent | None, kinds: Iterable[Kind]) -> str:
    """Whether an agent is installed, can be, or why not."""
    from accord.registry.versions import is_newer

    if agent is not None:
        return f"installed {agent.version}" if is_newer(entry.version, agent.version) else "installed"
    return "" if list(kinds) else "not for this platform" if entry.kinds else "unknown kind"


def _about(entry: RegistryEntry) -> str:
    return f"{entry.name}: {entry.description}" if entry.description else entry.name


def plain(entry: RegistryEntry, agent: InstalledAgent | None, platform: str) -> dict[str, Any]:
    """An entry for JSON."""
    return {
        "id": entry.id,
        "name": entry.name,
        "version": entry.version,
        "description": entry.description,
        "kinds": list(entry.kinds),
        "kinds_here": _kinds_for(entry, platform),
        "platforms": sorted(entry.binary),
        "license": entry.license,
        "authors": list(entry.authors),
        "repository": entry.repository,
        "website": entry.website,
        "installed": None if agent is None else agent.version,
        "notes": list(entry.notes),
    }


def info_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the agent's id in the registry, or a usual name such as claude")
    parser.add_argument("--json", action="store_true", help="print JSON")
    index_arguments(parser)


def info(options: argparse.Namespace) -> int:
    """Show everything about one agent of the registry."""
    from accord.registry import finding, installed
    from accord.registry.platforms import here

    agent = finding.find_installed(options.name)
    try:
        entry = entry_of(index := index_of(options), options.name)
    except WrongUsage:
        if agent is None:
            raise
        printing.say("\n".join(_installed_lines([agent])))
        printing.say("The registry does not list it any more; the installed version stays usable.")
        return ENDED_WELL
    versions = installed.versions_of(entry.id)
    if options.json:
        about = plain(entry, agent, here().key)
        about["commands"] = _commands(entry)
        about["versions"] = [{"version": it.version, "kind": it.kind, "size": it.size} for it in versions]
        printing.say(json.dumps(about, indent=2))
        return ENDED_WELL
    printing.say("\n".join(_lines(entry, index) + _installed_lines(versions)))
    return ENDED_WELL


def _commands(entry: RegistryEntry) -> dict[str, list[str]]:
    from accord.registry.launching import choices
    from accord.registry.platforms import here

    return {choice.kind: choice.command(here()) for choice in choices(entry, here())}


def _lines(entry: RegistryEntry, index: AgentIndex) -> list[str]:
    from accord.registry.launching import choose
    from accord.registry.platforms import here

    lines = [label(f"{entry.name} {entry.version}", 100), label(entry.description, 500), ""]
    choice = choose(entry, here())
    if isinstance(choice, str):
        lines.append(f"  not here:  {label(choice, 300)}")
    else:
        lines += described(entry, choice, index.source_of(entry).shown)
        others = [kind for kind in entry.kinds if kind != choice.kind]
        lines += [f"  also as:   {', '.join(others)}"] if others else []
        env = [f"{key}={value}" for key, value in choice.env.items()]
        lines += [f"  sets:      {label(' '.join(env), 300)}"] if env else []
    if entry.binary:
        lines.append(f"  archives:  {label(', '.join(sorted(entry.binary)), 300)}")
    pages = {"website": entry.website, "source": entry.repository, "terms": entry.license_url}
    lines += [f"  {name + ':':11}{label(value, 300)}" for name, value in pages.items() if value]
    lines += [f"  preview:   {label(entry.preview.version, 60)}"] if entry.preview is not None else []
    return lines + [f"  note:      {label(note, 300)}" for note in entry.notes]


def _installed_lines(agents: list[InstalledAgent]) -> list[str]:
    if not agents:
        return ["", "It is not installed."]
    lines = ["", "Installed:"]
    for agent in agents:
        program = "" if agent.is_whole else "; its program is gone: install it again"
        lines.append(f"  {agent.version} as {agent.kind}, {size(agent.size)}, {agent.at[:10]}{program}")
        lines.append(f"    {label(' '.join(agent.argv), 400)}")
    return lines
