"""Installs a package of npm or PyPI into a folder of its own, and finds its program.

npx and uvx would do this at each start: the network would be part of every start, and the installer's errors would be
lost. Here the installers run only at the installation. They are started as agents are, as the leader of a process group
or in a job on Windows, so their child processes end with them; and `npm.cmd` gets its arguments unchanged.

npm runs in two steps: a lock file, whose checksums are judged, and the installation of the lock file. (Not with `npm
ci`: it refuses lock files that npm itself has written, if an optional package is not available.) The lock file is
judged again at the end. The user's own settings of npm apply: its registry, proxies, and `min-release-age`. With the
last one, npm refuses versions that are new, and some versions of the index are not in npm at all. Then the newest
version below it that npm allows is installed, and the user is notified.

A package of PyPI gets a virtual environment, made by uv, or by pip if uv is missing. With `--require-hash`, uv first
writes a lock file, which has the checksums of the index, and then installs exactly that, and only wheels: building a
package runs code that has no checksum. pip cannot do that. Neither records the digest of the package in a form that
both have. So the integrity is the digest of every wheel's list of files with their digests, without the files that the
installer writes.
"""

from __future__ import annotations

import configparser
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from accord import ConnectionClosed
from accord.errors import last_lines
from accord.trace.meaning import body_of
from accord.transports.launch import environment, launch, program_file
from accord.transports.process_group import kill_group
from accord_tools.registry import InstallError, Progress
from accord_tools.registry.downloads import Built, InstallRequirements, refuse_unhashed
from accord_tools.registry.entry import PackageName, PackageSource, read_package

LOG = "install.log"
SHOWN = 25
"""Lines of the log that a failure shows."""
BEAT = 0.2
"""Seconds between two checks of the program."""


def run_tool(words: Sequence[str], folder: Path, progress: Progress, env: Mapping[str, str] | None = None) -> str:
    """Run a program in this folder, and return its output. Raises InstallError with its last lines if it fails."""
    log = folder / LOG
    with log.open("ab") as file:
        begins = file.tell()
        process = _started(words, folder, file.fileno(), env)
        try:
            _wait(process, progress)
        except BaseException:  # for instance because the user pressed Ctrl-C
            kill_group(process)
            process.wait()
            raise
    with log.open("rb") as file:
        file.seek(begins)
        written = file.read(1_000_000).decode(errors="replace")
    if process.returncode != 0:
        name = Path(words[0]).stem
        raise InstallError(f"{name} failed with exit code {process.returncode}", "\n".join(last_lines(written, SHOWN)))
    return written


