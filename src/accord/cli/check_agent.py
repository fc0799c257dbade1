"""`accord check agent`: starts an agent, drives it through scenarios, and judges what it does."""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
from typing import TYPE_CHECKING

from accord.cli import check_output, printing, protocol, target
from accord.cli.endings import WrongUsage
from accord.errors import ConfigurationError
from accord.masking import mask_urls

if TYPE_CHECKING:
    from accord.check.agent.settings import Settings
    from accord.check.report.report import Report
    from accord.configuration.settings import AgentSettings

EPILOG = """\
examples:
  accord check agent                                     the built-in agent
  accord check agent -- my-agent --acp
  accord check agent --profile smoke -- npx some-agent   no prompt is sent, so it costs nothing
  accord check agent --junit junit.xml --sarif check.sarif --expect accord-check.toml -- my-agent
  accord check agent https://agents.example/acp --token-file ~/.token

The agent is started about six times. Its sessions work in a scratch folder, and its requests to read and write files
reach that folder only. It may use its tools as it likes: judge an agent that you do not trust in a container.

A prompt costs what it costs with any client: the default profile sends about ten, and --prompts says which:

  plain = "Say hello."                       a short answer
  slow = "Count to 500, a number a line."    some seconds of work, to be cancelled
  edit = "Add a line to notes.txt."          asks for permission, which is refused
  more = ["Make a plan."]"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "accord check agent [options] [AGENT | -- COMMAND...]"
    parser.epilog = EPILOG
    group = parser.add_argument_group("the scenarios")
    group.add_argument(
        "--profile",
        choices=("smoke", "default", "full", "fixture"),
        default="default",
        help="smoke: no prompt, a few seconds; default: about ten prompts; full: all that the agent offers, about "
        "thirty prompts; fixture: full, for an agent that follows the script of the checks",
    )
    group.add_argument("--prompts", metavar="FILE", help="the texts of the prompts (TOML)")
    group.add_argument("--max-prompts", type=_budget, metavar="N", help="send no more than N prompts")
    group.add_argument("--auth", metavar="METHOD", help="log in by this method first")
    group.add_argument("--allow-delete", action="store_true", help="delete sessions that the checks have made")
    group.add_argument(
        "--home", choices=("keep", "scratch"), default="keep", help="the home folder that the agent sees"
    )
    group.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set a variable for the agent")
    group.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="for an answer (30); a turn has four times that"
    )
    group.add_argument("--trace", metavar="FILE", help="keep the conversations in this file")
    check_output.arguments(parser)
    target.arguments(parser, is_argument=True)


def run(options: argparse.Namespace) -> int:
    from accord.running import run as run_loop

    chosen = target.chosen(options)
    settings = _settings(options, is_demo=chosen.is_demo or chosen.settings.words[-2:] == ["accord", "demo"])
    if chosen.settings.url is not None:
        remote = chosen.remote
        headers = remote.headers | ({"Authorization": f"Bearer {remote.token}"} if remote.token else {})
        settings = dataclasses.replace(settings, url=chosen.settings.url, headers=headers, tls=remote.tls)
    with tempfile.TemporaryDirectory(prefix="accord-check-home-", ignore_cleanup_errors=True) as home:
        variables = environment(options, home)
        if variables:
            if chosen.settings.url is not None:
                raise WrongUsage("--env and --home are for an agent that is a command, and this one has a URL")
            chosen.settings = _with_environment(chosen.settings, variables)
        report = run_loop(_checked(options, chosen, settings))
    return check_output.give(report, options)


async def _checked(options: argparse.Namespace, chosen: target.ChosenAgent, settings: Settings) -> Report:
    from accord.check.agent.run import check_agent
    from accord.cli.streams import streams

    aside = streams().aside

    def tell(shows: str) -> None:
        if aside.is_terminal and not options.json:
            printing.complain(f"checking: {shows}")

    where = chosen.target()
    keeps = options.trace is not None
    file = options.trace if keeps else somewhere()
    try:
        report = await check_agent(mask_urls(where.name), where.dial, settings, trace=file, progress=tell)
    finally:
        await where.release()
    if not keeps and report.verdict == "conformant" and not report.findings:
        os.unlink(file)  # noqa: PTH108
        report.trace = ""
    return report


def somewhere() -> str:
    """A file for the conversations; it is kept only if there is something to look up in it."""
    number, path = tempfile.mkstemp(prefix="accord-check-", suffix=".jsonl")
    os.close(number)
    return path


def _settings(options: argparse.Namespace, *, is_demo: bool) -> Settings:
    from accord.check.agent.settings import DEMO, FIXTURE, Prompts, Settings, read_prompts

    try:
        usual = FIXTURE if options.profile == "fixture" else DEMO if is_demo else Prompts()
        prompts = read_prompts(options.prompts) if options.prompts else usual
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
    given = {} if options.timeout is None else {"answer_within": options.timeout, "turn_within": 4 * options.timeout}
    return Settings(
        profile=options.profile,
        prompts=prompts,
        auth_method=options.auth,
        versions=tuple(sorted(protocol.versions(options))),
        allow_delete=options.allow_delete,
        max_prompts=options.max_prompts,
        **given,
    )


def environment(options: argparse.Namespace, home: str) -> dict[str, str]:
    made = {"HOME": home, "XDG_CONFIG_HOME": f"{home}/.config"} if options.home == "scratch" else {}
    for given in options.env:
        name, equals, value = given.partition("=")
        if not (name and equals):
            raise WrongUsage(f"--env must be NAME=VALUE, got {given!r}")
        made[name] = value
    return made


def _with_environment(settings: AgentSettings, environment: dict[str, str]) -> AgentSettings:
    import msgspec

    return msgspec.structs.replace(settings, env={**settings.env, **environment})


def _budget(word: str) -> int:
    if not (word.isascii() and word.isdecimal()):
        raise argparse.ArgumentTypeError(f"must be a number of prompts, 0 or more, got {word!r}")
    return int(word)


def seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {word!r}") from None
    if not 0 < seconds < 86_400:
        raise argparse.ArgumentTypeError(f"must be from 0 to 86,400 seconds, got {word}")
    return seconds
