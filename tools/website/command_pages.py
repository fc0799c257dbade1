"""A page for each command of `accord`: what `--help` prints, for the command and the commands below it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from tools.website.page import Page

from accord_tools.cli.agent_options import agent_options_parser
from accord_tools.cli.command_table import commands_for, commands_of, parser_of
from accord_tools.tui import key_bindings, slash

WIDTH = "88"
"""Columns of a help text; a page shows about 90."""

GUIDES = {
    "agent": "coding-agent.md",
    "agents": "registry.md",
    "bridge": "remote.md",
    "chat": "chat.md",
    "check": "check.md",
    "conduct": "proxies.md",
    "dev": "dev.md",
    "hosts": "hosts.md",
    "inspect": "inspect.md",
    "replay": "watching.md",
    "run": "run.md",
    "serve": "remote.md",
    "trace": "watching.md",
}
"""The guide of a command; the others are in that of the command line."""


def command_pages() -> Iterator[Page]:
    os.environ |= {"COLUMNS": WIDTH, "NO_COLOR": "1"}
    parser = parser_of(commands_for())
    lines = [
        "# The command line",
        "",
        "What `accord COMMAND --help` prints, for every command. [The guide](../command-line.md) explains the",
        "common ones.",
        "",
        "| command | |",
        "|---|---|",
    ]
    for name, inner in sorted(commands_of(parser).items()):
        lines.append(f"| [`accord {name}`]({name}.md) | {commands_for()[name].summary} |")
        yield Page(f"commands/{name}.md", page_of(inner, name))
    shared = ["", "## The options that choose an agent", "", *help_of(agent_options_parser())]
    yield Page("commands/index.md", "\n".join([*lines, "", *help_of(parser), *shared, ""]))


def page_of(parser: argparse.ArgumentParser, name: str) -> str:
    guide = GUIDES.get(name, "command-line.md")
    summary = f"{commands_for()[name].summary} See [the guide](../{guide})."
    lines = [f"# {parser.prog}", "", summary, "", *help_of(parser)]
    for _, inner in every_command(parser):
        lines += ["", f"## {inner.prog}", "", *help_of(inner)]
    if name == "chat":
        lines += ["", "## Commands in the chat", "", slash.table(), "", "## Keys in the chat", "", key_bindings.table()]
    return "\n".join([*lines, ""])


def help_of(parser: argparse.ArgumentParser) -> list[str]:
    return ["```text", parser.format_help().rstrip(), "```"]


def every_command(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The commands below a command, at any depth."""
    for name, inner in commands_of(parser).items():
        yield name, inner
        yield from every_command(inner)
