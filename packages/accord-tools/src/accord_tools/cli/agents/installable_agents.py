"""`accord agents search`, `info`, `install`, `update`, `which`, `lock` and `forget`: the agents of the registry."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accord import AccordError
from accord.mistakes import meant
from accord.printable import label
from accord.redaction import mask_urls
from accord_tools.cli.agent_setup import confirmed, described_entry, install_shown
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error, print_json, print_line, print_table
from accord_tools.cli.exit_codes import ENDED_WELL, FAILED, WrongUsage, one_line
from accord_tools.configuration.agents_file import project_file
from accord_tools.presentation.quantities import size_in_words
from accord_tools.registry import RegistryError, downloads, installed_agents
from accord_tools.registry.agent_index import FRESH, AgentIndex, load_index
from accord_tools.registry.downloads import LOCK_FILE, LockedAgent, read_lock
from accord_tools.registry.entry import (
    PLATFORMS,
    Kind,
    Platform,
    RegistryEntry,
    choices,
    choose,
    here,
    is_newer,
)
from accord_tools.registry.installed_agents import ALIASES, InstalledAgent, find_installed, split_name

KINDS = ["binary", "npx", "uvx"]
REQUIRE_HASH = "refuse an agent, or any package that it needs, without a checksum in its index"
CHANGES = 3
"""The exit code of `update --check` if there is something new."""


def index_arguments(parser: argparse.ArgumentParser) -> None:
    option(parser, "--offline", "use the list cached on this machine")
    option(parser, "--refresh", "fetch the list again, even if it is recent")


def index_of(options: argparse.Namespace) -> AgentIndex:
    """Return the registry's list; problems with it are printed on standard error."""
    if options.offline and options.refresh:
        raise WrongUsage("--offline and --refresh exclude each other")
    index = load_index(offline=options.offline, fresh=0.0 if options.refresh else FRESH)
    for line in index.troubles:
        print_error(f"note: {label(mask_urls(line), 500)}")
    if not index.states:
        print_error("note: ACCORD_REGISTRY is off, so there is no registry")
    return index


def entry_of(index: AgentIndex, name: str) -> RegistryEntry:
    """The agent that a name means; an unknown name is wrong usage."""
    agent_id = (split_name(name) or (name, None))[0]
    entry = index.find(agent_id) or index.find(ALIASES.get(agent_id, agent_id))
    if entry is None:
        known = [*(it.id for it in index), *ALIASES]
        raise WrongUsage(f"the registry has no agent {agent_id!r}{meant(agent_id, known)}; try: accord agents search")
    return entry


def search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="WORD", nargs="*", help="words that must all occur in an agent's entry")
    option(parser, "--kind", "only agents of this kind", choices=KINDS)
    option(parser, "--platform NAME", "for this platform, such as linux-x86_64 (default: this one)")
    option(parser, "--license TEXT", "only agents whose licence contains this text")
    option(parser, "--installed", "only agents that are installed")
    option(parser, "--json", "print JSON")
    index_arguments(parser)


def run_search(options: argparse.Namespace) -> None:
    """List the agents of the registry that match."""
    if options.platform is not None and options.platform not in PLATFORMS:
        raise WrongUsage(f"--platform must be one of {', '.join(PLATFORMS)}, got {options.platform!r}")
    platform = here() if options.platform is None else Platform.of(options.platform)
    try:
        index = index_of(options)
    except RegistryError as error:
        if options.json or os.environ.get("ACCORD_REGISTRY"):  # the snapshot is of the public registry
            raise
        _search_snapshot(options.words, error)
        return
    here_now = {agent.id: agent for agent in installed_agents.all_installed()}
    found = [entry for entry in index if _matches(entry, options) and (not options.installed or entry.id in here_now)]
    found.sort(key=lambda entry: entry.id)
    if options.json:
        print_json([plain(it, here_now.get(it.id), platform.key) for it in found])
    elif not found:
        print_line("No agent matches.")
    else:
        print_table(
            ("ID", "VERSION", "KIND", "STATE", "DESCRIPTION"),
            [_row(entry, here_now.get(entry.id), platform.key) for entry in found],
        )
    for state in index.states:
        if state.skipped and not options.json:
            print_error(f"note: {len(state.skipped)} entries of {state.source.shown} cannot be used")


def _search_snapshot(words: list[str], error: RegistryError) -> None:
    """List Accord's own copy of the registry, because its list cannot be fetched."""
    from accord_tools.registry.well_known import WELL_KNOWN

    rows = [
        (agent.id, agent.name, agent.description)
        for agent in WELL_KNOWN
        if all(word.casefold() in " ".join(agent[:3]).casefold() for word in words)
    ]
    if not rows:
        raise error
    print_table(("ID", "NAME", "DESCRIPTION"), rows)
    print_error(f"note: this list came with Accord; {one_line(error)}")


def _matches(entry: RegistryEntry, options: argparse.Namespace) -> bool:
    text = " ".join([entry.id, entry.name, entry.description, *entry.authors]).casefold()
    return (
        all(word.casefold() in text for word in options.words)
        and (options.kind is None or options.kind in entry.kinds)
        and (options.license is None or options.license.casefold() in (entry.license or "").casefold())
    )


