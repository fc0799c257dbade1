"""`accord check client`: is the agent that a client starts, and judges what the client does."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli import check_output, printing, protocol
from accord.cli.check_agent import environment, seconds, somewhere
from accord.cli.endings import WrongUsage
from accord.signals import on_signals

if TYPE_CHECKING:
    from accord.check.client.settings import ClientSettings
    from accord.check.report.report import Report

EPILOG = """\
examples:
  accord check client -- my-client --agent {agent} "hello"
  accord check client -- accord run --allow all "hello" -- {agent}
  accord check client --profile smoke -- npx acpx --agent {agent} exec hello
  accord check client -- my-client --url {url} "hello"     over HTTP; {ws} is the address for WebSocket
  accord check client --serve                     for an editor: prints the agent's command and URL, and waits
  accord check client --junit junit.xml --expect accord-check.toml -- ./run-my-client {agent}

The client is started once for each scenario, about ten times, and each start must send a prompt. {agent} stands for
the agent's command, one word without spaces, and {url} and {ws} for its address; the variables ACCORD_CHECK_AGENT,
ACCORD_CHECK_URL and ACCORD_CHECK_WS have them, too, and ACCORD_CHECK_SCENARIO the scenario's name. The client works in
a scratch folder, and the agent asks for files of that folder only. What the client does not do is `not exercised`:
neither right nor wrong."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "accord check client [options] (-- COMMAND... | --serve)"
    parser.epilog = EPILOG
    group = parser.add_argument_group("the scenarios")
    group.add_argument(
        "--profile",
        choices=("smoke", "default"),
        default="default",
        help="smoke: three starts of the client; default: all",
    )
    group.add_argument(
        "--serve",
        action="store_true",
        help="print the agent's command and URL, and wait for a client that you start; Ctrl-C prints the report",
    )
    group.add_argument("--cwd", metavar="FOLDER", help="run the client here; then the checks make no files")
    group.add_argument(
        "--home", choices=("keep", "scratch"), default="keep", help="the home folder that the client sees"
    )
    group.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set a variable for the client")
    protocol.arguments(group)
    group.add_argument("--timeout", type=seconds, metavar="SECONDS", help="for an answer that needs no user (10)")
    group.add_argument("--trace", metavar="FILE", help="keep the conversations in this file")
    check_output.arguments(parser)
    parser.set_defaults(takes_agent=True)


def run(options: argparse.Namespace) -> int:
    from accord.running import run as run_loop

    if options.serve == bool(options.agent):
        raise WrongUsage("give the client's command after --, with {agent} or {url} in it, or give --serve")
    with tempfile.TemporaryDirectory(prefix="accord-check-home-", ignore_cleanup_errors=True) as home:
        settings = _settings(options, home)
        report = run_loop(_served(options, settings) if options.serve else _checked(options, settings))
    report.subject = shlex.join(options.agent) or report.subject
    return check_output.give(report, options)


def _settings(options: argparse.Namespace, home: str) -> ClientSettings:
    from accord.check.client.settings import ClientSettings

    if options.cwd is not None and not Path(options.cwd).is_dir():
        raise WrongUsage(f"--cwd must be a folder, got {options.cwd!r}")
    given = {} if options.timeout is None else {"answer_within": options.timeout}
    return ClientSettings(
        profile=options.profile,
        versions=tuple(sorted(protocol.versions(options))),
        env=environment(options, home),
        cwd=None if options.cwd is None else Path(options.cwd).absolute(),
        **given,
    )


async def _checked(options: argparse.Namespace, settings: ClientSettings) -> Report:
    from accord.check.client.run import check_client

    file = _trace_file(options)
    return _tidied(options, await check_client(options.agent, settings, trace=file, progress=_progress(options)))


async def _served(options: argparse.Namespace, settings: ClientSettings) -> Report:
    from dataclasses import replace

    from accord.check.client.by_hand import BY_HAND, check_by_hand

    stop = asyncio.Event()
    by_hand = replace(BY_HAND, profile=settings.profile, answer_within=settings.answer_within)
    file = _trace_file(options)
    with on_signals((signal.SIGINT, signal.SIGTERM), stop.set):
        report = await check_by_hand(by_hand, stop, _announce, trace=file, progress=printing.complain)
    return _tidied(options, report)


def _announce(places: Mapping[str, str], work: Path) -> None:
    printing.complain(f"the agent's command:   {places['{agent}']}")
    if "{url}" in places:
        printing.complain(f"its address:           {places['{url}']}")
        printing.complain(f"with WebSocket:        {places['{ws}']}")
    printing.complain(f"a folder to work in:   {work}")
    printing.complain(
        "Give your client this agent, open the folder, and send any prompt: each plays the next scenario."
    )
    printing.complain("Allow what is asked. Ctrl-C ends the checks, and prints the report.")


def _progress(options: argparse.Namespace) -> Callable[[str], None]:
    from accord.cli.streams import streams

    aside = streams().aside

    def tell(shows: str) -> None:
        if aside.is_terminal and not options.json:
            printing.complain(f"checking: {shows}")

    return tell


def _trace_file(options: argparse.Namespace) -> str:
    given: str | None = options.trace
    return somewhere() if given is None else given


def _tidied(options: argparse.Namespace, report: Report) -> Report:
    """The report, without a trace file of ours in which there is nothing to look up."""
    if options.trace is None and report.verdict == "conformant" and not report.findings:
        Path(report.trace).unlink()
        report.trace = ""
    return report
