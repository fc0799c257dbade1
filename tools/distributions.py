"""Builds the sdists and the wheels of the last commit, byte for byte the same wherever and whenever that is done.

    python tools/distributions.py            into dist/
    python tools/distributions.py FOLDER     into this folder, which is empty or new

Each wheel is built from its sdist, so that both have the same sources. Files that are not committed take no part. What
the bytes depend on: the commit (its time is that of every file), the version of hatchling (requirements/release.txt
pins it), and the repository's address for the metadata, which the source does not know: the variable
`ACCORD_REPOSITORY` tells it, or else the remote `origin`.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("accord", "accord-tools", "accord-check", "accord-adapters")
SUMS = "SHA256SUMS"
URLS = 'urls = { Protocol = "https://agentclientprotocol.com" }\n'
"""The line of each pyproject.toml that the repository's pages are added to."""
REMOTE = re.compile(r"(?:git@|ssh://git@)([^:/]+)[:/](.+)")


def build(source: Path, target: Path, *, time: int, repository: str = "") -> list[Path]:
    """Build the sdist and the wheel of each package of a checkout; return their paths, in the order of `PACKAGES`."""
    target.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for package in PACKAGES:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, package)
            shutil.copytree(source / "packages" / package, copy)
            with_urls(copy / "pyproject.toml", repository)
            [sdist] = built("sdist", copy, target, time)
            with tarfile.open(sdist) as archive:
                archive.extractall(folder, filter="data")
            [wheel] = built("wheel", Path(folder, sdist.name.removesuffix(".tar.gz")), target, time)
            paths += [sdist, wheel]
    return paths


def with_urls(project: Path, repository: str) -> None:
    """Name the repository's pages in the metadata of a package, if its address is known."""
    pages = {
        "Repository": repository,
        "Documentation": f"{repository}/blob/HEAD/docs/README.md",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    known = "".join(f'{name} = "{url}", ' for name, url in pages.items()) if repository else ""
    text = project.read_text(encoding="utf-8")
    if URLS not in text:
        raise SystemExit(f"tools/distributions.py: {project} has no line {URLS.strip()!r}")
    project.write_text(text.replace(URLS, URLS.replace("{ ", "{ " + known)), encoding="utf-8")


def built(kind: str, source: Path, target: Path, time: int) -> set[Path]:
    """The files that one run of hatchling adds to a folder."""
    before = set(target.iterdir())
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
    done = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"tools/distributions.py: hatchling failed:\n{done.stdout}{done.stderr}")
    return set(target.iterdir()) - before


def committed(folder: Path) -> int:
    """Write the files of the last commit to a folder; return the time of that commit."""
    archive = git("archive", "--format=tar", "HEAD")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return int(git("log", "-1", "--format=%ct"))


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], stdout=subprocess.PIPE, check=True).stdout


def repository() -> str:
    """The repository's address for browsers; empty if it is not known."""
    if given := os.environ.get("ACCORD_REPOSITORY"):
        return given.rstrip("/")
    command = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
    return browsable(subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip())


def browsable(remote: str) -> str:
    """The address for browsers of a remote; empty for one that browsers cannot open, such as a folder.

    Credentials are left out: an address in a wheel is public.
    """
    if found := REMOTE.fullmatch(remote):
        remote = f"https://{found[1]}/{found[2]}"
    if not remote.startswith("https://"):
        return ""
    host, _, path = remote.removeprefix("https://").partition("/")
    return f"https://{host.rpartition('@')[2]}/{path.rstrip('/').removesuffix('.git')}"


def sums(paths: list[Path]) -> str:
    """The lines that `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


def main(words: list[str]) -> int:
    target = Path(words[0] if words else "dist").absolute()
    if target.is_dir() and any(target.iterdir()):
        print(f"tools/distributions.py: the folder {target} is not empty; empty it or name another", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        time = committed(Path(folder))
        paths = build(Path(folder), target, time=time, repository=repository())
    (target / SUMS).write_text(sums(paths), encoding="utf-8")
    print(sums(paths), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
