"""Installs a package of PyPI into a virtual environment of its own, with uv, or with pip where uv is missing.

With `--require-hash`, uv first writes a lock file, which has the checksums of the index, and then installs what the
lock file says, and only wheels: building a package runs code that has no checksum. pip cannot do that.

Neither records the digest of the package that it installed in a form that both have. So the integrity is the digest of
what every wheel brings, its list of files with their digests, without the files that the installer writes.
"""

from __future__ import annotations

import configparser
import csv
import hashlib
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from accord.transports.programs import program_file
from accord_tools.registry.entry import PackageSource
from accord_tools.registry.errors import InstallError
from accord_tools.registry.installing.built import Built
from accord_tools.registry.installing.demands import Demands, refuse_unhashed
from accord_tools.registry.installing.tools import chosen_program, run_tool
from accord_tools.registry.packages import PackageName, read_package
from accord_tools.registry.progress import Progress

WRITTEN_HERE = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
QUIET = {
    "UV_PYTHON_DOWNLOADS": "never",  # a runtime is not installed without a word
    "UV_NO_PROGRESS": "1",
}
BIN = "Scripts" if os.name == "nt" else "bin"


def install_python_package(source: PackageSource, folder: Path, progress: Progress, demands: Demands) -> Built:
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
    programs = _programs(found)
    name = chosen_program(package.name, source.cmd, package.name, programs)
    program = place / BIN / (f"{name}.exe" if os.name == "nt" else name)
    return Built([str(program)], _integrity(found), _version(found))


def _with_uv(uv: str, asked: str, folder: Path, progress: Progress) -> Path:
    progress.step(f"uv installs {asked}")
    env = {**QUIET, "UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
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
    env = {**QUIET, "UV_PROJECT_ENVIRONMENT": str(place), "UV_PYTHON": sys.executable}
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


def _programs(metadata: Path) -> list[str]:
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
