"""Asks the user whether they trust a project's file that names commands, or a folder in which git is to run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from accord.printable import label
from accord_tools.cli import printing
from accord_tools.cli.lending import has_user

if TYPE_CHECKING:
    from accord.project.git import FolderNotTrusted
    from accord_tools.configuration.agents_file import AgentsFile
    from accord_tools.configuration.trust import NotTrusted

COLUMNS = 200
SHOWN = 20
"""Agents of the file that a question shows; with more, the user is told to read the file."""


def ask_for_trust(error: NotTrusted) -> None:
    """Ask at the terminal, and remember a yes; raises the error if the answer is no, or without a terminal."""
    from accord_tools.configuration.trust import trust

    if not has_user():
        raise error
    printing.complain("\n".join([f"This project's file {error.file.path} names agents:", *described(error.file)]))
    printing.complain("They can run any program as you. Trust this file as long as it does not change? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise error
    trust(error.file)


def ask_for_folder(error: FolderNotTrusted) -> None:
    """Ask at the terminal, and remember a yes; raises the error if the answer is no, or without a terminal."""
    from accord_tools.configuration.trust import trust_folder

    if not has_user():
        raise error
    root = label(str(error.repository.root), COLUMNS)
    printing.complain(f"Git has to run in {root}. Trust this folder? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise error
    trust_folder(error.repository)


def described(file: AgentsFile) -> list[str]:
    """What a file starts or connects to, each agent on a line."""
    lines = [f"  {name}: {label(_in_words(file, name), COLUMNS)}" for name in list(file.agents)[:SHOWN]]
    hidden = len(file.agents) - SHOWN
    lines += [f"  and {hidden:,} more: read the file"] if hidden > 0 else []
    return lines + ([f"  the default is {file.default}"] if file.default is not None else [])


def _in_words(file: AgentsFile, name: str) -> str:
    settings = file.agents[name]
    variables = "".join(f"{key}={value} " for key, value in settings.env.items())
    allows = f" (may use: {settings.allow})" if settings.allow is not None else ""
    return f"{variables}{settings.where}{allows}"
