"""`accord agents check`, `build`, `verify` and `new`: for publishers of agents in a registry.

`verify` runs three checks of each distribution of an agent, each with its own start: the question of the registry, the
same question of a client that can open a terminal for a login, and the profile smoke of `accord check agent`, which
sends no prompt. Findings of the last two are reported in the words of `accord check agent`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord import __version__
from accord.installation import missing_package
from accord.printable import label
from accord_tools.cli.agent_setup import ShownProgress
from accord_tools.cli.agents.installable_agents import entry_of
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error, print_json, print_line
from accord_tools.cli.exit_codes import ENDED_WELL, FAILED, WrongUsage
from accord_tools.presentation.quantities import counted
from accord_tools.registry import Progress, RegistryError
from accord_tools.registry.agent_index import IndexSource, load_index
from accord_tools.registry.downloads import download
from accord_tools.registry.entry import ID, RegistryEntry, read_entry, read_package

if TYPE_CHECKING:
    from accord_check import Report
    from accord_tools.registry.entry_rules import EntryFinding
    from accord_tools.registry.publish_registry import SourceEntry, Verified

FORMATS = ["text", "json", "sarif"]

WORKFLOW = """\
name: Agents
on:
  pull_request:
  push:
    branches: [main]
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.13"
      - run: pip install accord
      - run: accord agents check . --online
"""

VERIFY_EPILOG = """\
examples:
  accord agents verify my-agent          the folder of an entry
  accord agents verify gemini            an agent of the registry
  accord agents verify gemini --no-check

