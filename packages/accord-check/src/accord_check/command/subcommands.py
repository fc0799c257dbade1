"""The commands of `accord check`, and how each presents its report: at the terminal, and as files for CI systems."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import signal
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord import ConfigurationError, DecodeError
from accord.mistakes import nearest
from accord.program import on_signals
from accord.redaction import mask_urls
from accord_check.agent.settings import DEMO, FIXTURE, PromptTexts, Settings, read_prompts
from accord_check.checks import CHECKS, SCHEMAS, Check, checks_of, url_of
from accord_check.report import ExpectationError, Report, apply_expectations, read_expectations
from accord_check.report_formats import as_html, as_json, as_junit, as_markdown, as_sarif, as_text, check_as_json
from accord_tools.cli import command
from accord_tools.cli.command import (
    OutputLost,
    WrongUsage,
    option,
    paint,
    print_error,
    print_json,
    print_line,
    print_progress,
    print_table,
    terminal_width,
    write_out,
)

if TYPE_CHECKING:
    from accord_check.client.scenario_run import ClientSettings
WIDEST = 110
"""Columns beyond which the report does not grow: long lines are hard to read."""

FILES = {
    "report": "JSON, as --json prints it",
    "junit": "JUnit XML, for the test pages of CI systems",
    "sarif": "SARIF 2.1.0, for code scanning",
    "html": "one self-contained page",
    "markdown": "Markdown, for a job summary",
}


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options about printed and written output."""
    group = parser.add_argument_group("the report")
    option(group, "--json", "print JSON")
    option(group, "-v --verbose", "list what passed and what was not exercised")
    option(group, "--strict", "let warnings count as failures")
    option(group, "--expect FILE", "the expected failures (TOML); one that passes fails the run")
    option(group, "--requirements REVISION", "let only the checks of this revision count (2026-11)", type=_revision)
    schemas = "skip checks of later schemas: 1.15 to 1.20, or 2.4 for the TypeScript SDK"
    option(group, "--schema VERSION", schemas, type=_schema)
    for name, what in FILES.items():
        option(group, f"--{name} FILE", f"write {what}")


def _run_arguments(group: argparse._ActionsContainer, side: str, timeout: str) -> None:  # pyright: ignore[reportPrivateUsage]
    """Add the options about the program that is started, an agent or a client."""
    option(group, "--home", f"the home folder that the {side} sees", choices=("keep", "scratch"), default="keep")
    option(group, "--env NAME=VALUE...", f"set a variable for the {side}")
    option(group, "--timeout SECONDS", timeout, type=_seconds)
    option(group, "--trace FILE", "keep the conversations in this file")


def _revision(word: str) -> str:
    try:
        checks_of(word)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return word


def _schema(word: str) -> str:
    if word not in SCHEMAS:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(SCHEMAS)}, got {word!r}")
    return word


