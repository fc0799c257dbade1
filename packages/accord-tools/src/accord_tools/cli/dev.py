"""`accord dev`: the options of the command; `dev_loop` runs the program, and `dev_program` is inside of its process."""

from __future__ import annotations

import argparse

from accord_tools.cli.agent_options import protocol_argument
from accord_tools.cli.command_table import option
from accord_tools.cli.exit_codes import WrongUsage
from accord_tools.cli.permission_options import permission_arguments, policy_of
from accord_tools.cli.session_options import check_folder, folder_argument

EPILOG = """\
examples:
  accord dev my_agent.py                      chat with it here; it is reloaded when it changes
  accord dev my_agent.py "hello"              send this first; in a script, send only this
  accord dev my_agent.py:agent                the agent in this variable
  accord dev my_package.agent                 a module
  accord dev my_agent.py -- --model tiny      arguments for the program
  accord dev --client my_client.py            run a client with the demo agent
  accord dev --client my_client.py -- --agent {agent}

After each turn it reports mistakes: calls that are never awaited, code that blocks the event
loop, errors with only your lines of the traceback, and what `accord check` says about the turn's messages.
A client gets the command of its agent as its arguments, or in place of {agent}.
Without a terminal, each line of standard input is a prompt, and the exit code is 1 if
anything was wrong. The guide is docs/dev.md."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = "accord dev [options] FILE [PROMPT] [-- ARGUMENT...]"
    parser.add_argument("file", metavar="FILE", help="a Python file or a module, with :NAME for one of several agents")
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="send this first")
    option(parser, "--client", "the program is a client; the demo agent answers it")
    folder_argument(parser)
    permission_arguments(parser)
    protocol_argument(parser)
    parser.set_defaults(takes_agent=True, non_interactive=None, json=False)


def run(options: argparse.Namespace) -> int:
    from accord import run as run_loop
    from accord_tools.cli.dev_loop import run_program
    from accord_tools.cli.watched_files import WatchedFiles

    files = WatchedFiles.of(options.file)
    check_folder(options)
    policy_of(options)
    if options.client and options.prompt is not None:
        raise WrongUsage(f"--client takes no PROMPT; arguments of the program stand after --: -- {options.prompt}")
    return run_loop(run_program(options, files))
