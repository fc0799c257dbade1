"""`accord agents verify`: installs an agent for a moment, asks it what the registry asks, and checks how it behaves.

Three looks at each distribution, each with a start of its own: the question of the registry, the same question of a
client that can open a terminal for a login, and the profile smoke of `accord check agent`, which sends no prompt. What
the last two find is reported in the words of `accord check agent`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.cli import printing
from accord.cli.endings import ENDED_WELL, FAILED, WrongUsage
from accord.cli.installing import ShownProgress
from accord.extras import missing_package
from accord.printable import label

if TYPE_CHECKING:
    from accord.check import Report
    from accord.registry.entry import RegistryEntry
    from accord.registry.progress import Progress
    from accord.registry.publishing.verify import Verified
    from accord.registry.sources import IndexSource

EPILOG = """\
examples:
  accord agents verify my-agent          the folder of an entry
  accord agents verify gemini            an agent of the registry
  accord agents verify gemini --no-check

The agent is installed into a folder that is removed again. It is started with a home of its own and few variables, and
is never sent a prompt. An agent that asks for a login before a session can be checked only up to that point: the
report then says `blocked`, which is no failure."""


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("what", metavar="ID|FOLDER", help="an agent of the registry, or the folder of its entry")
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="S", help="seconds for its answer (default: %(default)g)"
    )
    parser.add_argument(
        "--no-check", action="store_true", help="ask only what the registry asks; leave out the checks of behaviour"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def verify(options: argparse.Namespace) -> int:
    """Install an agent into a folder that is removed again, start it, and ask what the registry asks."""
    if not options.no_check:
        _require_checker()
    from accord.registry.publishing.verify import verify as verify_entry

    entry, source = _entry(options.what)
    progress = ShownProgress()
    plain: list[dict[str, Any]] = []
    is_good = True
    try:
        for result in verify_entry(entry, source, progress, options.timeout):
            report = None
            if not result.findings and not options.no_check:
                report = _checked(entry, result, progress, options.timeout)
            is_good = is_good and not result.findings and (report is None or report.verdict in PASSING)
            progress.end()
            if options.json:
                plain.append(_plain(result, report))
            else:
                _show(entry, result, report)
    finally:
        progress.end()
    if options.json:
        printing.say(json.dumps(plain, indent=2))
    return ENDED_WELL if is_good else FAILED


PASSING = ("conformant", "blocked")
"""The verdicts that do not fail a verification. An agent without a login of its user is always blocked somewhere."""

ASKS_FOR_LOGIN = "the agent asks for a login"


def _require_checker() -> None:
    try:
        import accord.check  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError as error:
        if error.name != "accord.check":
            raise
        raise missing_package("accord-check", "`accord agents verify` without --no-check") from error


def _checked(entry: RegistryEntry, result: Verified, progress: Progress, within: float) -> Report:
    """The report of the profile smoke, and of the question of a client that opens terminals for logins."""
    from accord.check import Settings, check_agent
    from accord.client.target import CommandTarget
    from accord.running import run

    target = CommandTarget(result.command, cwd=result.home, env=result.env, inherit=False)
    subject = f"{entry.id} {entry.version} as {result.kind}"
    report = run(
        check_agent(
            subject,
            target.dial,
            Settings(profile="smoke", terminal_login=True, start_within=within),
            progress=lambda shows: progress.step(f"checking: {shows}"),
        )
    )
    if report.blocked.startswith(ASKS_FOR_LOGIN):  # with an option that this command does not have
        report.blocked = f"{ASKS_FOR_LOGIN} before a session, so only its start was checked"
    return report


def _show(entry: RegistryEntry, result: Verified, report: Report | None) -> None:
    took = "" if result.seconds is None else f" after {result.seconds:.1f} s"
    outcome = "failed" if result.findings else f"answered{took}; login: {', '.join(result.methods)}"
    printing.say(f"{entry.id} {entry.version} as {result.kind}: {label(outcome, 300)}")
    for finding in result.findings:
        printing.say("\n".join(f"  {line}" for line in finding.message.splitlines()))
    if report is not None:
        from accord.check import as_text

        _, *lines = as_text(report)  # the heading says what the line above has said
        printing.say("\n".join(f"  {line}" for line in lines if line))


def _plain(result: Verified, report: Report | None) -> dict[str, Any]:
    from accord.registry.publishing.findings import as_json

    check = None
    if report is not None:
        from accord.check import as_json as report_as_json

        check = report_as_json(report)
    return {
        "kind": result.kind,
        "command": result.command,
        "seconds": result.seconds,
        "methods": list(result.methods),
        "findings": as_json(result.findings),
        "check": check,
    }


def _entry(what: str) -> tuple[RegistryEntry, IndexSource]:
    """The entry of an id, or of a folder."""
    from accord.cli.agents_registry import entry_of
    from accord.registry.entry import read_entry
    from accord.registry.index import load_index
    from accord.registry.publishing.build import read_sources
    from accord.registry.sources import IndexSource

    if not Path(what).exists():
        index = load_index()
        entry = entry_of(index, what)
        return entry, index.source_of(entry)
    sources = read_sources(Path(what))
    if len(sources) != 1:
        raise WrongUsage(f"{what} has several agents; name the folder of one")
    read = read_entry(sources[0].raw)
    if isinstance(read, str):
        raise WrongUsage(f"{what}: {sources[0].problem or read}")
    return read, IndexSource(str(sources[0].file.parent))
