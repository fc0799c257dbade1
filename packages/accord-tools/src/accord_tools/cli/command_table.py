"""The commands of `accord`: its own, and those that other distributions add.

An added command is an entry point of the group `accord.commands` that names a `Command`. `accord check` is one. Reading
entry points takes milliseconds and importing a plug-in longer, so Accord's own commands need neither, and an added
command imports no other. A broken plug-in is reported in one line, and only its own command fails.

The parser is here, too: how a command is declared, and the improvements over argparse. Commands of other distributions
use `accord_tools.cli.command`, which offers what they need of this and other modules.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from accord import __version__
from accord.installation import COMMANDS as GROUP, PluginError, describe, load_plugin, missing_package, plugins
from accord.mistakes import meant, nearest
from accord_tools.cli.console import for_terminal, print_error, print_json, reflowed, wrapped, write_out
from accord_tools.cli.exit_codes import WrongUsage, one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from _typeshed import SupportsWrite


class Command(NamedTuple):
    """A command of `accord`."""

    summary: str
    """Its purpose, as one sentence for `accord --help`."""
    arguments: Callable[[argparse.ArgumentParser], None]
    """Adds the options to the command's parser, and the examples as `parser.epilog`."""
    run: Callable[[argparse.Namespace], int | None]
    """Runs the command with the parsed options, and returns its exit code, or None if it ended well."""

    @classmethod
    def of_module(cls, module: str, summary: str, name: str = "") -> Command:
        """Return the command whose functions `arguments` and `run`, or `NAME_arguments` and `run_NAME`, are in this
        module.

        The module is imported when the command is used: `accord --help` needs only the summary.
        """
        adds, runs = (f"{name}_arguments", f"run_{name}") if name else ("arguments", "run")

        def arguments(parser: argparse.ArgumentParser) -> None:
            getattr(importlib.import_module(module), adds)(parser)

        def run(options: argparse.Namespace) -> int | None:
            code: int | None = getattr(importlib.import_module(module), runs)(options)
            return code

        return cls(summary, arguments, run)


def option(
    parser: argparse._ActionsContainer,  # pyright: ignore[reportPrivateUsage]
    form: str,
    about: str,
    **more: Any,
) -> None:
    """Add an option in the form of help: `--json` is set or not, `-o --to FILE` takes a value.

    `--env NAME=VALUE...` may be repeated, and is a list.
    """
    words = form.removesuffix("...").split()
    names = [word for word in words if word.startswith("-")]
    if len(words) > len(names):
        more["metavar"] = " ".join(words[len(names) :])
    elif "choices" not in more:
        more["action"] = "store_true"
    if form.endswith("..."):
        more |= {"action": "append", "default": []}
    parser.add_argument(*names, help=about, **more)


def add_commands(parser: argparse.ArgumentParser, commands: Mapping[str, Command], dest: str) -> None:
    """Add subcommands to a command; `dest` is the attribute of the options that names the chosen one.

    `options.used` is then the parser of the one that is used, and `options.run_command` the function to run it. The
    parser of a command gets its arguments when it is first used: so a command line imports only the command in it.
    """
    place = parser.add_subparsers(dest=dest, metavar="COMMAND", title="commands", parser_class=Parser)
    for name, command in commands.items():
        added = place.add_parser(name, help=command.summary, description=command.summary)
        added.set_defaults(run_command=command.run, used=added, takes_agent=False)
        added.add_own = command.arguments
        added.tells_json = isinstance(parser, Parser) and parser.tells_json


