"""Asks whether to install an agent of the registry, and shows how the installation goes.

What is asked says what a user should know before a stranger's program runs: who publishes it, where it comes from,
its licence, and whether the registry has a checksum of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from accord.printable import columns, cut, label
from accord_tools.cli import printing, streams
from accord_tools.cli.lending import has_user
from accord_tools.registry import Progress

if TYPE_CHECKING:
    from accord_tools.registry import InstallError, NotInstalled
    from accord_tools.registry.agent_index import AgentIndex
    from accord_tools.registry.choose_agent import Distribution
    from accord_tools.registry.entry import RegistryEntry
    from accord_tools.registry.install_agent import InstallOptions
    from accord_tools.registry.installed_agents import InstalledAgent

EVERY = 0.1
"""Seconds between two drawings of the progress."""


def ask_to_install(options: argparse.Namespace, error: NotInstalled) -> None:
    """Install the agent that was named, if the user says yes or has said it with --yes; raises the error otherwise."""
    from accord_tools.registry.agent_index import load_index
    from accord_tools.registry.install_agent import InstallOptions

    if not (options.installs or has_user()):
        raise error
    index = load_index(fresh=float("inf"))
    if not confirmed(error.entry, index, InstallOptions(), says_yes=options.installs):
        raise error
    installed(error.entry, index, InstallOptions())


def confirmed(entry: RegistryEntry, index: AgentIndex, options: InstallOptions, *, says_yes: bool) -> bool:
    """Show what would be installed, and ask unless the user has said yes. Without a terminal the answer is no."""
    from accord_tools.registry.install_agent import chosen

    wanted, choice = chosen(entry, options)
    printing.complain("\n".join(described(wanted, choice, index.source_of(entry).shown)))
    if says_yes:
        return True
    if not has_user():
        return False
    printing.complain("It is a program of its publisher, and runs as you. The registry's list is not signed.")
    printing.complain(f"Install {label(wanted.name, 60)} {label(wanted.version, 40)}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def described(entry: RegistryEntry, choice: Distribution, registry: str) -> list[str]:
    """What an installation would bring, in lines for people."""
    from accord_tools.registry.choose_agent import here
    from accord_tools.registry.entry import in_words

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


def installed(entry: RegistryEntry, index: AgentIndex, options: InstallOptions) -> InstalledAgent:
    """Install an agent, and show the progress on standard error. Raises RegistryError after its log was shown."""
    from accord_tools.registry import InstallError
    from accord_tools.registry.install_agent import install

    progress = ShownProgress()
    try:
        agent = install(entry, index.source_of(entry), options, progress)
    except InstallError as error:
        progress.end()
        show_words(error)
        raise
    finally:
        progress.end()
    return agent


def show_words(error: InstallError) -> None:
    """Show the last lines of the program that failed."""
    if error.words:
        printing.complain("\n".join(f"  | {line}" for line in error.words.splitlines()))


class ShownProgress(Progress):
    """Progress on standard error: a line that is drawn again at a terminal, otherwise a line for each step."""

    def __init__(self) -> None:
        now = streams.streams()
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
            printing.complain(text)

    def bytes(self, done: int, total: int | None) -> None:
        is_last = done == total
        if self._look.moves and (is_last or time.monotonic() - self._drawn > EVERY):
            share = f" of {size(total)}  {done * 100 // total:3} %" if total else ""
            self._draw(f"{size(done)}{share}")

    def waiting(self) -> None:
        if self._look.moves:
            self._draw(f"{time.monotonic() - self._began:.0f} s")

    def note(self, text: str) -> None:
        self.end()
        printing.complain(f"note: {label(text, 500)}")

    def end(self) -> None:
        """Remove the line."""
        if self._is_drawn:
            self._write("\r\x1b[K")
            self._is_drawn = False

    def _draw(self, detail: str) -> None:
        frames = self._look.symbols.frames
        self._frame = (self._frame + 1) % len(frames)
        self._drawn = time.monotonic()
        room = max(10, streams.width(2) - columns(detail) - 5)
        text = cut(self._step, room)
        painted = f"{self._look.painted('accent', frames[self._frame])} {text}  {self._look.painted('dim', detail)}"
        self._write(f"\r{painted}\x1b[K")
        self._is_drawn = True

    def _write(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()


def size(count: int | None) -> str:
    """A number of bytes, for people.

    >>> size(999), size(12_345_678)
    ('999 bytes', '12.3 MB')
    """
    if count is None:
        return "?"
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} bytes"
