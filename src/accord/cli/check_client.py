"""`accord check client`: is the agent that a client starts, and judges what the client does."""

from __future__ import annotations

import argparse
import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli import check_output, printing
from accord.cli.check_agent import environment, seconds, somewhere
from accord.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord.check.client.settings import ClientSettings
    from accord.check.report.report import Report

EPILOG = """\
examples:
  accord check client -- my-client --agent {agent} "hello"
  accord check client -- accord run --allow all "hello" -- {agent}
  accord check client --profile smoke -- npx acpx --agent {agent} exec hello
  accord check client --junit junit.xml --expect accord-check.toml -- ./run-my-client {agent}

The client is started once for each scenario, about ten times, and each start must send a prompt. {agent} stands for
the agent's command, one word without spaces; the variable ACCORD_CHECK_AGENT has it, too, and ACCORD_CHECK_SCENARIO
the scenario's name. The client works in a scratch folder, and the agent asks for files of that folder only. What the
client does not do is `not exercised`: neither right nor wrong."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "accord check client [options] -- COMMAND..."
    parser.epilog = EPILOG
    group = parser.add_argument_group("the scenarios")
    group.add_argument(
        "--profile",
        choices=("smoke", "default"),
        default="default",
        help="smoke: three starts of the client; default: all",
    )
    group.add_argument("--cwd", metavar="FOLDER", help="run the client here; then the checks make no files")
    group.add_argument(
        "--home", choices=("keep", "scratch"), default="keep", help="the home folder that the client sees"
    )
    group.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set a variable for the client")
    group.add_argument("--timeout", type=seconds, metavar="SECONDS", help="for an answer that needs no user (10)")
    group.add_argument("--trace", metavar="FILE", help="keep the conversations in this file")
    check_output.arguments(parser)
    parser.set_defaults(takes_agent=True)


def run(options: argparse.Namespace) -> int:
    from accord.running import run as run_loop

    if not options.agent:
        raise WrongUsage("give the client's command after --, with {agent} where it names the agent")
    with tempfile.TemporaryDirectory(prefix="accord-check-home-") as home:
        report = run_loop(_checked(options, _settings(options, home)))
    report.subject = shlex.join(options.agent)
    return check_output.give(report, options)


def _settings(options: argparse.Namespace, home: str) -> ClientSettings:
    from accord.check.client.settings import ClientSettings

    if options.cwd is not None and not Path(options.cwd).is_dir():
        raise WrongUsage(f"--cwd must be a folder, got {options.cwd!r}")
    given = {} if options.timeout is None else {"answer_within": options.timeout}
    return ClientSettings(
        profile=options.profile,
        env=environment(options, home),
        cwd=None if options.cwd is None else Path(options.cwd).absolute(),
        **given,
    )


async def _checked(options: argparse.Namespace, settings: ClientSettings) -> Report:
    from accord.check.client.run import check_client
    from accord.cli.streams import streams

    aside = streams().aside

    def tell(shows: str) -> None:
        if aside.is_terminal and not options.json:
            printing.complain(f"checking: {shows}")

    file = options.trace if options.trace is not None else somewhere()
    report = await check_client(options.agent, settings, trace=file, progress=tell)
    if options.trace is None and report.verdict == "conformant" and not report.findings:
        os.unlink(file)  # noqa: PTH108
        report.trace = ""
    return report