def commands_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of a parser's commands, by their names."""
    for action in actions_of(parser):
        if action.nargs == argparse.PARSER:
            return cast("Mapping[str, argparse.ArgumentParser]", action.choices)
    return {}


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options and arguments of a parser, for which argparse has no public name."""
    if isinstance(parser, Parser) and (add_own := parser.add_own) is not None:
        parser.add_own = None
        add_own(parser)
    return parser._actions  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class Parser(argparse.ArgumentParser):
    """Suggests the known word for an unknown one, and reports help that could not be written."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"formatter_class": Formatter, **options})

    add_own: Callable[[argparse.ArgumentParser], None] | None = None
    """Adds the arguments of the command; None once that is done."""
    shared: Collection[argparse.Action] = ()
    """Options that the help leaves out, because `accord help agent-options` explains them."""
    _is_intermixed = False
    tells_json = False
    """Whether wrong usage is printed as JSON, too, because the user asked for JSON."""

    def parse_known_args(self, *arguments: Any, **named: Any) -> tuple[Any, list[str]]:
        """Read the arguments; words that may be left out may also follow options, as in `hosts URL --json sessions`."""
        words = [it.nargs for it in actions_of(self) if not it.option_strings]
        if argparse.OPTIONAL not in words or self._is_intermixed:
            return super().parse_known_args(*arguments, **named)
        self._is_intermixed = True
        return self.parse_known_intermixed_args(*arguments, **named)  # which calls this method

    def format_help(self) -> str:
        """Return the help, without the options that have their own."""
        helps = [(action, action.help) for action in actions_of(self) if action in self.shared]
        for action, _ in helps:
            action.help = argparse.SUPPRESS
        try:
            return super().format_help()
        finally:
            for action, text in helps:
                action.help = text

    def error(self, message: str) -> NoReturn:
        """End the program because of wrong usage."""
        if self.tells_json:
            from accord_tools.cli.events import report

            report(WrongUsage(message))
        super().error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        if action.nargs == argparse.PARSER:
            self.error(f"unknown command {value!r}{nearest(value, known) or f'; {self.prog} --help lists all'}")
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{nearest(str(value), known)}")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if file is sys.stdout:  # where argparse would be silent
            write_out(message)
        else:
            super()._print_message(for_terminal(message, sys.stderr), file)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Preserves the lines of examples that fit, and lists commands without a heading line that is only COMMAND."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # argparse forgets that commands are indented, and would break the line after the longest name.
        self._action_max_length = 15

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return reflowed(text, width + len(indent) + 2, indent)  # argparse leaves two columns free

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        return text.partition("\n")[2] if action.nargs == argparse.PARSER else text


class RootParser(Parser):
    """The parser of `accord` itself, whose help shows the commands in groups."""

    summaries: Mapping[str, str] = {}
    """The summaries of the commands, by their names."""

    def format_help(self) -> str:
        """Return the help: what most people need first, then the rest."""
        columns = self._get_formatter()._width + 2  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        others = [name for name in self.summaries if not any(name in names for names in GROUPS.values())]
        groups = {**GROUPS, "added by other packages": tuple(others)} if others else GROUPS
        lines = ["usage: accord COMMAND ...", "", self.description or ""]
        for title, names in groups.items():
            rows = [f"  {name:13}{self.summaries[name]}" for name in names if name in self.summaries]
            lines += ["", f"{title}:", *(wrapped(row, columns) for row in rows)]
        lines += ["", "options:"]
        for action in actions_of(self):
            if action.option_strings:
                lines.append(f"  {', '.join(action.option_strings):13}{action.help}")
        return "\n".join([*lines, "", wrapped(self.epilog or "", columns), ""])


GROUPS: dict[str, tuple[str, ...]] = {
    "start here": ("run", "chat", "new", "dev", "check", "serve"),
    "agents and their sessions": ("agents", "agent", "permissions", "info", "login", "sessions", "demo"),
    "what a client and an agent said": ("trace", "inspect", "replay"),
    "between a client and an agent": ("conduct", "bridge", "hosts"),
    "this installation": ("doctor", "completion", "schema", "help"),
}
"""The commands of `accord --help`, in its order. A command of another package is in a group of its own."""


def unknown_arguments_error(
    parser: argparse.ArgumentParser, given: Sequence[str], unknown: Sequence[str], options: argparse.Namespace
) -> str:
    """The error for these unknown arguments of a command. `given` are all words before `--`."""
    words = [word for word in unknown if not word.startswith("-")]
    if words and getattr(options, "takes_agent", False) and not unknown[0].startswith("-"):
        ours = list(given)
        for word in reversed(unknown):
            place = len(ours) - 1 - ours[::-1].index(word)
            del ours[place]
        complete = shlex.join(["accord", *ours, "--", *unknown])
        return f"unexpected argument {unknown[0]!r}: put -- before the agent's command; did you mean {complete}?"
    if words and not unknown[0].startswith("-"):
        return f"unexpected argument {words[0]!r}"
    option = unknown[0].partition("=")[0]
    if option in ("--debug", "--version"):
        return f"{option} goes before the command: accord {option} {options.command}"
    known = [name for action in actions_of(parser) for name in action.option_strings]
    close = meant(option, [name for name in known if name.startswith("--")])
    how = close or f"; {parser.prog} --help lists all options"
    return f"unknown option {option}{how}"


# Commands that are too small for their own file


AGENT_OPTIONS = "agent-options"
"""The topics of `accord help` beside the commands."""


def _help_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="COMMAND",
        help=f"the command, such as run, or agents add; {AGENT_OPTIONS} for the options that choose an agent",
    )


