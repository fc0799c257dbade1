"""`install`: installs one agent, once, while other processes that need it wait for the same lock.

    lock of the id -> new folder -> installer of the kind: plan, checksums, files -> record -> becomes the current one

An installation that fails or is interrupted leaves a folder without a record, which is removed at once, or by the next
one. The working version is not touched until the new record is written.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from accord.paths import locked
from accord.transports.launch import program_file
from accord_tools.registry import InstallError, Progress, RegistryError, downloads, installed_agents
from accord_tools.registry.agent_index import IndexSource
from accord_tools.registry.archives import install_archive
from accord_tools.registry.downloads import Built, InstallRequirements
from accord_tools.registry.entry import BinarySource, Distribution, Kind, RegistryEntry, choose, here, read_package
from accord_tools.registry.installed_agents import InstalledAgent
from accord_tools.registry.package_installers import LOG, MISSING, install_npm, install_python_package

FAILED_LOG = "failed-installation.log"


@dataclass(frozen=True)
class InstallOptions:
    """The user's options for an installation."""

    kind: Kind | None = None
    version: str | None = None
    preview: bool = False
    scripts: bool = True
    """Whether packages of npm may run their scripts."""
    require_hash: bool = False
    """Whether to refuse packages without a checksum."""
    locked: downloads.LockedAgent | None = None
    """The agent in a team's lock file."""
    again: bool = False
    """Whether to install even if it is installed already."""


def available_kinds() -> set[Kind]:
    """The kinds that this machine can install. For PyPI, pip is used where uv is missing."""
    return {"binary", "uvx", "npx"} if program_file("npm") else {"binary", "uvx"}


def chosen(entry: RegistryEntry, options: InstallOptions) -> tuple[RegistryEntry, Distribution]:
    """Return the entry and the distribution that would be installed. Raises InstallError if there is none."""
    if options.preview:
        if entry.preview is None:
            raise InstallError(f"{entry.id} has no preview in this registry")
        entry = entry.preview
    kind = options.locked.kind if options.locked is not None else options.kind
    found = choose(entry, here(), kind, available_kinds())
    if isinstance(found, str):
        raise InstallError(found)
    if found.kind == "npx" and "npx" not in available_kinds():
        raise InstallError(f"{entry.id} is a package of npm, and {MISSING}")
    wanted = options.locked.version if options.locked is not None else options.version
    if wanted is None or wanted == entry.version:
        return entry, found
    return replace(entry, version=wanted), _of_version(entry, found, wanted)


def _of_version(entry: RegistryEntry, choice: Distribution, wanted: str) -> Distribution:
    source = choice.source
    if isinstance(source, BinarySource) or choice.kind == "binary":
        raise InstallError(
            f"the registry lists {entry.id} {entry.version} only, and archives of other versions are not known; "
            f"versions can be chosen for packages of npm and PyPI"
        )
    package = read_package(choice.kind, source.package)
    if package is None or not wanted[:1].isalnum():
        raise InstallError(f"{wanted!r} is not a version of {source.package}")
    sign = "@" if choice.kind == "npx" else "=="
    return Distribution(choice.kind, replace(source, package=f"{package.name}{package.extras}{sign}{wanted}"))


def install(entry: RegistryEntry, source: IndexSource, options: InstallOptions, progress: Progress) -> InstalledAgent:
    """Install an agent, and make it the current version of its id. One that is installed already is used unchanged.

    Raises RegistryError, and InstallError with the words of the program that failed.
    """
    entry, choice = chosen(entry, options)
    with _alone(entry.id):
        known = None if options.again else _known(entry, choice)
        if known is not None:
            if options.locked is not None:
                downloads.check_locked(options.locked, here().key, known.integrity)
            installed_agents.keep(known)
            return known
        folder = installed_agents.new_folder(entry.id, entry.version, choice.kind)
        try:
            agent = _install(entry, choice, source, options, folder, progress)
            installed_agents.keep(agent)
        except OSError as error:
            raise _disk_error(error) from error
        except InstallError as error:
            raise _with_log(error, folder) from None
        finally:
            if not (folder / installed_agents.RECORD).exists():
                shutil.rmtree(folder, ignore_errors=True)
        installed_agents.sweep(entry.id)
        return agent