def _row(entry: RegistryEntry, agent: InstalledAgent | None, platform: str) -> tuple[str, str, str, str, str]:
    kinds = _kinds_for(entry, platform)
    about = f"{entry.name}: {entry.description}" if entry.description else entry.name
    return entry.id, entry.version, ",".join(kinds or entry.kinds) or "-", state_of(entry, agent, kinds), about


def _kinds_for(entry: RegistryEntry, platform: str) -> list[Kind]:
    return [choice.kind for choice in choices(entry, Platform.of(platform))]


def state_of(entry: RegistryEntry, agent: InstalledAgent | None, kinds: Iterable[Kind]) -> str:
    """Whether an agent is installed, can be, or why not."""
    if agent is not None:
        return f"installed {agent.version}" if is_newer(entry.version, agent.version) else "installed"
    return "" if list(kinds) else "not for this platform" if entry.kinds else "unknown kind"


def plain(entry: RegistryEntry, agent: InstalledAgent | None, platform: str) -> dict[str, Any]:
    """An entry for JSON."""
    names = ("id", "name", "version", "description", "kinds", "license", "authors", "repository", "website", "notes")
    return {
        **{name: getattr(entry, name) for name in names},
        "kinds_here": _kinds_for(entry, platform),
        "platforms": sorted(entry.binary),
        "installed": None if agent is None else agent.version,
    }


def info_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the agent's id in the registry, or a usual name such as claude")
    option(parser, "--json", "print JSON")
    index_arguments(parser)


def run_info(options: argparse.Namespace) -> None:
    """Show everything about one agent of the registry."""
    agent = installed_agents.find_installed(options.name)
    try:
        entry = entry_of(index := index_of(options), options.name)
    except WrongUsage:
        if agent is None:
            raise
        print_line("\n".join(_installed_lines([agent])))
        print_line("The registry no longer lists it; the installed version remains usable.")
        return
    versions = installed_agents.versions_of(entry.id)
    if options.json:
        about = plain(entry, agent, here().key)
        about["commands"] = {choice.kind: choice.command(here()) for choice in choices(entry, here())}
        about["versions"] = [{"version": it.version, "kind": it.kind, "size": it.size} for it in versions]
        print_json(about)
        return
    print_line("\n".join(_lines(entry, index) + _installed_lines(versions)))


def _lines(entry: RegistryEntry, index: AgentIndex) -> list[str]:
    lines = [label(f"{entry.name} {entry.version}", 100), label(entry.description, 500), ""]
    choice = choose(entry, here())
    if isinstance(choice, str):
        lines.append(f"  not here:  {label(choice, 300)}")
    else:
        lines += described_entry(entry, choice, index.source_of(entry).shown)
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
        program = "" if agent.is_whole else "; its program is missing: install it again"
        lines.append(f"  {agent.version} as {agent.kind}, {size_in_words(agent.size)}, {agent.at[:10]}{program}")
        lines.append(f"    {label(' '.join(agent.argv), 400)}")
    return lines


def install_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="ID[@VERSION]", nargs="*", help="agents of the registry")
    option(parser, "--kind", "which distribution; by default the first that fits", choices=KINDS)
    option(parser, "--preview", "the preview, in registries that have one")
    option(parser, "--locked", "exactly the versions in .accord/agents.lock; by default all of them")
    option(parser, "--require-hash", REQUIRE_HASH)
    option(parser, "--ignore-scripts", "do not let packages of npm run their scripts")
    option(parser, "--again", "even if it is installed already")
    option(parser, "--yes", "do not ask")
    index_arguments(parser)


def run_install(options: argparse.Namespace) -> None:
    """Install agents of the registry."""
    locks = read_lock(lock_path()) if options.locked else None
    names: list[str] = options.names or list(locks or ())
    if not names:
        raise WrongUsage("name what to install: accord agents install ID; accord agents search lists the agents")
    index = index_of(options)
    for name in names:
        _install_one(options, index, name, locks)


def _install_one(
    options: argparse.Namespace, index: AgentIndex, name: str, locks: dict[str, LockedAgent] | None
) -> None:
    from accord_tools.registry.install_agent import InstallOptions, already_installed

    entry = entry_of(index, name)
    lock = None
    if locks is not None and (lock := locks.get(entry.id)) is None:
        raise WrongUsage(f"the lock file has no agent {entry.id!r}; it has {', '.join(locks) or 'none'}")
    wanted = InstallOptions(
        kind=options.kind,
        version=(split_name(name) or ("", None))[1],
        preview=options.preview,
        scripts=not options.ignore_scripts,
        require_hash=options.require_hash,
        locked=lock,
        again=options.again,
    )
    if (agent := already_installed(entry, wanted)) is not None:
        print_line(f"{label(agent.name, 60)} {agent.version} is installed already.")
        return
    if not confirmed(entry, index, wanted, says_yes=options.yes):
        raise AccordError("nothing was installed; without a terminal, confirm with --yes")
    _report(install_shown(entry, index, wanted))


