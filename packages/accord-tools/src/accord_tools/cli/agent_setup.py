"""The user's decisions before an agent starts: whether to trust a file that names it, and whether to install it.

The question about an installation has what a user should know before running an untrusted program: its publisher, its
origin, its licence, and whether the registry has a checksum of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from accord.printable import label
from accord_tools.cli.console import has_user, print_error, streams, user_agrees, width
from accord_tools.presentation.quantities import size_in_words
from accord_tools.presentation.spinner import spinner_line
from accord_tools.registry import InstallError, NotInstalled, Progress

if TYPE_CHECKING:
    from accord.project.git import FolderNotTrusted
    from accord_tools.configuration.agents_file import AgentsFile
    from accord_tools.configuration.trust import NotTrusted
    from accord_tools.registry.agent_index import AgentIndex
    from accord_tools.registry.entry import Distribution, RegistryEntry
    from accord_tools.registry.install_agent import InstallOptions
    from accord_tools.registry.installed_agents import InstalledAgent


COLUMNS = 200
SHOWN = 20
"""Agents of the file that a question shows; with more, the user is asked to read the file."""


def ask_for_trust(error: NotTrusted) -> None:
    """Ask at the terminal, and remember a yes; raises the error if the answer is no, or without a terminal."""
    from accord_tools.configuration.trust import trust

    if not has_user():
        raise error
    print_error("\n".join([f"This project's file {error.file.path} names agents:", *described_file(error.file)]))
    if not user_agrees("They can run any program as you. Trust this file as long as it does not change?"):
        raise error
    trust(error.file)


def ask_for_folder(error: FolderNotTrusted) -> None:
    """Ask at the terminal, and remember a yes; raises the error if the answer is no, or without a terminal."""
    from accord_tools.configuration.trust import trust_folder

    if not has_user():
        raise error
    root = label(str(error.repository.root), COLUMNS)
    if not user_agrees(f"Git has to run in {root}. Trust this folder?"):
        raise error
    trust_folder(error.repository)


def described_file(file: AgentsFile) -> list[str]:
    """Describe what a file starts or connects to, each agent on a line."""
    lines = [f"  {name}: {label(_described_agent(file, name), COLUMNS)}" for name in list(file.agents)[:SHOWN]]
    hidden = len(file.agents) - SHOWN
    lines += [f"  and {hidden:,} more: read the file"] if hidden > 0 else []
    return lines + ([f"  the default is {file.default}"] if file.default is not None else [])


def _described_agent(file: AgentsFile, name: str) -> str:
    settings = file.agents[name]
    variables = "".join(f"{key}={value} " for key, value in settings.env.items())
    allows = f" (may use: {settings.allow})" if settings.allow is not None else ""
    return f"{variables}{settings.where}{allows}"


EVERY = 0.1
"""Seconds between two drawings of the progress."""


def ask_to_install(options: argparse.Namespace, error: NotInstalled) -> None:
    """Install the named agent, if the user agrees or has agreed with --yes; raises the error otherwise."""
    from accord_tools.registry.agent_index import load_index
    from accord_tools.registry.install_agent import InstallOptions

    if not (options.installs or has_user()):
        raise error
    index = load_index(fresh=float("inf"))
    if not confirmed(error.entry, index, InstallOptions(), says_yes=options.installs):
        raise error
    install_shown(error.entry, index, InstallOptions())


def confirmed(entry: RegistryEntry, index: AgentIndex, options: InstallOptions, *, says_yes: bool) -> bool:
    """Show what would be installed, and ask unless the user has agreed. Without a terminal the answer is no."""
    from accord_tools.registry.install_agent import chosen

    wanted, choice = chosen(entry, options)
    print_error("\n".join(described_entry(wanted, choice, index.source_of(entry).shown)))
    if says_yes:
        return True
    if not has_user():
        return False
    print_error("It is a program of its publisher, and runs as you. The registry's list is not signed.")
    return user_agrees(f"Install {label(wanted.name, 60)} {label(wanted.version, 40)}?")


def described_entry(entry: RegistryEntry, choice: Distribution, registry: str) -> list[str]:
    """Describe an installation, in lines for people."""
    from accord_tools.registry.entry import here, in_words

    kind = choice.kind
    hashes = {
        "binary": "yes" if getattr(choice.source, "sha256", None) else "no: what comes is not checked",
        "npx": "checked by npm",
        "uvx": "checked by uv or pip",
    }
    rows = {
        "agent": f"{entry.name} {entry.version} ({entry.id})",
        "from": choice.origin if kind == "binary" else f"{in_words(kind)}, {choice.origin}",
        "publisher": ", ".join(entry.authors) or "not named",
        "licence": entry.license or "not named",
        "checksum": hashes[kind],
        "listed as": " ".join(choice.command(here())),
        "registry": registry,
    }
    return [f"  {name + ':':11}{label(value, 300)}" for name, value in rows.items()]


def install_shown(entry: RegistryEntry, index: AgentIndex, options: InstallOptions) -> InstalledAgent:
    """Install an agent, and show the progress on standard error. Raises RegistryError after its log was shown."""
    from accord_tools.registry.install_agent import install

    progress = ShownProgress()
    try:
        agent = install(entry, index.source_of(entry), options, progress)
    except InstallError as error:
        progress.end()
        if error.words:  # the last lines of the program that failed
            print_error("\n".join(f"  | {line}" for line in error.words.splitlines()))
        raise
    finally:
        progress.end()
    return agent


class ShownProgress(Progress):
    """Progress on standard error: a line that is drawn again at a terminal, otherwise a line for each step."""

    def __init__(self) -> None:
        now = streams()
        self._look = now.aside
        self._step = ""
        self._began = self._drawn = time.monotonic()
        self._is_drawn = False
        self._frame = 0

    def step(self, text: str) -> None:
        self.end()
        self._step = label(text, 300)
        self._began = time.monotonic()
        if self._look.moves:
            self._draw("")
        else:
            print_error(text)

    def bytes(self, done: int, total: int | None) -> None:
        is_last = done == total
        if self._look.moves and (is_last or time.monotonic() - self._drawn > EVERY):
            share = f" of {size_in_words(total)}  {done * 100 // total:3} %" if total else ""
            self._draw(f"{size_in_words(done)}{share}")

    def waiting(self) -> None:
        if self._look.moves:
            self._draw(f"{time.monotonic() - self._began:.0f} s")

    def note(self, text: str) -> None:
        self.end()
        print_error(f"note: {label(text, 500)}")

    def end(self) -> None:
        """Remove the line."""
        if self._is_drawn:
            self._write("\r\x1b[K")
            self._is_drawn = False

    def _draw(self, detail: str) -> None:
        self._frame += 1
        self._drawn = time.monotonic()
        self._write(spinner_line(self._look, self._frame, self._step, f"  {detail}", width(2)))
        self._is_drawn = True

    def _write(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
