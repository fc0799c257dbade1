"""The commands of `accord check`; this file has those that start no program: `trace`, `list`, `explain` and `pages`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from accord.mistakes import nearest
from accord_check.command import live_runs, report_options
from accord_tools.cli.command import (
    ENDED_WELL,
    WRONG_USAGE,
    Command,
    WrongUsage,
    add_commands,
    print_json,
    print_line,
    print_table,
)

if TYPE_CHECKING:
    from accord_check.checks import Check

EPILOG = """\
examples:
  accord check agent -- my-agent --acp           start an agent, and judge what it does
  accord check agent --profile smoke my-agent    without a prompt, in a few seconds
  accord check client -- my-client {agent}       start a client with our agent, and judge what it does
  accord check trace wire.jsonl                  judge both sides of a recorded trace
  accord check list                              the checks, with their clauses
  accord check explain tool.id-unique            one check in full
  accord check pages requirements                a page for each requirement and check

Exit codes: 0 conformant, 1 not conformant, 2 wrong usage, 3 could not be judged (it did not start, it asks for a login,
or the checks themselves failed), 130 interrupted."""

TRACE_EPILOG = """\
examples:
  accord run "hi" --trace wire.jsonl -a gemini && accord check trace wire.jsonl
  accord check trace wire.jsonl --of agent --strict
  accord check trace wire.jsonl --json | jq .verdict

A trace is judged as it is, on both sides at once. What did not happen in it is `not exercised`: neither right nor
wrong."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_commands(parser, COMMANDS, "check_command")


def run(options: argparse.Namespace) -> int:
    """Print the help: a command is needed."""
    options.used.print_help()
    return WRONG_USAGE


def _trace_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = TRACE_EPILOG
    parser.add_argument("file", metavar="FILE", help="a trace of Accord (accord run --trace, accord.TraceFile)")
    parser.add_argument("--of", choices=("agent", "client", "both"), default="both", help="the side to judge")
    report_options.arguments(parser)


def _trace(options: argparse.Namespace) -> int:
    from accord import DecodeError
    from accord_check.trace_judge import BOTH, report_on_trace

    try:
        report = report_on_trace(options.file, BOTH if options.of == "both" else (options.of,))
    except OSError as error:
        raise WrongUsage(f"cannot read {options.file}: {error.strerror}") from error
    except DecodeError as error:
        raise WrongUsage(f"cannot read {options.file}: {error}") from error
    return report_options.give(report, options)


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--of", choices=("agent", "client"), help="only the checks of this side")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _list(options: argparse.Namespace) -> int:
    from accord_check.checks import CHECKS
    from accord_check.report_formats import check_as_json

    checks = [check for check in CHECKS.values() if options.of is None or check.of in (options.of, "both", "transport")]
    if options.json:
        print_json([check_as_json(check) for check in checks])
    else:
        print_table(("CHECK", "OF", "LEVEL", "DEMANDS"), [(it.id, it.of, it.level, it.clause) for it in checks])
    return ENDED_WELL


def _explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a check, as `accord check list` prints it")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _explain(options: argparse.Namespace) -> int:
    from accord_check.checks import CHECKS
    from accord_check.report_formats import check_as_json

    check = CHECKS.get(options.id)
    if check is None:
        hint = nearest(options.id, list(CHECKS)) or "; `accord check list` prints all"
        raise WrongUsage(f"no check has the id {options.id!r}{hint}")
    if options.json:
        print_json(check_as_json(check))
    else:
        print_line("\n".join(_explained(check)))
    return ENDED_WELL


def _explained(check: Check) -> list[str]:
    from accord_check.finding import url_of

    side = {"both": "either side", "transport": "either side"}.get(check.of, f"the {check.of}")
    rows: list[tuple[str, Any]] = [
        ("demands", f"{side} {check.clause}"),
        ("level", check.level),
        ("found as", {"fail": "a failure", "warn": "a warning", "note": "a note"}[check.severity]),
        ("because", check.because),
        ("judged by", "a scenario that asks for it" if check.active else f"all {check.seen} of a conversation"),
        ("since", f"schema {check.since}" if check.since else ""),
        ("do", check.fix),
        ("page", f"{check.page}: {url_of(check.page)}"),
        ("test kit", ", ".join(check.tck)),
        ("stable", "" if check.stable else "no: only a proposal demands it"),
    ]
    return [check.id, *(f"  {name + ':':<11}{value}" for name, value in rows if value)]


def _pages_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="where the pages are written; it is made if needed")


def _pages(options: argparse.Namespace) -> int:
    from accord_check.requirement_pages import write_pages

    try:
        count = write_pages(options.folder)
    except OSError as error:
        raise WrongUsage(f"cannot write {options.folder}: {error.strerror}") from error
    print_line(f"{count} pages, and README.md with the list of them, in {options.folder}")
    return ENDED_WELL


COMMANDS = {
    "agent": Command(
        "Judge an agent: start it, and drive it through scenarios.", live_runs.agent_arguments, live_runs.check_agent
    ),
    "client": Command(
        "Judge a client: be the agent that it starts, in each scenario.",
        live_runs.client_arguments,
        live_runs.check_client,
    ),
    "trace": Command("Judge a recorded trace, both sides at once.", _trace_arguments, _trace),
    "list": Command("List the checks.", _list_arguments, _list),
    "pages": Command("Write a page for each requirement and check.", _pages_arguments, _pages),
    "explain": Command("Explain a check: its clause, its page, and what to do.", _explain_arguments, _explain),
}