def _report(agent: InstalledAgent) -> None:
    """Print what was installed, and what will be started."""
    print_line(f"Installed {label(agent.name, 60)} {agent.version} ({size_in_words(agent.size)}).")
    print_line(f"  starts:  {shlex.join(agent.argv)}")
    print_line(f'  try:     accord run "Say hello" -a {agent.id}')


def update_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="ID", nargs="*", help="installed agents; all by default")
    option(parser, "--check", f"only list what is new, with exit code {CHANGES}")
    option(parser, "--require-hash", REQUIRE_HASH)
    index_arguments(parser)


def run_update(options: argparse.Namespace) -> int:
    """Install newer versions of installed agents."""
    agents = [_known(name, find_installed(name)) for name in options.names] or list(installed_agents.all_installed())
    index = index_of(options)
    newer: list[tuple[InstalledAgent, RegistryEntry]] = []
    for agent in agents:
        if (entry := index.find(agent.id)) is None:
            print_error(f"note: {agent.id} is no longer in the registry; it was not changed")
        elif is_newer(entry.version, agent.listed or agent.version):
            newer.append((agent, entry))
    if not newer:
        print_line("Everything is up to date.")
    elif options.check:
        print_table(("ID", "INSTALLED", "NEW"), [(agent.id, agent.version, entry.version) for agent, entry in newer])
        return CHANGES
    updated = [_updated(agent, entry, index, options.require_hash) for agent, entry in newer]
    return ENDED_WELL if all(updated) else FAILED


def _known(name: str, agent: InstalledAgent | None) -> InstalledAgent:
    if agent is None:
        raise WrongUsage(f"{name} is not installed; install it: accord agents install {name}")
    return agent


def _updated(agent: InstalledAgent, entry: RegistryEntry, index: AgentIndex, require_hash: bool) -> bool:
    """Update one agent; a failure leaves the installed version, and does not stop the others."""
    from accord_tools.registry.install_agent import InstallOptions

    kind = agent.kind if agent.kind in entry.kinds else None
    try:
        new = install_shown(entry, index, InstallOptions(kind=kind, require_hash=require_hash))
    except AccordError as error:
        print_error(f"{agent.id}: {one_line(error)}; {agent.version} stays")
        return False
    if new.folder != agent.folder:
        installed_agents.mark_replaced(agent)
        in_use = installed_agents.sweep(agent.id)
        later = "; the old version is in use, and will be removed later" if in_use else ""
        print_line(f"Updated {agent.id} from {agent.version} to {new.version}{later}.")
    else:
        print_line(f"{agent.id} stays at {new.version}: {entry.version} cannot be installed here yet.")
    return True


def remove_installed(name: str) -> bool:
    """Remove an agent of the registry that is installed; returns False if there is none of this name."""
    agent = find_installed(name)
    if agent is None:
        return False
    version = (split_name(name) or ("", None))[1]
    in_use = installed_agents.remove(agent.id, version)
    what = f"{agent.id} {version}" if version else agent.id
    print_line(f"Removed {what}." if not in_use else f"{what} is in use; it will be removed when no program uses it.")
    return True


def which_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="an agent's name, as after -a")


def run_which(options: argparse.Namespace) -> None:
    """Print the command that a name means."""
    from accord_tools.configuration.resolve_agent import resolve

    settings = resolve(options.name, offline=True)
    print_line(settings.url or shlex.join(settings.words))


def lock_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="ID", nargs="*", help="installed agents; by default those of the file, or all")


def run_lock(options: argparse.Namespace) -> None:
    """Write the installed versions into .accord/agents.lock."""
    path = lock_path()
    old = downloads.read_lock(path) if path.exists() else {}
    names: list[str] = options.names or list(old)
    agents = [_known(name, find_installed(name)) for name in names] or list(installed_agents.all_installed())
    if not agents:
        raise WrongUsage("no agent is installed, so there is nothing to lock")
    locked = dict(old)
    for agent in agents:
        if not agent.integrity:
            raise AccordError(f"{agent.id} was installed without a checksum, so it cannot be locked")
        place = downloads.ANY if agent.kind == "npx" else here().key
        before = old.get(agent.id)
        is_same = before is not None and (before.version, before.kind) == (agent.version, agent.kind)
        kept = before.integrity if before is not None and is_same else {}
        locked[agent.id] = downloads.LockedAgent(agent.id, agent.version, agent.kind, {**kept, place: agent.integrity})
    downloads.write_lock(path, list(locked.values()))
    print_line(f"Locked {', '.join(agent.id for agent in agents)} in {path}.")


def lock_path() -> Path:
    """The lock file of the project: beside the project's file with agents, or in this folder."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / LOCK_FILE).is_file():
            return folder / LOCK_FILE
    file = project_file()
    return file.with_name(LOCK_FILE.name) if file is not None else Path.cwd() / LOCK_FILE


def forget_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="ID", help="the agent")


def run_forget(options: argparse.Namespace) -> None:
    """Forget the checksums of an agent's versions that were installed here."""
    count = downloads.forget(options.name)
    if count == 0:
        raise WrongUsage(f"no checksum of {options.name!r} is remembered")
    print_line(f"Forgot {count} checksums of {options.name}.")