def _print_help(options: argparse.Namespace) -> None:
    parser: argparse.ArgumentParser = options.parser
    if options.words == [AGENT_OPTIONS]:
        # Like the modules of commands, which import this one, it is loaded when it is used.
        importlib.import_module("accord_tools.cli.agent_options").agent_options_parser().print_help()
        return
    for word in options.words:
        known = commands_of(parser)
        if word not in known:
            raise WrongUsage(f"{parser.prog} has no command {word!r}{nearest(word, known)}")
        parser = known[word]
    parser.print_help()


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    option(parser, "--login", "require a login before a session can be opened")
    option(parser, "--store FILE", "store the sessions in this SQLite file")
    option(parser, "--pace SECONDS", "the pause between two words (default: %(default)s)", type=float, default=0.03)


def _run_demo(options: argparse.Namespace) -> None:
    from accord_tools.demo import demo_agent

    demo_agent(login=options.login, pace=options.pace, store=options.store).run()


def _schema_arguments(parser: argparse.ArgumentParser) -> None:
    option(parser, "--version", "the protocol's version (default: 1)", type=int, choices=[1, 2], default=1)
    option(parser, "--unstable", "include proposed types and methods")


def _print_schema(options: argparse.Namespace) -> None:

    from accord.schema.describe import json_schema

    print_json(json_schema(options.version, unstable=options.unstable))


def _own(module: str, summary: str) -> Command:
    """Return the command whose functions are in a module of this room."""
    return Command.of_module(f"accord_tools.cli.{module}", summary)


COMMANDS: dict[str, Command] = {
    "agent": _own("agent_command", "Run a coding agent with a real model."),
    "agents": _own("agents", "List, name, find and install agents."),
    "bridge": _own("bridge", "Make an agent behind a URL a local program for an editor."),
    "chat": _own("chat", "Talk to agents in a terminal client."),
    "completion": _own("completion", "Print the script that completes commands in a shell."),
    "conduct": _own("conduct", "Join proxies and an agent to one agent for an editor."),
    "demo": Command("Run the built-in agent: every feature, no model, no network.", _demo_arguments, _run_demo),
    "dev": _own("dev", "Run a program while you write it, and report its mistakes."),
    "doctor": _own("doctor", "Check the installation and the agents, and suggest fixes."),
    "help": Command("Print the help of a command.", _help_arguments, _print_help),
    "hosts": _own("hosts", "List the hosts of a service that runs on several."),
    "info": _own("info", "Show an agent's name and capabilities."),
    "inspect": _own("inspect", "Show traces in a browser: the messages, and how long they took."),
    "login": _own("login", "Log in to an agent with one of the methods that it offers."),
    "new": _own("new", "Write a new project."),
    "permissions": _own("permissions", "List what agents may do without a question and why; revoke it."),
    "replay": _own("replay", "Play the agent or the client of a recorded conversation."),
    "run": _own("run", "Send one prompt to an agent and print its answer."),
    "schema": Command("Print the JSON Schema of the protocol's types.", _schema_arguments, _print_schema),
    "serve": _own("serve", "Host an agent over HTTP and WebSocket, in processes."),
    "sessions": _own("sessions", "List, show, export and delete the sessions that an agent keeps."),
    "trace": _own("trace", "Record and read what an editor and an agent say to each other."),
}
"""Accord's own commands, with their summaries. The module of a command is imported when the command is used."""

PACKAGES = {"check": "accord-check"}
"""The packages of ours that add commands."""


def parser_for(before: Sequence[str]) -> Parser:
    """Return the parser for a command line; `before` is the part before the first `--`.

    Raises PluginError if the command is a plug-in's and broken, and AccordError if its package is not installed.
    """
    words = [word for word in before if not word.startswith("-")]
    named = words[1:2] if words[:1] == ["help"] else words[:1]
    needs_others = named or "--version" not in before
    return parser_of(commands_for(*named) if needs_others else COMMANDS, tells_json="--json" in before)


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
            print_error(f"accord: {describe(plugin)} is not used: accord has a command of this name")
            continue
        try:
            found[name] = _loaded(plugin)
        except PluginError as error:
            print_error(f"accord: {one_line(error)}")
    return dict(sorted(found.items()))


def _loaded(plugin: EntryPoint) -> Command:
    """Return the command that a plug-in adds; a problem with it is a PluginError that names it."""
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


def parser_of(commands: Mapping[str, Command], *, tells_json: bool = False) -> Parser:
    """Return the parser of these commands."""
    parser = RootParser(
        prog="accord",
        description="Use, write and serve agents of the Agent Client Protocol (ACP).",
        epilog="accord COMMAND --help shows the options of a command, with examples.",
    )
    parser.tells_json = tells_json
    parser.summaries = {name: command.summary for name, command in commands.items()}
    parser.add_argument("--version", action="version", version=f"accord {__version__}", help="print the version")
    option(parser, "--debug", "show a traceback when a command fails")
    add_commands(parser, commands, "command")
    return parser