def give_report(report: Report, options: argparse.Namespace) -> int:
    """Print the report, write the requested files, and return the exit code."""
    report.strict = options.strict
    if options.schema is not None:
        report.follow(options.schema)
    if options.requirements is not None:
        report.count_only(checks_of(options.requirements), options.requirements)
    if options.expect is not None:
        try:
            apply_expectations(read_expectations(options.expect), report)
        except ExpectationError:
            _remove_trace(options, report)
            raise
    if report.verdict == "conformant" and not report.findings:
        _remove_trace(options, report)
    if options.json:
        print_line(_rendered(report, "report").rstrip("\n"))
    else:
        lines = as_text(report, paint, width=min(terminal_width() or WIDEST, WIDEST), verbose=options.verbose)
        write_out("".join(f"{line}\n" for line in lines))
    for name in FILES:
        if (file := getattr(options, name)) is not None:
            try:
                Path(file).write_text(_rendered(report, name), encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise OutputLost(f"cannot write {file}: {error.strerror}") from error
    return report.exit_code


def _rendered(report: Report, form: str) -> str:
    forms: dict[str, Callable[[Report], str]] = {
        "report": lambda report: json.dumps(as_json(report), indent=2, ensure_ascii=False) + "\n",
        "junit": as_junit,
        "sarif": as_sarif,
        "html": as_html,
        "markdown": as_markdown,
    }
    return forms[form](report)


AGENT_EPILOG = """\
examples:
  accord check agent                                     the built-in agent
  accord check agent -- my-agent --acp
  accord check agent --profile smoke -- npx some-agent   no prompt is sent, so it costs nothing
  accord check agent --junit junit.xml --sarif check.sarif --expect accord-check.toml -- my-agent
  accord check agent https://agents.example/acp --token-file ~/.token

The agent is started about six times. Its sessions work in a scratch folder, and its requests to read and write files
reach that folder only. It can use its tools freely: judge an agent that you do not trust in a container.

A prompt costs what it costs with any client: the default profile sends about ten, and --prompts says which:

  plain = "Say hello."                       a short answer
  slow = "Count to 500, a number a line."    some seconds of work, to be cancelled
  edit = "Add a line to notes.txt."          asks for permission, which is refused
  more = ["Make a plan."]"""


def agent_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "accord check agent [options] [AGENT | -- COMMAND...]"
    parser.epilog = AGENT_EPILOG
    group = parser.add_argument_group("the scenarios")
    profiles = (
        "smoke: no prompt, a few seconds; default: about ten prompts, in version 2 about twenty; full: all features of "
        "the agent, about thirty prompts; fixture: full, for an agent that follows the script of the checks"
    )
    option(group, "--profile", profiles, choices=("smoke", "default", "full", "fixture"), default="default")
    option(group, "--prompts FILE", "the texts of the prompts (TOML)")
    option(group, "--max-prompts N", "send no more than N prompts", type=_count)
    option(group, "--auth METHOD", "log in by this method first")
    option(group, "--allow-delete", "delete sessions that the checks have made")
    _run_arguments(group, "agent", "for an answer (30); a turn has four times that")
    report_arguments(parser)
    command.agent_arguments(parser, is_argument=True)


def run_agent(options: argparse.Namespace) -> int:
    """Start the agent that the options name, and judge it."""
    agent = command.chosen_agent(options)
    settings = _agent_settings(options, agent)
    with _environment(options) as variables:
        if variables:
            if agent.url is not None:
                raise WrongUsage("--env and --home are for an agent that is a command, and this one has a URL")
            agent.set_environment(variables)
        report = command.run_async(_checked_agent(options, agent, settings))
    return give_report(report, options)


async def _checked_agent(options: argparse.Namespace, agent: command.ChosenAgent, settings: Settings) -> Report:
    from accord_check.agent.agent_run import check_agent

    target = agent.target()
    try:
        with _trace_file(options) as trace:
            return await check_agent(
                mask_urls(target.name), target.dial, settings, trace=trace, progress=_progress(options)
            )
    finally:
        await target.release()


def _agent_settings(options: argparse.Namespace, agent: command.ChosenAgent) -> Settings:
    is_demo = agent.is_demo or agent.words[-2:] == ["accord", "demo"]
    usual = FIXTURE if options.profile == "fixture" else DEMO if is_demo else PromptTexts()
    prompts = read_prompts(options.prompts) if options.prompts else usual
    limits = {} if options.timeout is None else {"answer_within": options.timeout, "turn_within": 4 * options.timeout}
    return Settings(
        profile=options.profile,
        prompts=prompts,
        auth_method=options.auth,
        versions=tuple(sorted(command.protocol_versions(options))),
        allow_delete=options.allow_delete,
        max_prompts=options.max_prompts,
        url=agent.url,
        headers=agent.headers,
        tls=agent.remote.tls,
        proxy=agent.remote.proxy,
        **limits,
    )


CLIENT_EPILOG = """\
examples:
  accord check client -- my-client --agent {agent} "hello"
  accord check client -- accord run --allow auto "hello" -- {agent}
  accord check client --profile smoke -- npx acpx --agent {agent} exec hello
  accord check client -- my-client --url {url} "hello"     over HTTP; {ws} is the address for WebSocket
  accord check client --serve                     for an editor: prints the agent's command and URL, and waits
  accord check client --junit junit.xml --expect accord-check.toml -- ./run-my-client {agent}

The client is started once for each scenario, about ten times, and each start must send a prompt. {agent} stands for
the agent's command, one word without spaces, and {url} and {ws} for its address; the variables ACCORD_CHECK_AGENT,
ACCORD_CHECK_URL and ACCORD_CHECK_WS have them, too, and ACCORD_CHECK_SCENARIO the scenario's name. The client works in
a scratch folder, and the agent asks for files of that folder only. A feature that the client does not use is
reported as `not exercised`."""


def client_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "accord check client [options] (-- COMMAND... | --serve)"
    parser.epilog = CLIENT_EPILOG
    group = parser.add_argument_group("the scenarios")
    profiles = "smoke: three starts of the client; default: all"
    option(group, "--profile", profiles, choices=("smoke", "default"), default="default")
    serves = "print the agent's command and URL, and wait for a client that you start; Ctrl-C prints the report"
    option(group, "--serve", serves)
    option(group, "--cwd FOLDER", "run the client here; then the checks make no files")
    command.protocol_argument(group)
    _run_arguments(group, "client", "for an answer that needs no user (10)")
    report_arguments(parser)
    parser.set_defaults(takes_agent=True)


def run_client(options: argparse.Namespace) -> int:
    """Be the agent of the client that the options name, and judge the client."""
    if options.serve == bool(options.agent):
        raise WrongUsage("give the client's command after --, with {agent} or {url} in it, or give --serve")
    with _environment(options) as variables:
        settings = _client_settings(options, variables)
        report = command.run_async((_served if options.serve else _checked_client)(options, settings))
    report.subject = shlex.join(options.agent) or report.subject
    return give_report(report, options)


def _client_settings(options: argparse.Namespace, variables: dict[str, str]) -> ClientSettings:
    from accord_check.client.scenario_run import ClientSettings

    if options.cwd is not None and not Path(options.cwd).is_dir():
        raise WrongUsage(f"--cwd must be a folder, got {options.cwd!r}")
    given = {} if options.timeout is None else {"answer_within": options.timeout}
    return ClientSettings(
        profile=options.profile,
        versions=tuple(sorted(command.protocol_versions(options))),
        env=variables,
        cwd=None if options.cwd is None else Path(options.cwd).absolute(),
        **given,
    )


async def _checked_client(options: argparse.Namespace, settings: ClientSettings) -> Report:
    from accord_check.client.client_run import check_client

    with _trace_file(options) as trace:
        return await check_client(options.agent, settings, trace=trace, progress=_progress(options))


async def _served(options: argparse.Namespace, settings: ClientSettings) -> Report:
    from accord_check.client.client_run import BY_HAND, check_by_hand

    stop = asyncio.Event()
    by_hand = replace(BY_HAND, profile=settings.profile, answer_within=settings.answer_within)
    with _trace_file(options) as trace, on_signals((signal.SIGINT, signal.SIGTERM), stop.set):
        return await check_by_hand(by_hand, stop, _announce, trace=trace, progress=print_error)


def _announce(placeholders: Mapping[str, str], work: Path) -> None:
    print_error(f"the agent's command:   {placeholders['{agent}']}")
    if "{url}" in placeholders:
        print_error(f"its address:           {placeholders['{url}']}")
        print_error(f"with WebSocket:        {placeholders['{ws}']}")
    print_error(f"a folder to work in:   {work}")
    print_error("Give your client this agent, open the folder, and send any prompt: each plays the next scenario.")
    print_error("Allow what is asked. Ctrl-C ends the checks, and prints the report.")


@contextmanager
def _environment(options: argparse.Namespace) -> Generator[dict[str, str]]:
    """The variables of `--env` and `--home` for the program, while a scratch home folder exists."""
    with tempfile.TemporaryDirectory(prefix="accord-check-home-", ignore_cleanup_errors=True) as home:
        made = {"HOME": home, "XDG_CONFIG_HOME": f"{home}/.config"} if options.home == "scratch" else {}
        for given in options.env:
            name, equals, value = given.partition("=")
            if not (name and equals):
                raise WrongUsage(f"--env must be NAME=VALUE, got {given!r}")
            made[name] = value
        yield made


def _progress(options: argparse.Namespace) -> Callable[[str], None]:
    """Return the function that announces each scenario on a terminal; not with `--json`."""
    return (lambda _shows: None) if options.json else (lambda shows: print_progress(f"checking: {shows}"))


@contextmanager
def _trace_file(options: argparse.Namespace) -> Generator[str]:
    """Return the file for the conversations. A temporary one is deleted when the run is aborted; `give_report` prints
    its place.
    """
    if options.trace is not None:
        yield str(options.trace)
        return
    number, path = tempfile.mkstemp(prefix="accord-check-", suffix=".jsonl")
    os.close(number)
    try:
        yield path
    except BaseException:
        Path(path).unlink()
        raise


def _remove_trace(options: argparse.Namespace, report: Report) -> None:
    """Remove the file for the conversations, if it is one of ours."""
    if report.trace and getattr(options, "trace", "") is None:
        Path(report.trace).unlink()
        report.trace = ""


def _count(word: str) -> int:
    if not (word.isascii() and word.isdecimal()):
        raise argparse.ArgumentTypeError(f"must be a number of prompts, 0 or more, got {word!r}")
    return int(word)


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {word!r}") from None
    if not 0 < seconds < 86_400:
        raise argparse.ArgumentTypeError(f"must be from 0 to 86,400 seconds, got {word}")
    return seconds


TRACE_EPILOG = """\
examples:
  accord run "hi" --trace wire.jsonl -a gemini && accord check trace wire.jsonl
  accord check trace wire.jsonl --of agent --strict
  accord check trace wire.jsonl --json | jq .verdict

A trace is judged as it is, on both sides at once. What did not happen in it is `not exercised`: neither right nor
wrong."""


def trace_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = TRACE_EPILOG
    parser.add_argument("file", metavar="FILE", help="a trace of Accord (accord run --trace, accord.TraceFile)")
    option(parser, "--of", "the side to judge", choices=("agent", "client", "both"), default="both")
    report_arguments(parser)


def run_trace(options: argparse.Namespace) -> int:
    from accord_check.trace_judge import BOTH, report_on_trace

    try:
        report = report_on_trace(options.file, BOTH if options.of == "both" else (options.of,))
    except OSError as error:
        raise WrongUsage(f"cannot read {options.file}: {error.strerror}") from error
    except DecodeError as error:
        raise WrongUsage(f"cannot read {options.file}: {error}") from error
    return give_report(report, options)


def list_arguments(parser: argparse.ArgumentParser) -> None:
    option(parser, "--of", "only the checks of this side", choices=("agent", "client"))
    option(parser, "--json", "print JSON")


def run_list(options: argparse.Namespace) -> None:
    checks = [check for check in CHECKS.values() if options.of is None or check.of in (options.of, "both", "transport")]
    if options.json:
        print_json([check_as_json(check) for check in checks])
    else:
        rows = [(it.id, it.of, it.level, it.since, it.clause) for it in checks]
        print_table(("CHECK", "OF", "LEVEL", "SINCE", "DEMANDS"), rows)


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a check, as `accord check list` prints it")
    option(parser, "--json", "print JSON")


def run_explain(options: argparse.Namespace) -> None:
    check = CHECKS.get(options.id)
    if check is None:
        hint = nearest(options.id, list(CHECKS)) or "; `accord check list` prints all"
        raise WrongUsage(f"no check has the id {options.id!r}{hint}")
    if options.json:
        print_json(check_as_json(check))
    else:
        print_line("\n".join(_explained(check)))


def _explained(check: Check) -> list[str]:
    side = {"both": "either side", "transport": "either side"}.get(check.of, f"the {check.of}")
    rows: list[tuple[str, Any]] = [
        ("demands", f"{side} {check.clause}"),
        ("level", check.level),
        ("found as", check.found_as),
        ("because", check.because),
        ("judged by", check.judged_by),
        ("since", f"schema {check.since}" if check.since else ""),
        ("do", check.fix),
        ("page", f"{check.page}: {url_of(check.page)}"),
        ("test kit", ", ".join(check.tck)),
        ("stable", "" if check.stable else "no: only a proposal demands it"),
    ]
    return [check.id, *(f"  {name + ':':<11}{value}" for name, value in rows if value)]


def pages_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="where the pages are written; it is made if needed")


def run_pages(options: argparse.Namespace) -> None:
    from accord_check.requirement_pages import write_pages

    try:
        count = write_pages(options.folder)
    except OSError as error:
        raise WrongUsage(f"cannot write {options.folder}: {error.strerror}") from error
    print_line(f"{count} pages, and README.md with the list of them, in {options.folder}")
