"""`accord agents check`, `build` and `new`: for those who publish agents in a registry."""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from accord import __version__
from accord.cli import printing
from accord.cli.endings import ENDED_WELL, FAILED, WrongUsage
from accord.cli.installing import ShownProgress
from accord.printable import label
from accord.registry.errors import RegistryError

if TYPE_CHECKING:
    from accord.registry.publishing.build import SourceEntry
    from accord.registry.publishing.findings import Finding

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


def _place_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="FOLDER", help="a registry's folder, an agent's folder, or an agent.json")


def check_arguments(parser: argparse.ArgumentParser) -> None:
    _place_argument(parser)
    parser.add_argument("--online", action="store_true", help="also ask whether each address answers")
    parser.add_argument("--format", choices=FORMATS, default="text", help="how to print (default: %(default)s)")


def check(options: argparse.Namespace) -> int:
    """Check entries by the rules of the registry."""
    sources, found = _checked(options.place, is_online=options.online)
    if options.format == "text":
        for finding in found:
            printing.say(label(str(finding), 1_000))
        errors = sum(finding.level == "error" for finding in found)
        printing.say(
            f"{_count(len(sources), 'agent')}, {_count(errors, 'error')}, {_count(len(found) - errors, 'warning')}"
        )
    else:
        from accord.registry.publishing.findings import as_json, as_sarif

        value = as_json(found) if options.format == "json" else as_sarif(found, __version__)
        printing.say(json.dumps(value, indent=2, ensure_ascii=False))
    return FAILED if any(finding.level == "error" for finding in found) else ENDED_WELL


def _checked(place: str, *, is_online: bool) -> tuple[list[SourceEntry], list[Finding]]:
    from accord.registry.publishing.build import check_sources, read_sources

    path = Path(place)
    if not path.exists():
        raise WrongUsage(f"{place} does not exist")
    sources = read_sources(path)
    found = check_sources(sources, path if path.is_dir() else path.parent)
    if is_online:
        from accord.registry.publishing.online import check_online

        found += check_online(sources, path if path.is_dir() else path.parent)
    return sources, found


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def build_arguments(parser: argparse.ArgumentParser) -> None:
    _place_argument(parser)
    parser.add_argument("-o", "--output", metavar="DIR", default="dist", help="where to write (default: %(default)s)")
    parser.add_argument("--icons-at", metavar="URL", default="", help="the address that the icons will have")
    parser.add_argument("--hash", action="store_true", help="download archives that have no sha256, and add it")


def build(options: argparse.Namespace) -> int:
    """Build registry.json and the icons from a folder of agents."""
    from accord.registry.publishing.build import build as build_files

    sources, found = _checked(options.place, is_online=False)
    errors = [finding for finding in found if finding.level == "error"]
    if errors:
        for finding in errors:
            printing.complain(label(str(finding), 1_000))
        raise RegistryError(f"nothing was built: {_count(len(errors), 'error')}")
    try:
        written = build_files(sources, Path(options.output), options.icons_at, _hash_of if options.hash else None)
    except OSError as error:
        raise WrongUsage(f"cannot write {options.output}: {error.strerror}") from error
    printing.say(f"Wrote {written[0]} with {_count(len(sources), 'agent')}, and {_count(len(written) - 1, 'icon')}.")
    return ENDED_WELL


def _hash_of(archive: str) -> str:
    """The SHA-256 of an archive, which is downloaded for it."""
    from accord.registry.fetching import download

    progress = ShownProgress()
    progress.step(f"Downloading {archive}")
    try:
        with tempfile.TemporaryFile() as file:
            return download(archive, file, progress)
    finally:
        progress.end()


def new_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the agent's id: lower-case letters, digits and -")
    parser.add_argument("--npx", metavar="PACKAGE", help="its package of npm, such as @scope/name@1.2.3")
    parser.add_argument("--uvx", metavar="PACKAGE", help="its package of PyPI, such as name==1.2.3")
    parser.add_argument("--in", metavar="DIR", dest="parent", default=".", help="the registry's folder")


def new(options: argparse.Namespace) -> int:
    """Write an entry, an icon and a job that checks them."""
    from accord.registry.entry import ID
    from accord.registry.publishing.icon import SKELETON

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
    printing.say(f"Wrote {folder}/agent.json and icon.svg, and {job}. Fill them in, then:")
    printing.say(f"  accord agents check {shlex.quote(str(folder))}\n  accord agents verify {shlex.quote(str(folder))}")
    return ENDED_WELL


def _skeleton(options: argparse.Namespace) -> dict[str, object]:
    from accord.registry.packages import read_package

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
