"""Builds the sdist and the wheel of the last commit, byte for byte the same wherever and whenever that is done.

    python tools/distributions.py            into dist/
    python tools/distributions.py FOLDER     into this folder, which is empty or new

The wheel is built from the sdist, so that both have the same sources. Files that are not committed take no part. What
the bytes depend on: the commit (its time is that of every file), the version of hatchling (requirements/release.txt
pins it), and the repository's address, which `ACCORD_REPOSITORY` or the remote `origin` tells; see hatch_build.py.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUMS = "SHA256SUMS"


def build(source: Path, target: Path, *, time: int, repository: str = "") -> tuple[Path, Path]:
    """Build the sdist of a folder, and the wheel from that sdist; return their paths."""
    target.mkdir(parents=True, exist_ok=True)
    [sdist] = built("sdist", source, target, time, repository)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
        [wheel] = built("wheel", Path(folder, sdist.name.removesuffix(".tar.gz")), target, time, repository)
    return sdist, wheel


def built(kind: str, source: Path, target: Path, time: int, repository: str) -> set[Path]:
    """The files that one run of hatchling adds to a folder."""
    before = set(target.iterdir())
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(time), "ACCORD_REPOSITORY": repository}
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
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
    """The repository's address, as hatch_build.py finds it; empty if it is not known."""
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    if specification is None or specification.loader is None:
        raise SystemExit("tools/distributions.py: hatch_build.py is missing")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return str(module.repository_of(ROOT) or "")


def sums(paths: tuple[Path, ...]) -> str:
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