def _with_log(error: InstallError, folder: Path) -> InstallError:
    """Return the error with the path of the failed program's whole output, which is stored beside the agent's
    versions.
    """
    kept = folder.with_name(FAILED_LOG)
    try:
        (folder / LOG).replace(kept)
    except OSError:
        return error
    return InstallError(f"{error}; all that it wrote is in {kept}", error.words) if error.words else error


def already_installed(entry: RegistryEntry, options: InstallOptions) -> InstalledAgent | None:
    """Return the version that is in use, if an installation would change nothing."""
    if options.again or options.locked is not None:
        return None
    wanted, choice = chosen(entry, options)
    agent = installed_agents.current(wanted.id)
    known = _known(wanted, choice)
    return agent if agent is not None and known is not None and agent.folder == known.folder else None


def _known(entry: RegistryEntry, choice: Distribution) -> InstalledAgent | None:
    for known in installed_agents.versions_of(entry.id):
        if entry.version in (known.version, known.listed) and known.kind == choice.kind and known.is_whole:
            return known
    return None


@contextmanager
def _alone(agent_id: str) -> Generator[None]:
    """Allow one installation of an agent at a time, on this machine."""
    try:
        with locked(installed_agents.folder_of(agent_id) / "installation"):
            yield
    except PermissionError as error:
        raise InstallError(f"cannot write {installed_agents.folder_of(agent_id)}: {error.strerror}") from None


def install_into(
    folder: Path, entry: RegistryEntry, choice: Distribution, source: IndexSource, progress: Progress
) -> list[str]:
    """Install one distribution of an agent into a folder, without registering it, and return its program's command."""
    try:
        built = _built(entry, choice, source, InstallOptions(), folder, progress, InstallRequirements())
    except OSError as error:
        raise _disk_error(error) from error
    return [*built.argv, *_arguments(choice, folder)]


def _install(
    entry: RegistryEntry,
    choice: Distribution,
    source: IndexSource,
    options: InstallOptions,
    folder: Path,
    progress: Progress,
) -> InstalledAgent:
    platform = downloads.ANY if choice.kind == "npx" else here().key

    def judge(version: str, integrity: str) -> None:
        if options.require_hash and not integrity:
            raise InstallError(f"{entry.id} {version} comes without a checksum, and one is required")
        if options.locked is not None:
            downloads.check_locked(options.locked, here().key, integrity)
        downloads.check_remembered(entry.id, version, platform, choice.kind, integrity)

    demands = InstallRequirements(judge, require_hash=options.require_hash)
    built = _built(entry, choice, source, options, folder, progress, demands)
    downloads.remember(entry.id, built.version, platform, choice.kind, built.integrity)
    return InstalledAgent(
        id=entry.id,
        name=entry.name,
        version=built.version,
        kind=choice.kind,
        argv=[*built.argv, *_arguments(choice, folder)],
        env=dict(choice.env),
        origin=choice.origin,
        integrity=built.integrity,
        listed=entry.version if entry.version != built.version else "",
        license=entry.license,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        size=_size(folder),
        folder=folder,
    )


def _built(
    entry: RegistryEntry,
    choice: Distribution,
    source: IndexSource,
    options: InstallOptions,
    folder: Path,
    progress: Progress,
    demands: InstallRequirements,
) -> Built:
    given = choice.source
    if isinstance(given, BinarySource):
        address = source.archive(given.archive)
        if "://" not in address and source.is_remote:
            raise InstallError(f"the registry names a file of this machine: {given.archive!r}")
        return install_archive(given, address, entry.version, folder, progress, here(), demands)
    if choice.kind == "npx":
        is_exact = options.locked is not None or options.version is not None
        return install_npm(given, folder, progress, demands, scripts=options.scripts, exact=is_exact)
    return install_python_package(given, folder, progress, demands)


def _arguments(choice: Distribution, folder: Path) -> list[str]:
    """Return the entry's arguments; one that names a file of the archive, as those of node do, becomes its path."""
    if choice.kind != "binary":
        return list(choice.args)
    inside = folder / "files"
    return [str(inside / it) if it.startswith("./") and (inside / it).is_file() else it for it in choice.args]


def _size(folder: Path) -> int:
    return sum((Path(place) / name).lstat().st_size for place, _, names in os.walk(folder) for name in names)


def _disk_error(error: OSError) -> RegistryError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InstallError(
            f"the disk is full: {installed_agents.agents_folder()} needs more room; nothing was installed"
        )
    return InstallError(f"cannot write {error.filename or installed_agents.agents_folder()}: {error.strerror or error}")
