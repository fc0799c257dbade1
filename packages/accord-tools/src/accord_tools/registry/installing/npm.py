"""Installs a package of npm into a folder of its own, and finds its program.

npx would do this at each start: the network would be part of every start, and npm's errors would be lost. Here npm runs
at the installation only, in two steps: a lock file, whose checksums are judged, and what the lock file says. (Not with
`npm ci`: it refuses lock files that npm itself has written, if an optional package is not to be had.) The lock file is
judged again at the end. The user's own settings of npm hold: the registry that it asks, proxies, and `min-release-age`.
With the last one, npm refuses versions that are new, and some versions of the index are not in npm at all. Then the
newest version below it that npm allows is installed, and the user is told.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, cast

from accord.transports.programs import program_file
from accord_tools.registry.entry import PackageSource
from accord_tools.registry.errors import InstallError
from accord_tools.registry.installing.built import Built
from accord_tools.registry.installing.demands import Demands, refuse_unhashed
from accord_tools.registry.installing.tools import chosen_program, run_tool
from accord_tools.registry.packages import PackageName, read_package
from accord_tools.registry.progress import Progress

MISSING = "npm is not installed; install Node.js, which has it, and make sure that `npm` is on PATH"
NO_VERSION = re.compile(r"\bE?(?:TARGET|NOVERSIONS)\b|No matching version", re.IGNORECASE)
OLD_NODE = re.compile(r"EBADENGINE.*?required: \{ node: '([^']+)'", re.DOTALL)
QUIET = ("--no-audit", "--no-fund", "--no-progress")
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")


def install_npm(
    source: PackageSource,
    folder: Path,
    progress: Progress,
    demands: Demands,
    *,
    scripts: bool = True,
    exact: bool = False,
) -> Built:
    """Install a package and its dependencies. With `exact`, no other version is installed instead."""
    package = read_package("npx", source.package)
    if package is None:
        raise InstallError(f"the entry names a package that npm cannot have: {source.package!r}")
    npm = program_file("npm")
    if npm is None:
        raise InstallError(MISSING)
    (folder / "package.json").write_text('{"private": true}\n')
    progress.step(f"npm looks up {source.package}")
    written = _planned(npm, package, folder, progress, exact=exact)
    version, _ = _judged(package, folder, demands)
    progress.step(f"npm installs {package.name} {version}")
    words = [npm, "install", "--package-lock", *QUIET, *([] if scripts else ["--ignore-scripts"])]
    written += run_tool(words, folder, progress)
    version, integrity = _judged(package, folder, demands)
    if (old := OLD_NODE.search(written)) is not None:
        progress.note(f"{package.name} asks for Node.js {old[1]}; yours may be too old for it")
    about = _json(folder / "node_modules" / package.name / "package.json")
    name = chosen_program(package.name, source.cmd, package.short, _programs(about, package))
    program = folder / "node_modules" / ".bin" / program_name(name, is_windows=os.name == "nt")
    if package.version is not None and _VERSION.fullmatch(package.version) and version != package.version:
        why = "it is not published, or too new for your settings of npm"
        progress.note(f"npm does not offer {package.name} {package.version} here ({why}); {version} was installed")
    return Built([str(program)], integrity, version)


def _planned(npm: str, package: PackageName, folder: Path, progress: Progress, *, exact: bool) -> str:
    """Let npm write a lock file, of an older version if it has no such version or does not allow it; runs no script."""
    words = [npm, "install", "--package-lock-only", "--package-lock", "--save", "--ignore-scripts", *QUIET]
    asked = package.name if package.version is None else f"{package.name}@{package.version}"
    try:
        return run_tool([*words, asked], folder, progress)
    except InstallError as error:
        may_be_older = package.version is not None and _VERSION.fullmatch(package.version) is not None
        if exact or not may_be_older or not NO_VERSION.search(error.words):
            raise
        # A range with a hyphen, because `<` in one with `<=` would be read by cmd.exe.
        return run_tool([*words, f"{package.name}@0.0.0 - {package.version}"], folder, progress)


def _judged(package: PackageName, folder: Path, demands: Demands) -> tuple[str, str]:
    """The version and the integrity of the package in the lock file; raises RegistryError for one that must not be."""
    locked = _locked(folder)
    if demands.require_hash:
        unhashed = [place.rpartition("node_modules/")[2] for place, about in locked.items() if _is_unhashed(about)]
        refuse_unhashed(unhashed, "npm's registry")
    root = locked.get(f"node_modules/{package.name}", {})
    version, integrity = str(root.get("version", package.version)), str(root.get("integrity", ""))
    demands.judge(version, integrity)
    return version, integrity


def program_name(name: str, *, is_windows: bool) -> str:
    """The file that starts a program of npm. Windows starts no script, so npm writes one of its own for it there."""
    return f"{name}.cmd" if is_windows else name


def _programs(about: dict[str, Any], package: PackageName) -> list[str]:
    """The names of a package's programs, as its package.json has them."""
    given = about.get("bin")
    if isinstance(given, str):
        return [package.short]
    return [str(name) for name in cast("dict[str, Any]", given)] if isinstance(given, dict) else []


def _locked(folder: Path) -> dict[str, dict[str, Any]]:
    """The packages of npm's lock file by their places, without the one of the folder itself."""
    given: Any = _json(folder / "package-lock.json").get("packages", {})
    packages = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    return {
        place: cast("dict[str, Any]", about) for place, about in packages.items() if place and isinstance(about, dict)
    }


def _is_unhashed(about: dict[str, Any]) -> bool:
    """Whether a package of the lock file comes without a checksum; what another package bundles has that one's."""
    return not about.get("integrity") and not about.get("inBundle")


def _json(path: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InstallError(f"npm has not installed what was asked: {error}") from None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