def _started(words: Sequence[str], folder: Path, output: int, env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        return launch(words, (null, output, output), cwd=folder, env=environment(env))
    except ConnectionClosed as error:
        raise InstallError(str(error)) from None
    finally:
        os.close(null)


def _wait(process: subprocess.Popen[bytes], progress: Progress) -> None:
    while True:
        try:
            process.wait(BEAT)
        except subprocess.TimeoutExpired:
            progress.waiting()
        else:
            return


def chosen_program(package: str, wanted: str | None, usual: str, known: Sequence[str]) -> str:
    """Return the program of a package that starts its agent: the requested one, the usual one, or the only one.

    Raises InstallError that lists what there is.
    """
    if wanted is not None:
        if wanted in known:
            return wanted
        raise InstallError(f"{package} has no program {wanted!r}; it has {', '.join(sorted(known)) or 'none'}")
    if usual in known or len(known) == 1:
        return usual if usual in known else known[0]
    if not known:
        raise InstallError(f"{package} has no program, so it cannot be an agent")
    raise InstallError(f"{package} has several programs, and its entry names none of them: {', '.join(sorted(known))}")


MISSING = "npm is not installed; install Node.js, which has it, and make sure that `npm` is on PATH"
NO_VERSION = re.compile(r"\bE?(?:TARGET|NOVERSIONS)\b|No matching version", re.IGNORECASE)
OLD_NODE = re.compile(r"EBADENGINE.*?required: \{ node: '([^']+)'", re.DOTALL)
NPM_QUIET = ("--no-audit", "--no-fund", "--no-progress")
_NPM_EXACT = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")


def install_npm(
    source: PackageSource,
    folder: Path,
    progress: Progress,
    demands: InstallRequirements,
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
    words = [npm, "install", "--package-lock", *NPM_QUIET, *([] if scripts else ["--ignore-scripts"])]
    written += run_tool(words, folder, progress)
    version, integrity = _judged(package, folder, demands)
    if (old := OLD_NODE.search(written)) is not None:
        progress.note(f"{package.name} asks for Node.js {old[1]}; yours may be too old for it")
    about = _json(folder / "node_modules" / package.name / "package.json")
    name = chosen_program(package.name, source.cmd, package.short, _npm_programs(about, package))
    program = folder / "node_modules" / ".bin" / program_name(name, is_windows=os.name == "nt")
    if package.version is not None and _NPM_EXACT.fullmatch(package.version) and version != package.version:
        why = "it is not published, or too new for your settings of npm"
        progress.note(f"npm does not offer {package.name} {package.version} here ({why}); {version} was installed")
    return Built([str(program)], integrity, version)


def _planned(npm: str, package: PackageName, folder: Path, progress: Progress, *, exact: bool) -> str:
    """Let npm write a lock file, of an older version if it has no such version or does not allow it; runs no script."""
    words = [npm, "install", "--package-lock-only", "--package-lock", "--save", "--ignore-scripts", *NPM_QUIET]
    asked = package.name if package.version is None else f"{package.name}@{package.version}"
    try:
        return run_tool([*words, asked], folder, progress)
    except InstallError as error:
        may_be_older = package.version is not None and _NPM_EXACT.fullmatch(package.version) is not None
        if exact or not may_be_older or not NO_VERSION.search(error.words):
            raise
        # A range with a hyphen, because `<` in one with `<=` would be read by cmd.exe.
        return run_tool([*words, f"{package.name}@0.0.0 - {package.version}"], folder, progress)


def _judged(package: PackageName, folder: Path, demands: InstallRequirements) -> tuple[str, str]:
    """The version and the integrity of the package in the lock file; raises RegistryError for a forbidden one."""
    locked = _locked(folder)
    if demands.require_hash:
        unhashed = [place.rpartition("node_modules/")[2] for place, about in locked.items() if _is_unhashed(about)]
        refuse_unhashed(unhashed, "npm's registry")
    root = locked.get(f"node_modules/{package.name}", {})
    version, integrity = str(root.get("version", package.version)), str(root.get("integrity", ""))
    demands.judge(version, integrity)
    return version, integrity


def program_name(name: str, *, is_windows: bool) -> str:
    """Return the file that starts a program of npm. Windows starts no script, so npm writes its own for it there."""
    return f"{name}.cmd" if is_windows else name


def _npm_programs(about: dict[str, Any], package: PackageName) -> list[str]:
    """The names of a package's programs, as its package.json has them."""
    given = about.get("bin")
    if isinstance(given, str):
        return [package.short]
    return [str(name) for name in cast("dict[str, Any]", given)] if isinstance(given, dict) else []


def _locked(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the packages of npm's lock file by their places, without the one of the folder itself."""
    given: Any = _json(folder / "package-lock.json").get("packages", {})
    packages = body_of(given)
    return {
        place: cast("dict[str, Any]", about) for place, about in packages.items() if place and isinstance(about, dict)
    }


def _is_unhashed(about: dict[str, Any]) -> bool:
    """Whether a package of the lock file has no checksum; a bundled package has that of the bundle."""
    return not about.get("integrity") and not about.get("inBundle")


def _json(path: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InstallError(f"npm has not installed what was asked: {error}") from None
    return body_of(found)


WRITTEN_HERE = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
UV_VARIABLES = {
    "UV_PYTHON_DOWNLOADS": "never",  # a runtime is not installed without a word
    "UV_NO_PROGRESS": "1",
}
BIN = "Scripts" if os.name == "nt" else "bin"


def install_python_package(
    source: PackageSource, folder: Path, progress: Progress, demands: InstallRequirements
) -> Built:
    """Install a package and its dependencies."""
    package = read_package("uvx", source.package)
    if package is None:
        raise InstallError(f"the entry names a package that PyPI cannot have: {source.package!r}")
    asked = f"{package.name}{package.extras}" + (f"=={package.version}" if package.version else "")
    uv = program_file("uv")
    if demands.require_hash:
        place = _with_hashes(uv, asked, folder, progress)
    else:
        place = _with_uv(uv, asked, folder, progress) if uv else _with_pip(asked, folder, progress)
    found = _metadata(place, package)
    demands.judge(_version(found), _integrity(found))
    programs = _python_programs(found)
    name = chosen_program(package.name, source.cmd, package.name, programs)
    program = place / BIN / (f"{name}.exe" if os.name == "nt" else name)
    return Built([str(program)], _integrity(found), _version(found))


def _with_uv(uv: str, asked: str, folder: Path, progress: Progress) -> Path:
    progress.step(f"uv installs {asked}")
    env = {**UV_VARIABLES, "UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    run_tool([uv, "tool", "install", "--force", asked], folder, progress, env)
    return next((path for path in (folder / "tools").iterdir() if path.is_dir()), folder)


PROJECT = """\
[project]
name = "installation"
version = "0"
requires-python = ">={python}"
dependencies = [{asked}]

[tool.uv]
package = false
environments = ["sys_platform == '{platform}'"]
"""


def _with_hashes(uv: str | None, asked: str, folder: Path, progress: Progress) -> Path:
    """Install with checksums only; raises InstallError before anything is installed if one is missing."""
    if uv is None:
        raise InstallError(
            "--require-hash needs uv for a package of PyPI, because pip does not tell what has a checksum; install uv"
        )
    progress.step(f"uv looks up {asked}")
    place = folder / "tools" / "environment"
    python = ".".join(map(str, sys.version_info[:2]))
    project = PROJECT.format(python=python, asked=json.dumps(asked), platform=sys.platform)
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    env = {**UV_VARIABLES, "UV_PROJECT_ENVIRONMENT": str(place), "UV_PYTHON": sys.executable}
    run_tool([uv, "lock"], folder, progress, env)
    refuse_unhashed(_unhashed(folder / "uv.lock"), "the package index")
    progress.step(f"uv installs {asked}")
    run_tool([uv, "sync", "--frozen", "--no-build", "--no-dev"], folder, progress, env)
    return place


def _unhashed(lock: Path) -> list[str]:
    """The packages of uv's lock file that have a file without a checksum, or no file at all."""
    try:
        packages: list[dict[str, Any]] = tomllib.loads(lock.read_text(encoding="utf-8")).get("package", [])
    except (OSError, ValueError) as error:
        raise InstallError(f"uv has written no lock file that can be read: {error}") from None
    found: list[str] = []
    for package in packages:
        if "virtual" in package.get("source", {}):  # the folder itself
            continue
        files: list[dict[str, Any]] = package.get("wheels", [])
        if not files or any("hash" not in file for file in files):
            found.append(str(package.get("name")))
    return found


def _with_pip(asked: str, folder: Path, progress: Progress) -> Path:
    progress.step(f"pip installs {asked}")
    place = folder / "venv"
    run_tool([sys.executable, "-m", "venv", str(place)], folder, progress)
    python = place / BIN / ("python.exe" if os.name == "nt" else "python")
    words = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", asked]
    run_tool([str(python), *words], folder, progress)
    return place


def _metadata(place: Path, package: PackageName) -> Path:
    """The folder with the package's metadata."""
    wanted = _normal(package.name)
    for path in sorted(place.glob("[Ll]ib*/**/site-packages/*.dist-info")):
        if _normal(path.name.rsplit("-", 1)[0].partition("-")[0]) == wanted:
            return path
    raise InstallError(f"the package {package.name} is not in the environment that was made for it")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version(metadata: Path) -> str:
    return metadata.name.removesuffix(".dist-info").rpartition("-")[2]


def _python_programs(metadata: Path) -> list[str]:
    """The names of the package's programs."""
    parser = configparser.ConfigParser(delimiters=("=",), strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(metadata / "entry_points.txt", encoding="utf-8")
    return parser.options("console_scripts") if parser.has_section("console_scripts") else []


def _integrity(metadata: Path) -> str:
    """The digest of the package's files, whichever program installed them."""
    try:
        with (metadata / "RECORD").open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if len(row) >= 2 and row[1]]
    except OSError:
        return ""
    # Programs name the path of their environment, and are written when it is made.
    kept = [row for row in rows if not row[0].startswith(("..", "/")) and Path(row[0]).name not in WRITTEN_HERE]
    lines = sorted(f"{path.replace(os.sep, '/')} {digest}\n" for path, digest, *_ in kept if "__pycache__" not in path)
    return f"files-sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"