The agent is installed into a temporary folder. It is started with its own home folder and few variables, and is never
sent a prompt. An agent that asks for a login before a session can be checked only up to that point: the
report then says `blocked`, which is no failure."""

PASSING = ("conformant", "blocked")
"""The verdicts that do not fail a verification. An agent without a login of its user is always blocked somewhere."""

ASKS_FOR_LOGIN = "the agent asks for a login"


def _place_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="FOLDER", help="a registry's folder, an agent's folder, or an agent.json")


def check_arguments(parser: argparse.ArgumentParser) -> None:
    _place_argument(parser)
    option(parser, "--online", "also ask whether each address answers")
    option(parser, "--format", "how to print (default: %(default)s)", choices=FORMATS, default="text")


def run_check(options: argparse.Namespace) -> int:
    """Check entries by the rules of the registry."""
    sources, found = _checked_sources(options.place, is_online=options.online)
    if options.format == "text":
        for finding in found:
            print_line(label(str(finding), 1_000))
        errors = sum(finding.level == "error" for finding in found)
        print_line(
            f"{counted(len(sources), 'agent')}, {counted(errors, 'error')}, {counted(len(found) - errors, 'warning')}"
        )
    else:
        from accord_tools.registry.entry_rules import as_json, as_sarif

        value = as_json(found) if options.format == "json" else as_sarif(found, __version__)
        print_json(value)
    return FAILED if any(finding.level == "error" for finding in found) else ENDED_WELL


def _checked_sources(place: str, *, is_online: bool) -> tuple[list[SourceEntry], list[EntryFinding]]:
    from accord_tools.registry.publish_registry import check_sources, read_sources

    path = Path(place)
    if not path.exists():
        raise WrongUsage(f"{place} does not exist")
    sources = read_sources(path)
    found = check_sources(sources, path if path.is_dir() else path.parent)
    if is_online:
        from accord_tools.registry.publish_registry import check_online

        found += check_online(sources, path if path.is_dir() else path.parent)
    return sources, found


def build_arguments(parser: argparse.ArgumentParser) -> None:
    _place_argument(parser)
    option(parser, "-o --output DIR", "where to write (default: %(default)s)", default="dist")
    option(parser, "--icons-at URL", "the address that the icons will have", default="")
    option(parser, "--hash", "download archives that have no sha256, and add it")


def run_build(options: argparse.Namespace) -> None:
    """Build registry.json and the icons from a folder of agents."""
    from accord_tools.registry.publish_registry import build as build_files

    sources, found = _checked_sources(options.place, is_online=False)
    errors = [finding for finding in found if finding.level == "error"]
    if errors:
        for finding in errors:
            print_error(label(str(finding), 1_000))
        raise RegistryError(f"nothing was built: {counted(len(errors), 'error')}")
    try:
        written = build_files(sources, Path(options.output), options.icons_at, _hash_of if options.hash else None)
    except OSError as error:
        raise WrongUsage(f"cannot write {options.output}: {error.strerror}") from error
    print_line(f"Wrote {written[0]} with {counted(len(sources), 'agent')}, and {counted(len(written) - 1, 'icon')}.")


def _hash_of(archive: str) -> str:
    """The SHA-256 of an archive, which is downloaded for it."""
    progress = ShownProgress()
    progress.step(f"Downloading {archive}")
    try:
        with tempfile.TemporaryFile() as file:
            return download(archive, file, progress)
    finally:
        progress.end()


def new_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the agent's id: lower-case letters, digits and -")
    option(parser, "--npx PACKAGE", "its package of npm, such as @scope/name@1.2.3")
    option(parser, "--uvx PACKAGE", "its package of PyPI, such as name==1.2.3")
    option(parser, "--in DIR", "the registry's folder", dest="parent", default=".")


def run_new(options: argparse.Namespace) -> None:
    """Write an entry, an icon and a job that checks them."""
    from accord_tools.registry.entry_rules import SKELETON

    if not ID.fullmatch(options.id):
        raise WrongUsage(f"ID must have lower-case letters, digits and -, and begin with a letter; got {options.id!r}")
    parent = Path(options.parent)
    folder = parent / options.id
    if folder.exists():
        raise WrongUsage(f"{folder} exists; choose another id, or another folder with --in DIR")
    entry = _skeleton(options)
    job = parent / ".github" / "workflows" / "agents.yml"
    try:
        folder.mkdir(parents=True)
        (folder / "agent.json").write_text(json.dumps(entry, indent=2) + "\n", encoding="utf-8")
        (folder / "icon.svg").write_text(SKELETON, encoding="utf-8")
        if not job.exists():
            job.parent.mkdir(parents=True, exist_ok=True)
            job.write_text(WORKFLOW, encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"cannot write {folder}: {error.strerror}") from error
    print_line(f"Wrote {folder}/agent.json and icon.svg, and {job}. Fill them in, then:")
    print_line(f"  accord agents check {shlex.quote(str(folder))}\n  accord agents verify {shlex.quote(str(folder))}")


def _skeleton(options: argparse.Namespace) -> dict[str, object]:
    version = "0.1.0"
    distribution: dict[str, object] = {}
    for kind, written in (("npx", options.npx), ("uvx", options.uvx)):
        if written is None:
            continue
        package = read_package(kind, written)
        if package is None or package.version is None:
            form = "@scope/name@1.2.3" if kind == "npx" else "name==1.2.3"
            raise WrongUsage(f"--{kind} must name a package and its version, such as {form}; got {written!r}")
        version = package.version
        distribution[kind] = {"package": written}
    if not distribution:
        name = f"https://github.com/OWNER/{options.id}/releases/download/v{version}/{options.id}"
        endings = {"darwin": ".tar.gz", "linux": ".tar.gz", "windows": ".zip"}
        distribution["binary"] = {
            f"{system}-{machine}": {
                "archive": f"{name}-{system}-{machine}{ending}",
                "cmd": f"./{options.id}{'.exe' if system == 'windows' else ''}",
            }
            for system, ending in endings.items()
            for machine in ("aarch64", "x86_64")
        }
    return {
        "id": options.id,
        "name": options.id.replace("-", " ").title(),
        "version": version,
        "description": "What the agent does, in one sentence",
        "repository": f"https://github.com/OWNER/{options.id}",
        "authors": ["Your name"],
        "license": "Apache-2.0",
        "distribution": distribution,
    }


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = VERIFY_EPILOG
    parser.add_argument("what", metavar="ID|FOLDER", help="an agent of the registry, or the folder of its entry")
    option(parser, "--timeout S", "seconds for its answer (default: %(default)g)", type=float, default=120.0)
    option(parser, "--no-check", "ask only what the registry asks; skip the checks of behaviour")
    option(parser, "--json", "print JSON")


def run_verify(options: argparse.Namespace) -> int:
    """Install an agent into a temporary folder, start it, and ask what the registry asks."""
    if not options.no_check:
        _require_checker()
    from accord_tools.registry.publish_registry import verify as verify_entry

    entry, source = _entry_of(options.what)
    progress = ShownProgress()
    plain: list[dict[str, Any]] = []
    is_good = True
    try:
        for result in verify_entry(entry, source, progress, options.timeout):
            report = None
            if not result.findings and not options.no_check:
                report = _behaviour(entry, result, progress, options.timeout)
            is_good = is_good and not result.findings and (report is None or report.verdict in PASSING)
            progress.end()
            if options.json:
                plain.append(_plain_verified(result, report))
            else:
                _show_verified(entry, result, report)
    finally:
        progress.end()
    if options.json:
        print_json(plain)
    return ENDED_WELL if is_good else FAILED


def _require_checker() -> None:
    try:
        import accord_check  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError as error:
        if error.name != "accord_check":
            raise
        raise missing_package("accord-check", "`accord agents verify` without --no-check") from error


def _behaviour(entry: RegistryEntry, result: Verified, progress: Progress, within: float) -> Report:
    """The report of the profile smoke, and of the question of a client that opens terminals for logins."""
    from accord import CommandTarget, run
    from accord_check import Settings, check_agent

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


def _show_verified(entry: RegistryEntry, result: Verified, report: Report | None) -> None:
    took = "" if result.seconds is None else f" after {result.seconds:.1f} s"
    outcome = "failed" if result.findings else f"answered{took}; login: {', '.join(result.methods)}"
    print_line(f"{entry.id} {entry.version} as {result.kind}: {label(outcome, 300)}")
    for finding in result.findings:
        print_line("\n".join(f"  {line}" for line in finding.message.splitlines()))
    if report is not None:
        from accord_check import as_text

        _, *lines = as_text(report)  # the heading repeats the line above
        print_line("\n".join(f"  {line}" for line in lines if line))


def _plain_verified(result: Verified, report: Report | None) -> dict[str, Any]:
    from accord_tools.registry.entry_rules import as_json

    check = None
    if report is not None:
        from accord_check import as_json as report_as_json

        check = report_as_json(report)
    return {
        "kind": result.kind,
        "command": result.command,
        "seconds": result.seconds,
        "methods": list(result.methods),
        "findings": as_json(result.findings),
        "check": check,
    }


def _entry_of(what: str) -> tuple[RegistryEntry, IndexSource]:
    """The entry of an id, or of a folder."""
    from accord_tools.registry.publish_registry import read_sources

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
