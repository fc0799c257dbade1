"""Installs an agent from an archive: downloads it, compares its checksum, unpacks it, and finds its program."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

from accord.masking import mask_urls
from accord_tools.registry.entry import BinarySource
from accord_tools.registry.errors import InstallError
from accord_tools.registry.fetching import download
from accord_tools.registry.installing.built import Built
from accord_tools.registry.installing.demands import Demands, refuse_unhashed
from accord_tools.registry.launching import is_interpreter, program_path
from accord_tools.registry.platforms import Platform
from accord_tools.registry.progress import Progress
from accord_tools.registry.unpacking import form_of, safe_parts, unpack

INSIDE = "files"
WRONG = (
    "the checksum does not match: the registry has sha256 {wanted}, and the download has {found}. Either the registry "
    "or the publisher has made a mistake, or someone has changed the archive. Nothing was installed"
)


def install_archive(
    source: BinarySource,
    address: str,
    version: str,
    folder: Path,
    progress: Progress,
    platform: Platform,
    demands: Demands,
) -> Built:
    """Install what is at this address, or in this file."""
    name = unquote(urlsplit(address).path.rpartition("/")[2]) if "://" in address else Path(address).name
    form = form_of(name)
    if form == "refused":
        raise InstallError(f"{name} is an installer of a system, which the registry does not allow")
    path = program_path(source.cmd, platform)
    if demands.require_hash and source.sha256 is None:
        refuse_unhashed([name], "the registry")
    progress.step(f"Downloading {mask_urls(address)}")
    got = folder / "download"
    digest = _fetched(address, got, progress)
    if source.sha256 is not None and digest != source.sha256:
        raise InstallError(WRONG.format(wanted=source.sha256, found=digest))
    integrity = f"sha256:{digest}"
    demands.judge(version, integrity)
    files = folder / INSIDE
    if form == "program":
        _place_program(got, files, path)
    else:
        progress.step(f"Unpacking {name}")
        unpack(got, form, files)
        got.unlink()
    argv = [source.cmd] if is_interpreter(source.cmd) else [str(_program(files, path, platform))]
    return Built(argv, integrity, version)


def _fetched(address: str, got: Path, progress: Progress) -> str:
    """Write the archive to a file, and return its SHA-256."""
    with got.open("wb") as file:
        if "://" in address:
            return download(address, file, progress)
        try:
            with Path(address).open("rb") as source:
                shutil.copyfileobj(source, file)
        except FileNotFoundError:
            raise InstallError(f"the archive {address} does not exist") from None
    with got.open("rb") as written:
        return hashlib.file_digest(written, "sha256").hexdigest()


def _place_program(got: Path, files: Path, path: str) -> None:
    """A download that is the program itself."""
    place = files.joinpath(*safe_parts(path))
    place.parent.mkdir(parents=True)
    got.rename(place)


def _program(files: Path, path: str, platform: Platform) -> Path:
    """The program that `cmd` names, perhaps one folder deeper than it says."""
    place = files / path
    if not place.is_file():
        only = [it for it in files.iterdir() if it.is_dir()]
        deeper = only[0] / path if len(only) == 1 else place
        if not deeper.is_file():
            raise InstallError(f"the archive has no program {path!r}; it has {', '.join(_some(files))}")
        place = deeper
    if not platform.is_windows:
        place.chmod(place.stat().st_mode | 0o111)
    return place


def _some(files: Path) -> list[str]:
    """A few of the files of an archive, for an error."""
    found = sorted(str(it.relative_to(files)) for it in files.rglob("*") if it.is_file())
    return [*found[:8], *(["..."] if len(found) > 8 else [])] or ["nothing"]
