"""The commands of `accord`: its own, and those that other distributions add.

An added command is an entry point of the group `accord.commands` that names a `Command`. `accord check` is one. Reading
entry points takes milliseconds and importing a plug-in longer, so an own command needs neither, and an added command
imports no other. A broken plug-in is named in one line, and only its own command fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from accord import __version__
from accord.extras import missing_package
from accord.plugins import PluginError, describe, load_plugin, plugins
from accord_tools.cli import printing
from accord_tools.cli.endings import one_line
from accord_tools.cli.parser import Command, Parser, add_commands

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS: dict[str, Command] = {
    "agent": Command.of_module(
        "accord_tools.cli.agent", "Run a coding agent with a real model, over standard input and output."
    ),
    "agents": Command.of_module(
        "accord_tools.cli.agents", "List agents, give them names, find and install those of the registry."
    ),
    "bridge": Command.of_module(
        "accord_tools.cli.bridge",
        "Make an agent behind a URL a local agent that speaks over standard input and output.",
    ),
    "chat": Command.of_module("accord_tools.cli.chat", "Talk to agents in a terminal client."),
    "completion": Command.of_module(
        "accord_tools.cli.complete", "Print the script that lets a shell complete accord's commands and options."
    ),
    "conduct": Command.of_module(
        "accord_tools.cli.conduct", "Join proxies and an agent to a chain that an editor starts like one agent."
    ),
    "demo": Command.of_module(
        "accord_tools.cli.demo", "Run the built-in agent, which shows every feature without a model or a network."
    ),
    "doctor": Command.of_module(
        "accord_tools.cli.doctor", "Check the installation, the configuration and the agents, and say what to do."
    ),
    "help": Command.of_module("accord_tools.cli.help_command", "Print the help of a command."),
    "hosts": Command.of_module("accord_tools.cli.hosts", "List the hosts of a service that runs on several."),
    "info": Command.of_module("accord_tools.cli.info", "Show what an agent is and what it offers."),
    "inspect": Command.of_module(
        "accord_tools.cli.inspect", "Show traces in a browser: what was said, and how long it took."
    ),
    "login": Command.of_module("accord_tools.cli.login", "Log in to an agent with one of the methods that it offers."),
    "new": Command.of_module("accord_tools.cli.new", "Write a new project."),
    "replay": Command.of_module("accord_tools.cli.replay", "Play the agent or the client of a recorded conversation."),
    "run": Command.of_module("accord_tools.cli.run", "Send one prompt to an agent and print its answer."),
    "schema": Command.of_module(
        "accord_tools.cli.schema", "Print the JSON Schema of the protocol's types, with their official names."
    ),
    "serve": Command.of_module(
        "accord_tools.cli.serve", "Host an agent over HTTP and WebSocket, with a process for each connection."
    ),
    "sessions": Command.of_module(
        "accord_tools.cli.sessions", "List, show, export and delete the sessions that an agent keeps."
    ),
    "trace": Command.of_module(
        "accord_tools.cli.trace", "Record what an editor and an agent say to each other, and look at recordings."
    ),
}
"""The own commands, with their summaries. The module of a command is imported when the command is used."""

GROUP = "accord.commands"
PACKAGES = {"check": "accord-check"}
"""The packages of ours that add commands."""


def parser_for(before: Sequence[str]) -> Parser:
    """The parser for a command line; `before` is what stands before the first `--`.

    Only the command that is used has its options. Raises PluginError if it is a plug-in's and broken, and AccordError
    if its package is not installed.
    """
    words = [word for word in before if not word.startswith("-")]
    named = words[1:2] if words[:1] == ["help"] else words[:1]
    needs_others = named or "--version" not in before
    return parser_of(commands_for(*named) if needs_others else COMMANDS, words[:2] if words[:1] == ["help"] else named)


def commands_for(word: str = "") -> Mapping[str, Command]:
    """The commands that are needed to understand this word; without a word, or with an unknown one, all."""
    if word in COMMANDS:
        return COMMANDS
    added = plugins(GROUP)
    if word in added:
        return {**COMMANDS, word: _loaded(added[word])}
    if word in PACKAGES:
        raise missing_package(PACKAGES[word], f"the command {word!r}")
    found = dict(COMMANDS)
    for name, plugin in added.items():
        if name in COMMANDS:
            printing.complain(f"accord: {describe(plugin)} is not used: accord has a command of this name")
            continue
        try:
            found[name] = _loaded(plugin)
        except PluginError as error:
            printing.complain(f"accord: {one_line(error)}")
    return dict(sorted(found.items()))


def _loaded(plugin: EntryPoint) -> Command:
    """The command that a plug-in adds; what is wrong with it is a PluginError that names it."""
    try:
        command = load_plugin(plugin)
    except SystemExit as error:  # of a script that runs when it is imported
        raise PluginError(f"{describe(plugin)} cannot be loaded: it exits with {error.code!r}") from error
    if not isinstance(command, Command):
        raise PluginError(f"{describe(plugin)} must be a Command of accord_tools.cli.command, got {command!r}")

    def arguments(parser: argparse.ArgumentParser) -> None:
        try:
            command.arguments(parser)
        except Exception as error:
            raise PluginError(f"{describe(plugin)} has no options: {type(error).__name__}: {error}") from error

    return command._replace(arguments=arguments)


def parser_of(commands: Mapping[str, Command], filled: Collection[str] | None = None) -> Parser:
    """The parser of these commands; those in `filled` have their options, by default all."""
    parser = Parser(
        prog="accord",
        description="Use and serve agents of the Agent Client Protocol (ACP).",
        epilog="Run accord COMMAND --help, or accord help COMMAND, for the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"accord {__version__}", help="print the version")
    parser.add_argument("--debug", action="store_true", help="show a traceback when a command fails")
    add_commands(parser, commands, "command", filled)
    return parser
